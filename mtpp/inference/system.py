"""The machine that the stages run on: how fast it computes, how fast it talks, how much it holds."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.names import PEAK_MODES
from mtpp.units import (
    ceil_ratio,
    format_bandwidth,
    format_bytes,
    format_compute_rate,
    parse_bandwidth,
    parse_bytes,
    parse_compute_rate,
)

DEFAULT_PRESET = "reference"

_PICOSECONDS_PER_S = 10**12

_LEAST = {
    "peak_flops_per_s": 1,
    "memory_bandwidth_bytes_per_s": 1,
    "bandwidth_bytes_per_s": 1,
    "fast_memory_bytes": 0,
    "activation_reserve_bytes": 0,
    "stage_memory_bytes": 0,
}
_MAY_BE_NONE = ("fast_memory_bytes", "stage_memory_bytes")


@dataclass(frozen=True)
class System:
    """k equal compute units in a row, each with its fast memory, joined by one kind of link.

    Attributes
    ----------
    peak_flops_per_s, memory_bandwidth_bytes_per_s
        The roofline that models the work of an op; not used for graphs that bring their own work.
    bandwidth_bytes_per_s
        Of the link between stages, over which overflowing parameters are streamed as well (the papers' B).
    fast_memory_bytes
        Memory for parameters and activations of one stage (the papers' M); None: no limit, no overflow.
    activation_reserve_bytes
        peak(S) of every non-empty stage when *peak* is ``"reserve"``.
    peak
        One of :data:`PEAK_MODES`.
    stage_memory_bytes
        No stage may need more for parameters and activations; None: no limit.
    """

    name: str
    peak_flops_per_s: int
    memory_bandwidth_bytes_per_s: int
    bandwidth_bytes_per_s: int
    fast_memory_bytes: int | None = None
    activation_reserve_bytes: int = 0
    peak: str = "reserve"
    stage_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        for quantity, least in _LEAST.items():
            value = getattr(self, quantity)
            if value is None and quantity in _MAY_BE_NONE:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"{quantity} {value!r} is not a whole number", source=self.name)
            if value < least:
                raise InputError(f"{quantity} must be {'above' if least else 'at least'} zero", source=self.name)
        if self.peak not in PEAK_MODES:
            raise InputError(f"unknown peak mode {self.peak!r}", remedy=f"use one of {', '.join(PEAK_MODES)}")
        for memory, what in ((self.fast_memory_bytes, "fast memory"), (self.stage_memory_bytes, "stage memory")):
            if memory is not None and self.activation_reserve_bytes > memory:
                raise InputError(
                    f"the activation reserve ({format_bytes(self.activation_reserve_bytes)}) is above the {what} "
                    f"({format_bytes(memory)})",
                    remedy=f"lower ‹activation_reserve› or raise ‹{what.replace(' ', '_')}›",
                )

    @property
    def limits_memory(self) -> bool:
        """Whether the memory that a stage needs changes its cost or whether it may be at all."""
        return self.fast_memory_bytes is not None or self.stage_memory_bytes is not None

    def modelled_work_ps(self, flops: int, traffic_bytes: int) -> int:
        """Return the roofline time of an op in picoseconds: max(flops / peak, bytes / memory bandwidth), rounded up."""
        return max(
            ceil_ratio(flops * _PICOSECONDS_PER_S, self.peak_flops_per_s),
            ceil_ratio(traffic_bytes * _PICOSECONDS_PER_S, self.memory_bandwidth_bytes_per_s),
        )

    def link_ps(self, count: int) -> int:
        """Return the time that *count* bytes take on the link, in picoseconds, rounded up."""
        return ceil_ratio(count * _PICOSECONDS_PER_S, self.bandwidth_bytes_per_s)

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object that a plan carries; :meth:`from_document` reads it back."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> System:
        """Read the JSON object that :meth:`to_document` writes."""
        try:
            system = cls(**document)
        except TypeError as error:
            raise InputError(f"not a system: {error}", where="/system") from None
        return system

    def describe(self) -> str:
        """Return one line for people: name, rates and memory."""
        parts = [
            f"{format_compute_rate(self.peak_flops_per_s)}",
            f"memory {format_bandwidth(self.memory_bandwidth_bytes_per_s)}",
            f"link {format_bandwidth(self.bandwidth_bytes_per_s)}",
        ]
        if self.fast_memory_bytes is None:
            parts.append("no fast-memory limit")
        else:
            parts.append(f"fast memory {format_bytes(self.fast_memory_bytes)}")
        if self.stage_memory_bytes is not None:
            parts.append(f"at most {format_bytes(self.stage_memory_bytes)} per stage")
        if self.limits_memory and self.peak == "reserve":
            parts.append(f"{format_bytes(self.activation_reserve_bytes)} of it reserved for activations")
        elif self.limits_memory:
            parts.append("activations as run in order")
        return f"{self.name}: " + ", ".join(parts)


_KEYS: dict[str, tuple[str, Callable[[str], int]]] = {
    "peak_flops": ("peak_flops_per_s", parse_compute_rate),
    "memory_bandwidth": ("memory_bandwidth_bytes_per_s", parse_bandwidth),
    "bandwidth": ("bandwidth_bytes_per_s", parse_bandwidth),
    "fast_memory": ("fast_memory_bytes", parse_bytes),
    "activation_reserve": ("activation_reserve_bytes", parse_bytes),
    "stage_memory": ("stage_memory_bytes", parse_bytes),
}
_REQUIRED = ("peak_flops", "memory_bandwidth", "bandwidth")
_TEXT_KEYS = ("name", "description", "source", "sources", "peak")


def _system_of_table(table: Mapping[str, Any], name: str, source: str) -> System:
    fields: dict[str, Any] = {"name": str(table.get("name", name)), "peak": table.get("peak", "reserve")}
    for key, value in table.items():
        if key in _TEXT_KEYS:
            continue
        if key not in _KEYS:
            known = ", ".join([*_KEYS, *_TEXT_KEYS])
            raise InputError("unknown key", source=source, where=key, remedy=f"use one of {known}")
        field_name, parse = _KEYS[key]
        if not isinstance(value, str):
            raise InputError(f"{value!r} has no unit", source=source, where=key, remedy='write it like "25GB/s"')
        try:
            fields[field_name] = parse(value)
        except InputError as error:
            raise InputError(error.problem, source=source, where=key, remedy=error.remedy) from None
    for key in _REQUIRED:
        if key not in table:
            raise InputError("missing key", source=source, where=key)
    try:
        return System(**fields)
    except InputError as error:
        raise InputError(error.problem, source=source, remedy=error.remedy) from None


@cache
def preset_tables() -> Mapping[str, Mapping[str, Any]]:
    """Return the presets shipped with the package as they stand in ``systems.toml``, name → table."""
    return tomllib.loads(files("mtpp").joinpath("systems.toml").read_text(encoding="utf-8"))


def load_system(name_or_path: str = DEFAULT_PRESET) -> System:
    """Return a preset by its name, or the system described by a TOML file.

    Raises
    ------
    InputError
        If neither a preset nor a file has that name, or the file is not a system.
    """
    presets = preset_tables()
    if name_or_path in presets:
        return _system_of_table(presets[name_or_path], name_or_path, f"preset {name_or_path}")
    table = toml_table(name_or_path, "no such preset and no such file", f"presets: {', '.join(presets)}")
    return _system_of_table(table, Path(name_or_path).stem, name_or_path)


def toml_table(path: str, absent: str, remedy: str | None = None) -> dict[str, Any]:
    """Return the table that a TOML file holds; *absent* and *remedy* are for people if there is no such file.

    Raises
    ------
    InputError
        If there is no such file, or it is no TOML file.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(absent, source=path, remedy=remedy) from None
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", source=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a TOML file: {error}", source=path) from None
    except RecursionError:
        raise InputError("nested too deeply", source=path) from None
    except ValueError as error:  # a number of more digits than Python converts, a path with a null character
        raise InputError(f"cannot be read: {error}", source=path) from None


def override(system: System, **changes: Any) -> System:
    """Return *system* with the given fields replaced where they are not None."""
    given = {key: value for key, value in changes.items() if value is not None}
    return replace(system, **given) if given else system
