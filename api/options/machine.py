"""Machines that models are cut for: equal stages of an inference pipeline, and devices that train."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.options.kinds import Amounts, Choice, Number, Quantity, Rate, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.errors import InputError
from mtpp.names import PEAK_MODES
from mtpp.ranges import MOST_DEVICES, MOST_SEQUENCES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine
    from mtpp.machine.machine_file import Defaults
    from mtpp.units import Exact


def preset_names() -> Iterable[str]:
    """Return the names of the devices that come with the package."""
    from mtpp.machine.presets import preset_tables

    return preset_tables()


class Describing(Options):
    """Figures of a machine file that no list of devices has."""

    utilization: int | float | str | Fraction | None = option(
        None, Number(), "Share of each device's memory that an engine uses, such as 0.9 [default: all of it].", "SHARE"
    )

    tensor_link: int | str | None = option(
        None, Rate(), "Write GPUs of one board in a row as one node whose GPUs may share a stage, with this link "
        "between them, such as 450GB/s.", "RATE",
    )  # fmt: skip

    def __post_init__(self) -> None:
        share = self.utilization
        if share is not None and not isinstance(share, str) and share > 1:
            raise InputError(f"{float(share):g} is above 1", parameter="utilization", remedy="give a share such as 0.9")


class System(Options):
    """Device of each stage: a system, with values in place of its own."""

    system: str | os.PathLike[str] | Device | None = option(
        None, InputPath("the system", names=preset_names, other="Device"), "Preset or TOML file [default: reference].",
        "NAME|FILE", more="Or a :class:`mtpp.machine.device.Device`.",
    )  # fmt: skip
    bandwidth: int | str | None = option(None, Rate(), "Of the link between stages, such as 25GB/s.", "RATE")
    fast_memory: int | str | None = option(
        None, Quantity(0), "Of one stage, such as 24MiB; what exceeds it is streamed.", "SIZE"
    )
    activation_reserve: int | str | None = option(None, Quantity(0), "Part of the memory kept for activations.", "SIZE")
    peak: str | None = option(
        None, Choice(PEAK_MODES, "mode"),
        "Activations of a stage: the reserve, or as its ops run in the file's order [default: reserve].",
    )  # fmt: skip
    stage_memory: int | str | None = option(
        None, Quantity(0), "No stage may need more for parameters, states and activations.", "SIZE"
    )
    sequences: int | None = option(
        None, Whole(1, MOST_SEQUENCES), "Served at a time: a stage keeps its states for each [default: 1].",
        "N", more="States are what a model keeps between requests, such as a key/value cache.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        _ = self.device  # refused at the door

    @cached_property
    def device(self) -> Device:
        """The system with the values that are given in place of its own."""
        from mtpp.machine.device import Device
        from mtpp.machine.presets import DEFAULT_PRESET, load_device

        try:
            system = self.system if isinstance(self.system, Device) else load_device(str(self.system or DEFAULT_PRESET))
        except InputError as error:
            place = ": ".join(part for part in (error.source, error.where) if part)
            raise InputError(error.problem, parameter="system", where=place or None, remedy=error.remedy) from None
        if system.peak_flops_per_s is None or system.memory_bandwidth_bytes_per_s is None:
            raise InputError("has no rates, which model the work of ops", parameter="system")
        return system.overriding(**self._overrides)

    @cached_property
    def due(self) -> dict[str, Any]:
        """Values that a document's system has to have to be for this: all but the name where one is given."""
        from mtpp.machine.device import DOCUMENTED

        values = self.device.to_document()
        del values["name"]
        given = {DOCUMENTED.get(name, name) for name, value in self._overrides.items() if value is not None}
        values["sequences"] = self.device.sequences
        return {key: value for key, value in values.items() if self.system is not None or key in given}

    @property
    def defaults(self) -> Defaults:
        """Values that are given, for devices of a machine that leave them open."""
        from mtpp.machine.machine_file import Defaults

        device = None if self.system is None else System(system=self.system).device
        given: dict[str, Any] = {key: self._overrides[key] for key in _OPEN.values()}
        return Defaults(device, **given)

    @property
    def _overrides(self) -> dict[str, Any]:
        return {
            "bandwidth_bytes_per_s": self.bandwidth,
            "fast_memory_bytes": self.fast_memory,
            "activation_reserve_bytes": self.activation_reserve,
            "peak": self.peak,
            "memory_bytes": self.stage_memory,
            "sequences": self.sequences,
        }


class OnMachine(Options):
    """Machine of devices in order, each of its own kind."""

    machine: str | os.PathLike[str] | Machine | None = option(
        None, InputPath("the machine", other="Machine"),
        "In place of ‹system›: devices in order, which may differ; ‹k› is of them at most.", "FILE.toml",
        more="Or a :class:`mtpp.Machine`.",
    )  # fmt: skip

    def placed_for(self, system: System) -> Machine | None:
        """Return the machine, with values of a system where its devices leave some open; None where there is none.

        Raises
        ------
        InputError
            If the file describes no devices in order, or a value is given that the machine has.
        """
        from mtpp.machine.machine import Machine

        if self.machine is None:
            return None
        if isinstance(self.machine, Machine):
            machine = self.machine
            for name in ("system", *_OPEN):
                if getattr(system, name) is not None:
                    raise InputError("is a figure of the machine at hand", parameter=name, remedy="leave it out")
            machine.require_one_level()
        else:
            try:
                machine = Machine.read(os.fspath(self.machine), defaults=system.defaults)
            except InputError as error:
                if error.where == "/levels":
                    raise InputError("describes no devices", source=error.source, remedy=_EACH) from None
                if error.where is not None or error.source is None:
                    raise
                raise InputError(error.problem, parameter="machine", where=error.source, remedy=error.remedy) from None
            if not machine.groups[0].name:
                raise InputError("describes no devices in order", source=str(self.machine), remedy=_EACH)
            self._refuse_without_effect(system, machine)
        for name, field in (("fast_memory", "fast_memory_bytes"), ("stage_memory", "memory_bytes")):
            size = getattr(system, name)
            if size is None:
                continue
            if any(getattr(device, field) is not None for device in machine.classes):
                raise InputError("is a figure of the machine", parameter=name, remedy="leave it out")
            machine = _overriding(machine, **{field: size})
        return machine if system.sequences is None else _overriding(machine, sequences=system.sequences)

    def _refuse_without_effect(self, system: System, machine: Machine) -> None:
        """Refuse values for figures that no device leaves open: with any other value the machine is the same.

        Raises
        ------
        InputError
            It names the value.
        """
        from mtpp.machine.machine import Machine

        given, path = system.defaults, str(self.machine)
        for name, field in (("system", "system"), *_OPEN.items()):
            value = getattr(given, field)
            if value is None:
                continue
            try:
                other = Machine.read(path, defaults=replace(given, **{field: _another(value)}))
            except InputError:  # which it does not raise for the value that is given
                continue
            if other == machine:
                problem = f"has no effect: the devices of {path} say all that it would"
                raise InputError(problem, parameter=name, remedy="leave it out")


def _another(value: Any) -> Any:
    """Return another amount, way to count activations or system with rates than the one that is given."""
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return next(mode for mode in PEAK_MODES if mode != value)
    rate, link = value.peak_flops_per_s, value.link.bandwidth_bytes_per_s
    return value.overriding(peak_flops_per_s=rate + 1, bandwidth_bytes_per_s=link + 1)


_EACH = "describe each device: [[device]]"


def _overriding(machine: Machine, **figures: int) -> Machine:
    """Return a machine with figures that all of its devices have."""
    return machine.altered(lambda device: device.overriding(**figures))


_OPEN = {
    "bandwidth": "bandwidth_bytes_per_s",
    "peak": "peak",
    "activation_reserve": "activation_reserve_bytes",
}
"""Options that devices of a machine may leave open, and the figures that they are."""


class Devices(Options):
    """Devices of a training pipeline; a plan may use fewer."""

    devices: int | None = option(None, Whole(1, MOST_DEVICES), "Devices at most.", "K")
    memory: str | int | Iterable[str | int] | None = option(
        None, Amounts(), "Of each device, such as 8GiB; of pfeife: also one of each.", "SIZE",
        more="With :class:`mtpp.Pfeife`, None is no limit.",
    )  # fmt: skip
    bandwidth: str | int | None = option(
        None, Rate(), "Of each device's link, such as 25GiB/s or 25GiB/ms.", "RATE",
        more="With :class:`mtpp.Pfeife`, None is 25 GB/s.",
    )  # fmt: skip
    topology: str | os.PathLike[str] | Machine | None = option(
        None, InputPath("the topology", other="Machine"),
        "In place of ‹devices› and ‹bandwidth›: networks within networks.", "FILE.toml",
        more="Or a :class:`mtpp.Machine` of several levels.",
    )  # fmt: skip
    machine: str | os.PathLike[str] | Machine | None = option(
        None, InputPath("the machine", other="Machine"),
        "In place of ‹devices› and ‹memory›: devices in order, of pfeife with speed and memory of each.", "FILE.toml",
        more="Or a :class:`mtpp.Machine`.",
    )  # fmt: skip

    @cached_property
    def levels(self) -> Machine | None:
        """Machine of a topology, without memory; None where *devices* with *bandwidth* are one network."""
        from mtpp.machine.machine import Machine

        if self.topology is None or isinstance(self.topology, Machine):
            return self.topology
        read = Machine.read(os.fspath(self.topology))
        if read.device.peak_flops_per_s is not None:
            raise InputError("describes a device, not networks", parameter="topology", remedy="write it as ‹system›")
        return read

    @property
    def count(self) -> int | None:
        """Number of devices; None where nothing says it."""
        return self.devices if self.levels is None else self.levels.count

    @property
    def rate(self) -> int | None:
        """Bandwidth of each device's link in bytes per second; None where nothing says it."""
        if self.levels is not None:
            return self.levels.device.link.bandwidth_bytes_per_s
        return None if self.bandwidth is None else int(self.bandwidth)

    def as_machine(
        self,
        bandwidth: int | None = None,
        *,
        latency_ps: int = 0,
        speeds: Any = None,
        named: Machine | None = None,
    ) -> Machine:
        """Return the machine, whose devices and bandwidth have to be known.

        Parameters
        ----------
        bandwidth
            In place of one that was not given, in bytes per second.
        speeds
            Of each device, or one for all.
        named
            Machine whose devices these are.

        Raises
        ------
        InputError
            If there is not one memory or speed for each device.
        """
        from mtpp.machine.machine import Machine

        if self.levels is not None:
            given = self.equal_memory()
            return self.levels if given is None else self.levels.with_memory(given)
        count, rate = self.count or 0, self.rate or bandwidth or 0
        each: Sequence[Exact] | None = speeds if speeds is None or isinstance(speeds, tuple) else [speeds] * count
        memory: Any = self.memory
        machine = Machine.of_devices(
            count, bandwidth_bytes_per_s=rate, memory_bytes=memory, latency_ps=latency_ps, speeds=each
        )
        return machine if named is None else machine.named_as(named)

    def refuse_pairs(self) -> None:
        """Refuse a topology beside what it says already; of planners that take one."""
        for name in ("devices", "bandwidth") if self.topology is not None else ():
            if getattr(self, name) is not None:
                raise InputError(f"says what ‹{name}› does", parameter="topology", remedy="give one of them")

    def equal_memory(self) -> int | None:
        """Return the memory of every device in bytes, for planners that take no other."""
        if self.memory is None and self.levels is not None:
            return self.levels.device.memory_bytes
        if self.memory is None or isinstance(self.memory, int):
            return self.memory
        raise InputError("is one amount for all devices", parameter="memory")
