"""Networks within networks: devices within devices, each level with its own bandwidth.

As in appendix E of Tarnawski et al. (2021): devices of level 1 compute. K₁ of them make a device of level 2, joined by
a network of bandwidth B₁; K₂ of those make a device of level 3, and so on up to the K_L devices of the last level. As a
TOML file, the innermost level first::

    [[levels]]
    name = "GPUs of a machine"      # optional
    devices = 8
    bandwidth = "300GB/s"

    [[levels]]
    devices = 4
    bandwidth = "25GB/s"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mtpp.errors import InputError
from mtpp.inference.system import toml_table
from mtpp.units import format_bandwidth, parse_bandwidth

LARGEST_DEVICES = 2**20
"""Devices in all, and of any level, that a tree may have."""

_LEVEL_KEYS = ("devices", "bandwidth", "name")
_KEYS = ("levels", "name", "description")


@dataclass(frozen=True)
class Level:
    """What joins devices of one level.

    Attributes
    ----------
    devices
        K_ℓ: devices of this level in each device of the next, or in all at the last level.
    bandwidth_bytes_per_s
        B_ℓ: of what enters and leaves each of them.
    """

    devices: int
    bandwidth_bytes_per_s: int
    name: str = ""


@dataclass(frozen=True)
class DeviceTree:
    """Devices within devices: their levels, the innermost first; at least one.

    Raises
    ------
    InputError
        If there is no level, a number is not positive, or there are more than :data:`LARGEST_DEVICES` devices; *where*
        is a pointer ``/levels/0/devices``.
    """

    levels: Sequence[Level]

    def __post_init__(self) -> None:
        if not self.levels:
            raise InputError("the topology has no levels", where="/levels", remedy="give at least one: [[levels]]")
        for i, level in enumerate(self.levels):
            for value, key in ((level.devices, "devices"), (level.bandwidth_bytes_per_s, "bandwidth")):
                if value < 1:
                    raise InputError(f"must be above zero, not {value}", where=f"/levels/{i}/{key}")
        if self.devices > LARGEST_DEVICES:
            raise InputError(
                f"{self.devices} devices are too many",
                where="/levels",
                remedy=f"at most {LARGEST_DEVICES} are planned for",
            )

    @property
    def devices(self) -> int:
        """Devices of level 1 in all: the product over the levels."""
        return prod(level.devices for level in self.levels)

    def to_document(self) -> list[dict[str, int]]:
        """Return what plans hold of it: ``system.topology``, the innermost level first."""
        return [
            {"devices": level.devices, "bandwidth_bytes_per_s": level.bandwidth_bytes_per_s} for level in self.levels
        ]

    def describe(self) -> str:
        """Return one line for people: ``8 × 300 GB/s, 4 × 25 GB/s (32 devices)``."""
        levels = ", ".join(
            f"{level.devices} × {format_bandwidth(level.bandwidth_bytes_per_s)}"
            + (f" ({level.name})" if level.name else "")
            for level in self.levels
        )
        return f"{levels}: {self.devices} devices"


def device_tree_of_table(table: Mapping[str, Any]) -> DeviceTree:
    """Read the table that a TOML file holds."""
    _refuse_unknown(table, _KEYS, "")
    for key in ("name", "description"):
        _require_text(table.get(key, ""), f"/{key}")
    if "levels" not in table:
        raise InputError("missing key", where="/levels", remedy="describe each level: [[levels]]")
    rows = table["levels"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("is not a list of levels", where="/levels", remedy="describe each level: [[levels]]")
    return DeviceTree(tuple(_level(row, f"/levels/{i}") for i, row in enumerate(rows)))


def load_device_tree(path: str) -> DeviceTree:
    """Read a tree of devices from a TOML file.

    Raises
    ------
    InputError
        If there is no such file, or it describes no such tree; it names the place.
    """
    table = toml_table(path, "no such file")
    try:
        return device_tree_of_table(table)
    except InputError as error:
        raise InputError(error.problem, source=path, where=error.where, remedy=error.remedy) from None


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise InputError("unknown key", where=f"{where}/{key}", remedy=f"use one of {', '.join(known)}")


def _require_text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InputError("is not a text", where=where, remedy="put it in quotes")
    return value


def _level(row: Mapping[str, Any], where: str) -> Level:
    _refuse_unknown(row, _LEVEL_KEYS, where)
    for key in ("devices", "bandwidth"):
        if key not in row:
            raise InputError("missing key", where=f"{where}/{key}")
    devices, bandwidth = row["devices"], row["bandwidth"]
    if isinstance(devices, bool) or not isinstance(devices, int):
        raise InputError(f"{devices!r} is not a whole number", where=f"{where}/devices")
    if devices < 1:
        raise InputError(f"must be above zero, not {devices}", where=f"{where}/devices")
    if not isinstance(bandwidth, str):
        remedy = 'write it like "25GB/s"'
        raise InputError(f"{bandwidth!r} has no unit", where=f"{where}/bandwidth", remedy=remedy)
    try:
        rate = parse_bandwidth(bandwidth)
    except InputError as error:
        raise InputError(error.problem, where=f"{where}/bandwidth", remedy=error.remedy) from None
    return Level(devices, rate, _require_text(row.get("name", ""), f"{where}/name"))
