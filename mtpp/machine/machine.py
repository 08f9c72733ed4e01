"""Machines: devices in order, and the networks that join them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, chain, groupby, repeat
from math import ceil, prod
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.device import DeviceGroup as DeviceGroup
from mtpp.machine.link import Level, Link
from mtpp.machine.machine_file import NO_DEFAULTS, Defaults, MachineTable, machine_of_table
from mtpp.machine.pair_link import GivenLink
from mtpp.machine.pairs import PairedClasses, require_links
from mtpp.machine.presets import device_of_table, levels_of_table, toml_of_text, toml_text
from mtpp.names import DIRECT, FIXED, FREE, NEIGHBOURS, TRANSPORTS
from mtpp.units import Exact

BEST_OF_ALL = "best of all devices"
"""Name of the envelope of devices that differ."""

LARGEST_DEVICES = 2**20
"""Devices in all, and of any level, that networks within networks may join."""


@dataclass(frozen=True)
class Machine:
    """Devices in order with their networks; :meth:`uniform`, :meth:`of_devices`, :meth:`of_levels`, :meth:`read`.

    Attributes
    ----------
    groups
        The devices in order; those of the innermost level, where there are several.
    levels
        Networks within networks, the innermost first; one joins all devices of a flat machine.
    name
        Of the machine; empty where nobody gave it one.
    order
        ``"fixed"``: stage i stands on device i; ``"free"``: devices may stand anywhere in the pipeline.
    transport
        Way of tensors from stage to stage, one of :data:`~mtpp.names.TRANSPORTS`.
    pair_links
        Links between devices by their names, of neighbours; other pairs have the worse figures of the two.

    Raises
    ------
    InputError
        If some devices count activations in another way than others, or a link is of no two devices.
    """

    groups: Sequence[DeviceGroup]
    levels: Sequence[Level]
    name: str = ""
    order: str = FIXED
    transport: str = DIRECT
    pair_links: Sequence[GivenLink] = ()

    def __post_init__(self) -> None:
        if len({group.device.peak for group in self.groups}) > 1:
            raise InputError("devices differ in how they count activations", where="/device", remedy="give ‹peak›")
        if self.transport not in TRANSPORTS:
            raise InputError(f"{self.transport!r} is unknown", where="/transport")
        if self.pair_links:
            require_links(self.pair_links, self.names, self.transport)
        if self.neighbours and any(group.device.stage_times_ps for group in self.groups):
            raise InputError("neighbours do not go with times of stages", where="/transport", remedy='use "direct"')

    @classmethod
    def uniform(cls, count: int, device: Device) -> Machine:
        """Return *count* equal devices joined by their links."""
        return cls((DeviceGroup(device, count),), (Level(count, device.link),))

    @classmethod
    def of_devices(
        cls,
        count: int,
        *,
        bandwidth_bytes_per_s: int,
        memory_bytes: int | Sequence[int | None] | None = None,
        latency_ps: int = 0,
        speeds: Sequence[Exact] | None = None,
    ) -> Machine:
        """Return devices for models that bring their own times.

        Parameters
        ----------
        memory_bytes
            Of each device, or one number for all; None: no limit.
        speeds
            Of each device, as multiples of the speed that a model's times are of; None: 1.

        Raises
        ------
        InputError
            If a number is out of range or there is not one for each device; names the parameter.
        """
        sizes = memory_bytes if isinstance(memory_bytes, Sequence) else [memory_bytes]
        if None in sizes and len(set(sizes)) > 1:
            raise InputError("is given for some devices only", parameter="memory", remedy="give one for each")
        numbers = [("devices", count), ("bandwidth", bandwidth_bytes_per_s), *(("memory", size) for size in sizes)]
        for name, value in (*numbers, *(("speed", speed) for speed in speeds or ())):
            if value is not None and value <= 0:
                raise InputError(f"must be above zero, not {value}", parameter=name)
        for name, values in (("speed", speeds), ("memory", memory_bytes)):
            if isinstance(values, Sequence) and len(values) != count:
                remedy = "give one value, or one for each device"
                raise InputError(f"{len(values)} values for {count} devices", parameter=name, remedy=remedy)
        link = Link(bandwidth_bytes_per_s, latency_ps)
        one = Device("device", None, None, link, memory_bytes=sizes[0])
        if speeds is None and not isinstance(memory_bytes, Sequence):
            return cls.uniform(count, one)
        memories = sizes if isinstance(memory_bytes, Sequence) else [memory_bytes] * count
        each = zip(memories, speeds or [1] * count, strict=True)
        groups = (
            DeviceGroup(replace(one, memory_bytes=memory, speed=speed), len(list(equal)))
            for (memory, speed), equal in groupby(each)
        )
        return cls(tuple(groups), (Level(count, link),))

    @classmethod
    def of_levels(cls, levels: Sequence[Level], memory_bytes: int | None = None) -> Machine:
        """Return equal devices joined by networks within networks, the innermost first; at least one.

        Raises
        ------
        InputError
            If there is no level, a number is not positive, or there are more than :data:`LARGEST_DEVICES` devices;
            *where* is a pointer ``/levels/0/devices``.
        """
        if not levels:
            raise InputError("the topology has no levels", where="/levels", remedy="give at least one: [[levels]]")
        for i, level in enumerate(levels):
            for value, key in ((level.devices, "devices"), (level.link.bandwidth_bytes_per_s, "bandwidth")):
                if value < 1:
                    raise InputError(f"must be above zero, not {value}", where=f"/levels/{i}/{key}")
        count = prod(level.devices for level in levels)
        if count > LARGEST_DEVICES:
            raise InputError(
                f"{count} devices are too many", where="/levels", remedy=f"at most {LARGEST_DEVICES} are planned for"
            )
        device = Device("device", None, None, levels[0].link, memory_bytes=memory_bytes)
        return cls((DeviceGroup(device, levels[0].devices),), tuple(levels))

    @classmethod
    def read(cls, path: str, count: int = 1, defaults: Defaults = NO_DEFAULTS) -> Machine:
        """Read a machine from a TOML file: devices in order, or networks within networks, or *count* devices of one.

        Parameters
        ----------
        defaults
            What devices in order leave out.

        Raises
        ------
        InputError
            If there is no such file, or it describes none of them; it names the place.
        """
        table = toml_of_text(toml_text(path, "no such file"), path)
        if "peak_flops" in table:
            return cls.uniform(count, device_of_table(table, Path(path).stem, path))
        try:
            if table.keys() & {"device", "order", "transport", "link"}:
                return cls._of_table(machine_of_table(table, Path(path), defaults))
            return cls.of_levels(levels_of_table(table))
        except InputError as error:
            raise InputError(error.problem, source=path, where=error.where, remedy=error.remedy) from None

    @classmethod
    def _of_table(cls, table: MachineTable) -> Machine:
        groups = table.groups
        levels = (Level(sum(group.count for group in groups), groups[0].device.link),)
        return cls(groups, levels, table.name, table.order, table.transport, table.links)

    @property
    def count(self) -> int:
        """Number of devices."""
        return prod(level.devices for level in self.levels)

    @cached_property
    def devices(self) -> Sequence[Device]:
        """The devices in order; those of the innermost level, where there are several."""
        return tuple(chain.from_iterable(repeat(group.device, group.count) for group in self.groups))

    @property
    def first_gpus(self) -> Sequence[int]:
        """Number of the first GPU of each device, where one has as many as its largest degree, and all are in a row."""
        sizes = (device.tensor.degrees[-1] for device in self.devices)
        return list(accumulate(sizes, initial=0))[: self.count]

    @cached_property
    def names(self) -> Sequence[str]:
        """Name of each device: of its group, and by the group's number where it has none."""
        return self._of_each(self._group_names)

    @cached_property
    def places(self) -> Sequence[str]:
        """Place where a stage on each device runs: ``"cpu"``, ``"cuda:0"``."""
        return self._of_each([group.place for group in self.groups])

    def _of_each(self, of_group: Sequence[str]) -> Sequence[str]:
        rows = (repeat(value, group.count) for value, group in zip(of_group, self.groups, strict=True))
        return tuple(chain.from_iterable(rows))

    @cached_property
    def classes(self) -> Sequence[Device]:
        """Devices that differ in more than their names, in the order in which they first stand.

        Equal devices of neighbours are of one class only where their links to all others are equal, too.
        """
        if self.neighbours:
            return self.pairs.devices
        return tuple(dict.fromkeys(_nameless(group.device) for group in self.groups))

    @cached_property
    def links(self) -> Sequence[Link]:
        """Links that differ, in the order of the classes of devices that have them."""
        return tuple(dict.fromkeys(device.link for device in self.classes))

    @cached_property
    def class_of(self) -> Sequence[int]:
        """Class of each device of the innermost level, by its position in :attr:`classes`."""
        if self.neighbours:
            return self.pairs.class_of
        number = {device: i for i, device in enumerate(self.classes)}
        return tuple(number[_nameless(device)] for device in self.devices)

    @property
    def neighbours(self) -> bool:
        """Whether a tensor passes every boundary between the stage that makes it and its last reader."""
        return self.transport == NEIGHBOURS

    @cached_property
    def pairs(self) -> PairedClasses:
        """Classes of devices by their links as well, and the links between devices of two classes; of neighbours."""
        return PairedClasses.of([_nameless(device) for device in self.devices], self.names, self.pair_links)

    @cached_property
    def device(self) -> Device:
        """The device that all devices are equal to; of unequal ones, their envelope."""
        return self.envelope().groups[0].device

    def require_uniform(self) -> None:
        """Raise InputError if devices differ, or there are networks within networks."""
        if len(self.classes) > 1:
            raise InputError("all devices have to be equal here", parameter="devices")
        self.require_one_level()

    def require_one_level(self) -> None:
        """Raise InputError if there are networks within networks."""
        if len(self.levels) > 1:
            raise InputError("there has to be one network here", parameter="topology")

    @property
    def required_memory_bytes(self) -> int:
        """Memory of each device, for planners that need one.

        Raises
        ------
        InputError
            If there is none.
        """
        memory = self.device.memory_bytes
        if memory is None:
            raise InputError("must be given", parameter="memory", remedy="write ‹memory› 16GiB")
        return memory

    @property
    def free(self) -> bool:
        """Whether devices may stand anywhere in the pipeline."""
        return self.order == FREE

    def on(self, devices: Sequence[int]) -> Machine:
        """Return the machine of some of the devices, by their numbers, in the given and fixed order.

        Raises
        ------
        InputError
            If a number is no device, or a device is named twice.
        """
        self.require_one_level()
        if len(set(devices)) < len(devices) or not set(devices) <= set(range(self.count)) or not devices:
            raise InputError(f"not different numbers from 0 to {self.count - 1}: {list(devices)}", parameter="devices")
        each = [(self.devices[i], self.names[i], self.places[i]) for i in devices]
        groups = tuple(DeviceGroup(one[0], len(list(same)), *one[1:]) for one, same in groupby(each))
        names = [self.names[i] for i in devices]
        links = tuple(link for link in self.pair_links if link.joins_any(names))
        levels = (replace(self.levels[0], devices=len(devices)),)
        return replace(self, groups=groups, levels=levels, order=FIXED, pair_links=links)

    def named_as(self, other: Machine) -> Machine:
        """Return the same devices with the names of those of another machine, which has as many."""
        each = zip(self.devices, other.names, strict=True)
        groups = tuple(DeviceGroup(one[0], len(list(same)), one[1]) for one, same in groupby(each))
        return replace(self, groups=groups, name=other.name)

    def with_memory(self, size: int) -> Machine:
        """Return the same devices with *size* bytes of memory each."""
        return self.altered(lambda device: replace(device, memory_bytes=size))

    def altered(self, change: Callable[[Device], Device]) -> Machine:
        """Return a machine each of whose devices is changed."""
        return replace(self, groups=tuple(replace(group, device=change(group.device)) for group in self.groups))

    def envelope(self) -> Machine:
        """Return as many equal devices with the best figure of any device for each quantity.

        The least bottleneck on it is at most the least on this machine: transport is direct, and with that of
        neighbours no stage costs less than directly over the best of all links (:mod:`mtpp.machine.pairs`). Its
        speeds are for people: ticks of ops and tensors on it are the least of any class
        (:meth:`~mtpp.inference.stage_cost.StageCost.enveloped`), and none where a device has times of stages.
        """
        first, *others = self.classes
        if len(self.groups) == 1 and not first.stage_times_ps:
            return replace(self, transport=DIRECT, pair_links=()) if self.neighbours else self
        first = replace(first, name=BEST_OF_ALL if others else self.groups[0].device.name, stage_times_ps=())
        for other in others:
            first = Device(
                first.name,
                _largest(first.peak_flops_per_s, other.peak_flops_per_s),
                _largest(first.memory_bandwidth_bytes_per_s, other.memory_bandwidth_bytes_per_s),
                _best_link(first.link, other.link),
                _largest(first.fast_memory_bytes, other.fast_memory_bytes),
                min(first.activation_reserve_bytes, other.activation_reserve_bytes),
                first.peak,
                _largest(first.memory_bytes, other.memory_bytes),
                max(first.speed, other.speed),
                sequences=first.sequences,
            )
        levels = (replace(self.levels[0], link=first.link), *self.levels[1:])
        return Machine((DeviceGroup(first, sum(group.count for group in self.groups)),), levels, self.name)

    def to_document(
        self, times: Sequence[Sequence[Any] | None] = (), times_sha256: Sequence[str | None] = ()
    ) -> dict[str, Any]:
        """Return the JSON object that a plan carries as its ``machine``: the devices in order.

        Its ``sha256`` is of name, order, transport, links and the figures of devices, as compact JSON with sorted keys.

        Parameters
        ----------
        times
            For each class of devices the times of ops on it, in the graph's unit, where they have to be at hand.
        times_sha256
            For each class the SHA-256 of the file that these were measured in, if they were.
        """
        kept = [c for c, row in enumerate(times) if row is not None]
        rows = zip(self.devices, self.class_of, self.names, self.places, strict=True)
        devices = [
            {
                "name": name,
                **device.figures(),
                "place": place,
                **({"costs_sha256": times_sha256[c]} if times_sha256 and times_sha256[c] else {}),
            }
            for device, c, name, place in rows
        ]
        figures = {"name": self.name, "order": self.order, "transport": self.transport, "devices": devices}
        if self.pair_links:
            figures["links"] = [link.figures() for link in self.pair_links]
        text = json.dumps(figures, sort_keys=True, separators=(",", ":"))
        if not kept:
            return {**figures, "sha256": sha256(text.encode()).hexdigest()}
        numbered = [
            {**row, **({"times": kept.index(c)} if c in kept else {})}
            for row, c in zip(devices, self.class_of, strict=True)
        ]
        return {
            **figures,
            "devices": numbered,
            "sha256": sha256(text.encode()).hexdigest(),
            "times": [list(times[c] or ()) for c in kept],
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Machine:
        """Return the machine of :meth:`to_document`, without times.

        Raises
        ------
        InputError
            If a figure of a device is not allowed.
        """
        rows = [(Device.from_figures(one), one["name"], one["place"]) for one in document["devices"]]
        groups = tuple(DeviceGroup(one[0], len(list(same)), *one[1:]) for one, same in groupby(rows))
        levels = (Level(len(rows), groups[0].device.link),)
        links = tuple(map(GivenLink.from_figures, document.get("links", ())))
        return cls(groups, levels, document["name"], document["order"], document["transport"], links)

    def describe(self, *, computing: bool = True) -> str:
        """Return one line for people: devices in order, with speeds, memory and links.

        Parameters
        ----------
        computing
            Whether costs come from the devices' rates; else these are left out.
        """
        named = groupby(zip(self.names, self.devices, strict=True))
        counted = [(name, device, len(list(same))) for (name, device), same in named]
        each = [
            f"{f'{count} × ' if count > 1 else ''}{name} ({device.described(computing=computing and not device.costs)})"
            for name, device, count in counted
        ]
        order = "in any order" if self.free else "in this order"
        if self.neighbours:
            order += "".join(
                [", tensors from neighbour to neighbour", *(f"; {link.describe()}" for link in self.pair_links)]
            )
        return f"{self.name}: {'; '.join(each)}; {order}" if self.name else f"{'; '.join(each)}; {order}"

    @property
    def _group_names(self) -> list[str]:
        return [group.name or f"d{i}" for i, group in enumerate(self.groups)]

    def topology(self) -> list[dict[str, int]]:
        """Return ``system.topology`` of plans: the levels, the innermost first."""
        return [
            {"devices": level.devices, "bandwidth_bytes_per_s": level.link.bandwidth_bytes_per_s}
            for level in self.levels
        ]


class OnMachine:
    """What is planned for the devices of a machine."""

    machine: Machine

    @property
    def devices(self) -> int:
        """Number of devices in all, K."""
        return self.machine.count


class OnEqualDevices(OnMachine):
    """What is planned for devices with equal memory."""

    @property
    def memory_bytes(self) -> int:
        """Memory of each device, M."""
        return self.machine.required_memory_bytes


def _nameless(device: Device) -> Device:
    return replace(device, name="")


def _best_link(one: Link, other: Link) -> Link:
    """Return the link of the higher rate with the shorter latency."""
    return Link(ceil(max(one.rate, other.rate)), min(one.latency_ps, other.latency_ps))


def _largest(one: int | None, other: int | None) -> int | None:
    """Return the larger of two figures; None, which is no limit, is the largest."""
    return None if one is None or other is None else max(one, other)
