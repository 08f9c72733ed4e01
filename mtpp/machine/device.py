"""Devices: how fast one computes, how fast it talks, how much it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mtpp.errors import InputError
from mtpp.machine.link import Link
from mtpp.machine.tensor_group import ONE_GPU, TensorGroup
from mtpp.names import PEAK_MODES
from mtpp.units import (
    PICOSECONDS,
    Exact,
    above_zero,
    ceil_ratio,
    format_bandwidth,
    format_bytes,
    format_compute_rate,
    format_picoseconds,
)

_LEAST = {
    "peak_flops_per_s": 1,
    "memory_bandwidth_bytes_per_s": 1,
    "bandwidth_bytes_per_s": 1,
    "fast_memory_bytes": 0,
    "activation_reserve_bytes": 0,
    "stage_memory_bytes": 0,
}
_RATES = ("peak_flops_per_s", "memory_bandwidth_bytes_per_s")
LARGEST_STAGE_TIME = 2**61
"""Times of stages are below it, in picoseconds."""

DOCUMENTED = {"memory_bytes": "stage_memory_bytes"}
"""Fields that documents call by another name."""

_MAY_BE_NONE = (*_RATES, "fast_memory_bytes", "stage_memory_bytes")


@dataclass(frozen=True)
class Device:
    """One accelerator with its link, which holds one stage.

    Attributes
    ----------
    peak_flops_per_s, memory_bandwidth_bytes_per_s
        The roofline that models the work of an op; None where models bring their own times.
    link
        To the other devices; overflowing parameters are streamed over it as well (the papers' B).
    fast_memory_bytes
        Memory for parameters and activations of one stage (the papers' M); None: no limit, no overflow.
    activation_reserve_bytes
        peak(S) of every non-empty stage when *peak* is ``"reserve"``.
    peak
        One of :data:`~mtpp.names.PEAK_MODES`.
    memory_bytes
        No stage may need more for parameters and activations; None: no limit.
    speed
        Multiple of the speed that a model's times, or its own rates, are of.
    costs
        File with measured times of ops, in place of rates and speed; empty where there is none.
    sequences
        Sequences that are served at a time: a stage keeps as many copies of each state that it reads.
    stage_times_ps
        Time of a stage of 1, 2, … ops of a chain whose ops are equal layers, in place of work and transfers; longer
        stages are impossible. Empty where stages cost what their ops and tensors do.
    tensor
        GPUs that may share a stage, each with all of these figures.

    Raises
    ------
    InputError
        If a figure is no whole number or out of range, or the reserve is above a memory.
    """

    name: str
    peak_flops_per_s: int | None
    memory_bandwidth_bytes_per_s: int | None
    link: Link
    fast_memory_bytes: int | None = None
    activation_reserve_bytes: int = 0
    peak: str = "reserve"
    memory_bytes: int | None = None
    speed: Exact = 1
    costs: str = ""
    sequences: int = 1
    stage_times_ps: tuple[int, ...] = ()
    tensor: TensorGroup = ONE_GPU

    def __post_init__(self) -> None:
        figures = self.to_document()
        for quantity, least in _LEAST.items():
            value = figures[quantity]
            if value is None and quantity in _MAY_BE_NONE:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"{quantity} {value!r} is not a whole number", source=self.name)
            if value < least:
                raise InputError(f"{quantity} must be {'above' if least else 'at least'} zero", source=self.name)
        above_zero(self.speed, "speed")
        if isinstance(self.sequences, bool) or not isinstance(self.sequences, int) or self.sequences < 1:
            raise InputError(f"must be a whole number of at least 1, not {self.sequences!r}", parameter="sequences")
        if self.peak not in PEAK_MODES:
            raise InputError(f"unknown peak mode {self.peak!r}", remedy=f"use one of {', '.join(PEAK_MODES)}")
        if self.stage_times_ps:
            self._check_stage_times()
        if self.tensor and self.costs:
            raise InputError("tensor_parallel does not go with costs, which are of one GPU", source=self.name)
        for memory, what in ((self.fast_memory_bytes, "fast memory"), (self.memory_bytes, "stage memory")):
            if memory is not None and self.activation_reserve_bytes > memory:
                raise InputError(
                    f"the activation reserve ({format_bytes(self.activation_reserve_bytes)}) is above the {what} "
                    f"({format_bytes(memory)})",
                    remedy=f"lower ‹activation_reserve› or raise ‹{what.replace(' ', '_')}›",
                )

    def _check_stage_times(self) -> None:
        """Raise InputError unless times of stages are whole numbers, and all that the device says of time."""
        for time in self.stage_times_ps:
            if isinstance(time, bool) or not isinstance(time, int) or not 0 <= time < LARGEST_STAGE_TIME:
                raise InputError(f"a stage time of {time!r} is no whole number of picoseconds below 2^61")
        for given, name in (
            (self.speed != 1, "speed"),
            (bool(self.costs), "costs"),
            (self.fast_memory_bytes is not None, "fast memory"),
            (self.peak != "reserve", "peak"),
            (bool(self.tensor), "tensor_parallel"),
        ):
            if given:
                raise InputError(f"stage_times do not go with {name}", source=self.name)

    @property
    def rates(self) -> tuple[int | None, int | None]:
        """Peak and memory bandwidth: what models the work of ops."""
        return self.peak_flops_per_s, self.memory_bandwidth_bytes_per_s

    @property
    def limits_memory(self) -> bool:
        """Whether the memory that a stage needs changes its cost or whether it may be at all."""
        return self.fast_memory_bytes is not None or self.memory_bytes is not None

    def modelled_work_ps(self, flops: int, traffic_bytes: int) -> int:
        """Return the roofline time of an op in picoseconds: max(flops / peak, bytes / memory bandwidth) / speed.

        Rounded up once.

        Raises
        ------
        InputError
            If the device has no rates.
        """
        if self.peak_flops_per_s is None or self.memory_bandwidth_bytes_per_s is None:
            raise InputError("has no rates, which model the work of ops", source=self.name)
        fast, second = self.speed.numerator, PICOSECONDS["s"] * self.speed.denominator
        return max(
            ceil_ratio(flops * second, self.peak_flops_per_s * fast),
            ceil_ratio(traffic_bytes * second, self.memory_bandwidth_bytes_per_s * fast),
        )

    def overflow_ps(self, held_bytes: int) -> int:
        """Return the time to stream what the fast memory does not hold, in picoseconds, rounded up (eq. 2)."""
        memory = self.fast_memory_bytes
        return 0 if memory is None else self.link.streaming_ps(max(0, held_bytes - memory))

    def overriding(self, *, bandwidth_bytes_per_s: int | None = None, **changes: Any) -> Device:
        """Return this device with the given fields replaced where they are not None."""
        given = {key: value for key, value in changes.items() if value is not None}
        if bandwidth_bytes_per_s is not None:
            given["link"] = replace(self.link, bandwidth_bytes_per_s=bandwidth_bytes_per_s)
        return replace(self, **given) if given else self

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object that a plan carries as its ``system``; :meth:`from_document` reads it back.

        It has ``sequences`` where they are more than one.
        """
        return {
            "name": self.name,
            "peak_flops_per_s": self.peak_flops_per_s,
            "memory_bandwidth_bytes_per_s": self.memory_bandwidth_bytes_per_s,
            "bandwidth_bytes_per_s": self.link.bandwidth_bytes_per_s,
            "fast_memory_bytes": self.fast_memory_bytes,
            "activation_reserve_bytes": self.activation_reserve_bytes,
            "peak": self.peak,
            "stage_memory_bytes": self.memory_bytes,
            **({"sequences": self.sequences} if self.sequences != 1 else {}),
        }

    def figures(self) -> dict[str, Any]:
        """Return the figures that a plan's ``machine`` holds of the device, with speeds as ``"3/2"``."""
        figures = self.to_document()
        del figures["name"]
        return figures | {
            "latency_ps": self.link.latency_ps,
            "speed": str(self.speed),
            "link_speed": str(self.link.speed),
            **({"stage_times_ps": list(self.stage_times_ps)} if self.stage_times_ps else {}),
            **self.tensor.figures(),
        }

    @classmethod
    def from_figures(cls, figures: Mapping[str, Any]) -> Device:
        """Return the device of :meth:`figures`, among which there may be others.

        Raises
        ------
        InputError
            If a value is not allowed.
        """
        plain = {key: figures[key] for key in (*_LEAST, "peak")} | {"sequences": figures.get("sequences", 1)}
        device = cls.from_document({"name": "device", **plain})
        try:
            link = replace(device.link, latency_ps=figures["latency_ps"], speed=Fraction(figures["link_speed"]))
            times = tuple(figures.get("stage_times_ps", ()))
            speed, tensor = Fraction(figures["speed"]), TensorGroup.from_figures(figures)
            return replace(device, link=link, speed=speed, stage_times_ps=times, tensor=tensor)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise InputError(f"not a device: {error}", where="/machine/devices") from None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Device:
        """Read the JSON object that :meth:`to_document` writes.

        Raises
        ------
        InputError
            If a key is missing or unknown, or its value is not allowed.
        """
        try:
            figures = dict(document)
            for key in _RATES:
                if key not in figures:
                    raise TypeError(f"{key} is missing")
            link, memory = Link(figures.pop("bandwidth_bytes_per_s")), figures.pop("stage_memory_bytes", None)
            if figures.keys() & {"speed", "link", "memory_bytes", "costs", "stage_times_ps", "tensor"}:
                raise TypeError("unknown key")
            return cls(**figures, link=link, memory_bytes=memory)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a system: {error}", where="/system") from None

    def describe(self, *, computing: bool = True) -> str:
        """Return one line for people: name, rates and memory; of computing only where costs come from them."""
        return f"{self.name}: {self.described(computing=computing)}"

    def described(self, *, computing: bool = True) -> str:
        """Return the same without the name."""
        if self.stage_times_ps:
            return self._described_by_stages()
        parts = [f"link {format_bandwidth(self.link.bandwidth_bytes_per_s)}"]
        if computing and self.peak_flops_per_s is not None and self.memory_bandwidth_bytes_per_s is not None:
            memory = f"memory {format_bandwidth(self.memory_bandwidth_bytes_per_s)}"
            parts = [format_compute_rate(self.peak_flops_per_s), memory, *parts]
        if self.fast_memory_bytes is None:
            parts.append("no fast-memory limit")
        else:
            parts.append(f"fast memory {format_bytes(self.fast_memory_bytes)}")
        if self.memory_bytes is not None:
            parts.append(f"at most {format_bytes(self.memory_bytes)} per stage")
        if self.limits_memory and self.peak == "reserve":
            parts.append(f"{format_bytes(self.activation_reserve_bytes)} of it reserved for activations")
        elif self.limits_memory:
            parts.append("activations as run in order")
        if self.sequences != 1:
            parts.append(f"{self.sequences:,} sequences at a time")
        if self.link.latency_ps:
            parts.append(f"{format_picoseconds(self.link.latency_ps)} a message")
        for speed, what in ((self.speed, "speed"), (self.link.speed, "link speed")):
            if speed != 1:
                parts.append(f"{what} {speed}")
        if self.tensor:
            parts.append(self.tensor.described())
        if self.costs:
            parts.append(f"times measured: {self.costs}")
        return ", ".join(parts)

    def _described_by_stages(self) -> str:
        most, first = len(self.stage_times_ps), format_picoseconds(self.stage_times_ps[0])
        last = f" to {format_picoseconds(self.stage_times_ps[-1])}" if most > 1 else ""
        limit = "" if self.memory_bytes is None else f", at most {format_bytes(self.memory_bytes)} per stage"
        return f"{first}{last} for stages of {f'1 to {most} ops' if most > 1 else 'one op'}{limit}"


@dataclass(frozen=True)
class DeviceGroup:
    """Consecutive devices that are equal, with the name of all of them and the place where stages on them run."""

    device: Device
    count: int
    name: str = ""
    place: str = "cpu"
