"""Devices in order, which may differ, as a plan for a machine states them; its graph in ticks on each of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from mtpp.checker.document import ABSTRACT
from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph, ceil_div, model_in_ticks
from mtpp.checker.pair_links import NEIGHBOURS, PairLink, PairTicks, check_links, classes_by_links, pair_links
from mtpp.checker.report import Check, fact
from mtpp.document_shape import Path, refuse

Times = Sequence[Any]
"""Time of each op on a device, in the graph's unit: int, Decimal or Fraction."""

ENVELOPE = "envelope"
"""Key of a proof that is of the envelope: equal devices with the best figure of any for each quantity."""

_SPEED = re.compile("[1-9][0-9]{0,39}(/[1-9][0-9]{0,39})?")
_FIGURES = (
    *("peak_flops_per_s", "memory_bandwidth_bytes_per_s", "bandwidth_bytes_per_s", "fast_memory_bytes"),
    *("activation_reserve_bytes", "peak", "stage_memory_bytes", "latency_ps", "speed", "link_speed"),
    *("sequences", "costs_sha256", "times", "stage_times_ps", "tensor_parallel", "tensor_link_bytes_per_s"),
)
"""All of a device but its name and place: devices that share them are of one class."""

STAGE_TIMES = "stage_times_ps"
"""Key of a device's times of stages of 1, 2, … ops, in place of all other times; longer stages are impossible."""

_DIGESTED = ("name", "order", "transport", "devices")


@dataclass(frozen=True)
class PlacedGraph:
    """A graph on a machine.

    Attributes
    ----------
    machine
        As the plan states it.
    by_device
        The graph with the ticks of ops and tensors on each device; equal devices share one. With transport by
        neighbours tensors take the least that they take between the device and any other one.
    pairs
        Ticks of tensors between devices of two classes; None: transport is direct.
    direct
        With transport by neighbours: the graph with the ticks of tensors over each device's own link.
    """

    machine: Mapping[str, Any]
    by_device: Sequence[TickGraph]
    pairs: PairTicks | None = None
    direct: Sequence[TickGraph] = ()

    @property
    def devices(self) -> Sequence[Mapping[str, Any]]:
        """The devices in the order of the list."""
        devices: Sequence[Mapping[str, Any]] = self.machine["devices"]
        return devices

    @cached_property
    def class_of(self) -> list[int]:
        """Class of each device; classes are numbered in the order in which they first stand."""
        return classes_of(self.machine)

    @cached_property
    def by_class(self) -> list[tuple[TickGraph, dict[str, Any]]]:
        """Graph and system of each class of devices; a system's bandwidth is the exact rate of its link."""
        first = [self.class_of.index(c) for c in range(max(self.class_of) + 1)]
        return [
            (self.by_device[i], {**self.devices[i], "bandwidth_bytes_per_s": rate_of(self.devices[i])}) for i in first
        ]

    @property
    def one_class(self) -> bool:
        """Whether all devices are of one class."""
        return max(self.class_of) == 0

    def between_stages(self, devices: Sequence[int]) -> Callable[[int, int], Sequence[int]] | None:
        """Return what gives the ticks of each tensor between two stages; None with direct transport.

        Parameters
        ----------
        devices
            Of each stage, by its number.
        """
        pairs = self.pairs
        if pairs is None:
            return None
        return lambda one, other: pairs.between(self.class_of[devices[one]], self.class_of[devices[other]])

    @property
    def all_graphs(self) -> Sequence[TickGraph]:
        """The graphs of all devices, and with the ticks of tensors over each own link, and over each link of a pair."""
        rows = [] if self.pairs is None else self.pairs.rows
        return [*self.by_device, *self.direct, *(replace(self.by_device[0], transfer=list(row)) for row in rows)]

    @property
    def uniform(self) -> bool:
        """Whether all devices are of one class, and stages on them cost what their ops and the tensors they cut do."""
        return self.one_class and STAGE_TIMES not in self.devices[0] and self.pairs is None

    @cached_property
    def envelope(self) -> TickGraph:
        """The graph with the least ticks that an op or tensor takes on any device."""
        if self.one_class:
            return self.by_device[0]
        graphs = list({id(graph): graph for graph in self.by_device}.values())
        work = [min(ticks) for ticks in zip(*(graph.work for graph in graphs), strict=True)]
        transfer = [min(ticks) for ticks in zip(*(graph.transfer for graph in graphs), strict=True)]
        return replace(graphs[0], work=work, transfer=transfer)

    @cached_property
    def best(self) -> dict[str, Any]:
        """System of the envelope: no stage costs more, or needs more memory, on it than on any device."""
        return {
            "peak_flops_per_s": self._largest("peak_flops_per_s"),
            "memory_bandwidth_bytes_per_s": self._largest("memory_bandwidth_bytes_per_s"),
            "bandwidth_bytes_per_s": max(-(-rate_of(device) // 1) for device in self.devices),
            "fast_memory_bytes": self._largest("fast_memory_bytes"),
            "activation_reserve_bytes": min(device["activation_reserve_bytes"] for device in self.devices),
            "peak": self.devices[0]["peak"],
            "stage_memory_bytes": self._largest("stage_memory_bytes"),
        }

    def _largest(self, key: str) -> int | None:
        sizes = [device[key] for device in self.devices]
        return None if None in sizes else max(sizes)


def placed_graph(
    machine: Mapping[str, Any], document: Any, k: int, times_due: Sequence[Times | None] | None, *, embedded: bool
) -> PlacedGraph:
    """Return a graph whose costs are in its time unit on each device of a machine.

    Parameters
    ----------
    document
        An mtpp-graph.
    k
        Devices that may be used at most: they decide on the ticks of abstract graphs.
    times_due
        Times of ops on each device, which take the place of work and speed, as the model gives them.
    embedded
        Whether the graph stands in the plan itself.

    Raises
    ------
    InputError
        If the graph or a figure of a device is not allowed, or the two do not go together.
    """
    devices = machine["devices"]
    path: Path = ("graph",) if embedded else ()
    times = [_times_of(machine, i) if due is None else due for i, due in enumerate(times_due or [None] * len(devices))]
    _check_devices(devices, document)
    check_links(machine, abstract=isinstance(document, dict) and document.get("time_unit") == ABSTRACT)
    for i, link in enumerate(machine.get("links", [])):
        _check_speed(link.get("link_speed", "1"), ("machine", "links", i, "link_speed"))
    whole = all(
        (row is not None or device["speed"] == "1") and device["link_speed"] == "1"
        for row, device in zip(times, devices, strict=True)
    ) and all(link.get("link_speed", "1") == "1" for link in machine.get("links", []))
    graphs: dict[Any, TickGraph] = {}
    found = []
    for i, device in enumerate(devices):
        key = (_class_key(device), None if times[i] is None else id(times[i]))
        if key not in graphs:
            own = times[i]
            if own is not None and len(own) != len(document["ops"]):
                refuse(f"{len(own)} times for {len(document['ops'])} ops", ("machine", "times"))
            speed = Fraction(1) if own is not None else speed_of(device, "speed")
            graphs[key] = model_in_ticks(
                document, rate_of(device), k, path, times=own, whole=whole, speed=speed,
                link_speed=speed_of(device, "link_speed"), latency=device["latency_ps"],
            )  # fmt: skip
            if STAGE_TIMES in device:
                graphs[key] = _without_costs(graphs[key], ("machine", "devices", i, STAGE_TIMES))
        found.append(graphs[key])
    if machine["transport"] != NEIGHBOURS:
        return PlacedGraph(machine, found)
    class_of, links = classes_of(machine), pair_links(machine)
    pairs = _pair_ticks(
        class_of, links, lambda link: model_in_ticks(
            document, link.rate, k, path, whole=whole, link_speed=link.speed, latency=link.latency
        ).transfer,
    )  # fmt: skip
    least = [pairs.least(c, len(found[0].transfer)) for c in range(max(class_of) + 1)]
    by_class: dict[tuple[int, int], TickGraph] = {}
    for i, c in enumerate(class_of):
        by_class.setdefault((id(found[i]), c), replace(found[i], transfer=least[c]))
    return PlacedGraph(machine, [by_class[id(found[i]), c] for i, c in enumerate(class_of)], pairs, found)


def classes_of(machine: Mapping[str, Any]) -> list[int]:
    """Return the class of each device; classes are numbered in the order in which they first stand."""
    keys = [_class_key(device) for device in machine["devices"]]
    if machine["transport"] == NEIGHBOURS:
        return classes_by_links(keys, pair_links(machine))
    order = list(dict.fromkeys(keys))
    return [order.index(key) for key in keys]


def _pair_ticks(
    class_of: Sequence[int],
    links: Sequence[Sequence[PairLink | None]],
    ticks: Callable[[PairLink], Sequence[int]],
) -> PairTicks:
    """Return the ticks of tensors between devices of two classes, given those on a link."""
    classes = max(class_of) + 1
    number: dict[PairLink, int] = {}
    row_of: list[list[int | None]] = [[None] * classes for _ in range(classes)]
    for i, row in enumerate(links):
        for j, link in enumerate(row):
            if link is not None:
                row_of[class_of[i]][class_of[j]] = number.setdefault(link, len(number))
    return PairTicks([ticks(link) for link in number], row_of)


def _without_costs(graph: TickGraph, path: Path) -> TickGraph:
    """Return a graph whose ops and tensors take no time, for a device with times of stages: it has to be a chain."""
    followed = {(graph.order[i], graph.order[i + 1]) for i in range(graph.op_count - 1)}
    if {(maker, reader) for _, maker, reader in graph.edges()} != followed:
        refuse("times of stages are of a chain of equal layers, which the graph is not", path)
    return replace(graph, work=[0] * graph.op_count, transfer=[0] * len(graph.transfer))


def on_devices(machine: Mapping[str, Any]) -> str:
    """Say which devices stages stand on."""
    order = "in any order" if machine["order"] == "free" else "in their order"
    return f" on {counted(len(machine['devices']), 'device')} {order}"


def speed_of(device: Mapping[str, Any], key: str) -> Fraction:
    """Return a speed or link speed, written as a whole number or ratio."""
    return Fraction(device[key])


def rate_of(device: Mapping[str, Any]) -> Fraction:
    """Return the bytes per second that a device sends and receives."""
    rate: Fraction = device["bandwidth_bytes_per_s"] * speed_of(device, "link_speed")
    return rate


def digest_of(machine: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the figures of a machine, written as compact JSON with sorted keys."""
    figures = {key: machine[key] for key in (*_DIGESTED, *(["links"] if "links" in machine else []))}
    figures["devices"] = [{k: v for k, v in device.items() if k != "times"} for device in machine["devices"]]
    text = json.dumps(figures, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def machine_rows(plan: Mapping[str, Any], placed: PlacedGraph, due: Mapping[str, Any] | None) -> list[Check]:
    """Return the rows on a machine: its figures, the system that they come to, and the device of each stage.

    Parameters
    ----------
    due
        What the caller holds it to, in the same form; None: the machine is the plan's to choose.
    """
    machine = placed.machine
    own = [] if "replicas" in plan else [_devices_row(plan, machine)]
    return [_machine_row(machine, due), _best_row(plan["system"], placed), *own]


def times_row(
    machine: Mapping[str, Any],
    times_due: Sequence[Times | None] | None,
    measured_due: Sequence[Times | None] | None = None,
) -> list[Check]:
    """Return the row on times of ops that the plan states: those of the model, or measured ones."""
    name = "times on devices"
    if "times" not in machine:
        return []
    measured = 0
    for i, device in enumerate(machine["devices"]):
        stated = _times_of(machine, i)
        due = None if times_due is None else times_due[i]
        file = measured_due[i] if measured_due is not None and i < len(measured_due) else None
        if file is not None and (stated is None or list(file) != list(stated)):
            return [Check(name, False, f"those of device {i} are not the ones in its file")]
        if due is not None and stated is not None and list(due) != list(stated):
            return [Check(name, False, f"those of device {i} are not the model's")]
        if times_due is not None and due is None and stated is not None and "costs_sha256" not in device:
            return [Check(name, False, f"device {i} has times of its own, and no file that they were measured in")]
        measured += "costs_sha256" in device
    return [fact(name, f"measured on {counted(measured, 'device')}" if measured else "taken with the graph")]


def _machine_row(machine: Mapping[str, Any], due: Mapping[str, Any] | None) -> Check:
    digest = digest_of(machine)
    said = f"{machine['name']}: {counted(len(machine['devices']), 'device')}, order {machine['order']}"
    if machine["transport"] == NEIGHBOURS:
        said += f", tensors from neighbour to neighbour, {counted(len(machine.get('links', [])), 'link')} given"
    if machine["sha256"] != digest:
        return Check("machine", False, f"the plan says SHA-256 {machine['sha256']}, its figures have {digest}")
    if due is not None and digest_of(due) != digest:
        return Check("machine", False, f"the plan is for SHA-256 {digest}, it has to be {digest_of(due)}")
    return fact("machine", said) if due is None else Check("machine", True, f"{said}, SHA-256 {digest}")


def _best_row(system: Mapping[str, Any], placed: PlacedGraph) -> Check:
    name = "envelope"
    best = dict(placed.best)
    if placed.one_class:
        best["bandwidth_bytes_per_s"] = placed.devices[0]["bandwidth_bytes_per_s"]
    served = placed.devices[0].get("sequences", 1)
    if system.get("sequences", 1) != served:
        return Check(
            name, False, f"the plan says {system.get('sequences', 1)} sequences, of the devices it is {served}"
        )
    for key, value in best.items():
        if system.get(key) != value:
            return Check(
                name, False, f"the plan says {key} {system.get(key)} of the system, of the devices it is {value}"
            )
    return Check(name, True, "the system has the best figures of the devices")


def _devices_row(plan: Mapping[str, Any], machine: Mapping[str, Any]) -> Check:
    name, stages, devices = "devices", plan["stages"], machine["devices"]
    if len(stages) != len(devices):
        return Check(name, False, f"the plan lists {len(stages)} stages, the machine {counted(len(devices), 'device')}")
    numbers = [stage["device"]["index"] if "device" in stage else -1 for stage in stages]
    for s, (stage, number) in enumerate(zip(stages, numbers, strict=True)):
        if not 0 <= number < len(devices):
            return Check(name, False, f"stage {s} stands on no device of the machine")
        if stage["device"]["name"] != devices[number]["name"]:
            due = devices[number]["name"]
            return Check(name, False, f"stage {s}: device {number} is {due!r}, not {stage['device']['name']!r}")
        if numbers.index(number) < s:
            return Check(name, False, f"stages {numbers.index(number)} and {s} both stand on device {number}")
    busy = [s for s, stage in enumerate(stages) if stage["ops"]]
    if plan["k"] > len(devices):
        return Check(name, False, f"k is {plan['k']}, the machine has {counted(len(devices), 'device')}")
    if len(busy) > plan["k"]:
        return Check(name, False, f"{counted(len(busy), 'stage')} have ops, k is {plan['k']}")
    if machine["order"] == "fixed" and numbers != list(range(len(devices))):
        return Check(name, False, "the order is fixed, and stages do not stand in the order of the devices")
    unused = numbers[len(busy) :]
    if machine["order"] == "free" and (busy != list(range(len(busy))) or unused != sorted(unused)):
        return Check(name, False, "stages with ops do not come first, or devices without ops not in order")
    return Check(name, True, f"{counted(len(busy), 'stage')} on {counted(len(busy), 'device')} of {len(devices)}")


def _check_speed(speed: str, at: Path) -> None:
    if not _SPEED.fullmatch(speed):
        refuse(f"{speed[:60]!r} is no speed", at, 'write it like "3" or "3/2"')


def _check_devices(devices: Sequence[Mapping[str, Any]], document: Any) -> None:
    for i, device in enumerate(devices):
        at: Path = ("machine", "devices", i)
        for key in ("speed", "link_speed"):
            _check_speed(device[key], (*at, key))
        if STAGE_TIMES in device:
            _check_stage_times(device, document, (*at, STAGE_TIMES))
        if device["peak"] != devices[0]["peak"]:
            refuse("devices count activations in several ways", (*at, "peak"))
        if device.get("sequences", 1) != devices[0].get("sequences", 1):
            refuse("devices serve several numbers of sequences", (*at, "sequences"))
        for memory, words in (("fast_memory_bytes", "fast memory"), ("stage_memory_bytes", "stage memory")):
            if device[memory] is not None and device["activation_reserve_bytes"] > device[memory]:
                refuse(f"the activation reserve is above the {words}", (*at, "activation_reserve_bytes"))
        if isinstance(document, dict) and document.get("time_unit") == ABSTRACT:
            if device["fast_memory_bytes"] is not None:
                refuse("a fast memory needs a graph with a time unit", (*at, "fast_memory_bytes"))
            if device["latency_ps"]:
                refuse("a latency needs a graph with a time unit", (*at, "latency_ps"))


def _check_stage_times(device: Mapping[str, Any], document: Any, path: Path) -> None:
    if not device[STAGE_TIMES]:
        refuse("there are no times", path)
    beside = (device["speed"] != "1", device["fast_memory_bytes"] is not None, device["peak"] != "reserve")
    if any(beside) or "times" in device or "costs_sha256" in device:
        refuse("times of stages do not go with speed, fast memory, working memory in order or times of ops", path)
    if isinstance(document, dict) and document.get("time_unit") == ABSTRACT:
        refuse("times of stages need a graph with a time unit", path)


def _times_of(machine: Mapping[str, Any], i: int) -> Times | None:
    number = machine["devices"][i].get("times")
    if number is None:
        return None
    rows = machine.get("times", [])
    if number >= len(rows):
        refuse(f"there are no times {number}", ("machine", "devices", i, "times"))
    times: Times = rows[number]
    return times


def _class_key(device: Mapping[str, Any]) -> tuple[Any, ...]:
    figures = [device.get(key) for key in _FIGURES]
    return tuple(tuple(figure) if isinstance(figure, list) else figure for figure in figures)


def overflow_ticks(excess: int, device: Mapping[str, Any], ticks_per_s: int) -> int:
    """Return the time to stream bytes that a fast memory does not hold, rounded up."""
    rate = rate_of(device)
    return ceil_div(excess * ticks_per_s * rate.denominator, rate.numerator)
