"""Files that describe devices (TOML), and the devices that come with the package.

A file describes a device with its link, as ``systems.toml`` does, or networks within networks, the innermost first::

    [[levels]]
    name = "GPUs of a machine"      # optional
    devices = 8
    bandwidth = "300GB/s"

    [[levels]]
    devices = 4
    bandwidth = "25GB/s"
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.units import format_bytes, parse_bandwidth, parse_bytes, parse_compute_rate
from mtpp.wording import did_you_mean

Parsed = TypeVar("Parsed")

DEFAULT_PRESET = "reference"

_MAKERS = ("nvidia", "geforce", "tesla", "amd", "instinct", "google", "coral", "apple")

_MOST_BYTES = 2**24
"""Of a file that describes devices, which people write."""

_KEYS: dict[str, tuple[str, Callable[[str], int]]] = {
    "peak_flops": ("peak_flops_per_s", parse_compute_rate),
    "memory_bandwidth": ("memory_bandwidth_bytes_per_s", parse_bandwidth),
    "bandwidth": ("bandwidth_bytes_per_s", parse_bandwidth),
    "fast_memory": ("fast_memory_bytes", parse_bytes),
    "activation_reserve": ("activation_reserve_bytes", parse_bytes),
    "stage_memory": ("stage_memory_bytes", parse_bytes),
}
_REQUIRED = ("peak_flops", "memory_bandwidth", "bandwidth")
_TEXT_KEYS = ("name", "description", "precision", "source", "sources", "peak")
_LEVEL_KEYS = ("devices", "bandwidth", "name")
_TOPOLOGY_KEYS = ("levels", "name", "description")


@cache
def preset_tables() -> Mapping[str, Mapping[str, Any]]:
    """Return the presets shipped with the package as they stand in ``systems.toml``, name → table."""
    return tomllib.loads(files("mtpp").joinpath("machine/systems.toml").read_text(encoding="utf-8"))


def preset_named(spelling: str) -> str | None:
    """Return the name of the preset that a spelling stands for; None for that of none.

    Case, blanks and punctuation do not count, nor do words of the maker: ``A100``, ``rtx4090``, ``GeForce RTX 4090``.
    """
    presets = preset_tables()
    if spelling in presets:
        return spelling
    words = [word for word in re.split("[^a-z0-9]+", spelling.lower()) if word not in _MAKERS]
    return {_plain(name): name for name in presets}.get("".join(words))


def unknown_preset(spelling: str) -> str:
    """Return the remedy for a name that no preset has: the nearest, or the command that lists them."""
    presets = {_plain(name): name for name in preset_tables()}
    is_path = os.sep in spelling or spelling.endswith(".toml")
    near = "" if is_path else did_you_mean(_plain(spelling), presets, "")
    for plain, name in presets.items():
        near = near.replace(repr(plain), repr(name))
    return near or f"{'check the path; ' if is_path else ''}`mtpp systems` lists the presets"


def load_device(name_or_path: str = DEFAULT_PRESET) -> Device:
    """Return a preset by its name, or the device described by a TOML file.

    A file comes before a preset whose name is spelled otherwise.

    Raises
    ------
    InputError
        If neither a preset nor a file has that name, or the file describes no device.
    """
    preset = preset_named(name_or_path)
    if preset is not None and (preset == name_or_path or not os.path.exists(name_or_path)):
        return device_of_table(preset_tables()[preset], preset, f"preset {preset}")
    text = toml_text(name_or_path, "no such preset and no such file", unknown_preset(name_or_path))
    table = toml_of_text(text, name_or_path)
    return device_of_table(table, Path(name_or_path).stem, name_or_path)


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]+", "", name.lower())


def toml_text(path: str, absent: str, remedy: str | None = None) -> str:
    """Return the text of a TOML file; *absent* and *remedy* are for people if there is no such file."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InputError(f"is larger than {format_bytes(_MOST_BYTES)}", source=path, remedy="describe less")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(absent, source=path, remedy=remedy) from None
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", source=path) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not a TOML file: {error}", source=path) from None
    except ValueError as error:  # a path with a null character
        raise InputError(f"cannot be read: {error}", source=path) from None


def toml_of_text(text: str, path: str) -> dict[str, Any]:
    """Return the table that the text of a TOML file holds, with its numbers as decimals."""
    try:
        return tomllib.loads(text.replace("\r\n", "\n"), parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not a TOML file: {error}", source=path) from None
    except RecursionError:
        raise InputError("nested too deeply", source=path) from None
    except ValueError as error:  # a number of more digits than Python converts
        raise InputError(f"cannot be read: {error}", source=path) from None


def device_of_table(table: Mapping[str, Any], name: str, source: str) -> Device:
    """Return the device that a table describes; *name* is for one that names none."""
    try:
        figures = figures_of_table(table, name)
        for key in _REQUIRED:
            if key not in table:
                raise InputError("missing key", where=key)
    except InputError as error:
        raise InputError(error.problem, source=source, where=error.where, remedy=error.remedy) from None
    try:
        return Device.from_document(figures)
    except InputError as error:
        raise InputError(error.problem, source=source, remedy=error.remedy) from None


def figures_of_table(table: Mapping[str, Any], name: str, within: str = "") -> dict[str, Any]:
    """Return the figures of a device that a table gives, by the names of :meth:`Device.to_document`.

    Parameters
    ----------
    name
        Of one that names none.
    within
        Place of the table in a file, a JSON pointer that ends in ``/``.
    """
    figures: dict[str, Any] = {"name": require_text(table.get("name", name), f"{within}name")}
    figures |= {"peak": table["peak"]} if "peak" in table else {}
    for key, value in table.items():
        if key in _TEXT_KEYS:
            continue
        if key not in _KEYS:
            known = [*_KEYS, *_TEXT_KEYS]
            remedy = did_you_mean(key, known, f"use one of {', '.join(known)}")
            raise InputError("unknown key", where=within + key, remedy=remedy)
        figure, parse = _KEYS[key]
        figures[figure] = parsed(value, parse, within + key)
    return figures


def parsed(value: Any, parse: Callable[[str], Parsed], where: str, example: str = "25GB/s") -> Parsed:
    """Return a quantity with its unit; *where* is its place, *example* one of its kind."""
    if not isinstance(value, str):
        raise InputError(f"{value} has no unit", where=where, remedy=f'write it like "{example}"')
    try:
        return parse(value)
    except InputError as error:
        raise InputError(error.problem, where=where, remedy=error.remedy) from None


def levels_of_table(table: Mapping[str, Any]) -> tuple[Level, ...]:
    """Return the networks within networks that a table describes, the innermost first."""
    refuse_unknown(table, _TOPOLOGY_KEYS, "")
    for key in ("name", "description"):
        require_text(table.get(key, ""), f"/{key}")
    if "levels" not in table:
        raise InputError("missing key", where="/levels", remedy="describe each level: [[levels]]")
    rows = table["levels"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("is not a list of levels", where="/levels", remedy="describe each level: [[levels]]")
    return tuple(_level(row, f"/levels/{i}") for i, row in enumerate(rows))


def refuse_unknown(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raise InputError for a key that is not known; *where* is the place of the table."""
    for key in table:
        if key not in known:
            remedy = did_you_mean(key, known, f"use one of {', '.join(known)}")
            raise InputError("unknown key", where=f"{where}/{key}", remedy=remedy)


def require_text(value: Any, where: str) -> str:
    """Return a value that is a text."""
    if not isinstance(value, str):
        raise InputError("is not a text", where=where, remedy="put it in quotes")
    return value


def whole_above_zero(value: Any, where: str) -> int:
    """Return a value that is a whole number above zero."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{value} is not a whole number", where=where)
    if value < 1:
        raise InputError(f"must be above zero, not {value}", where=where)
    return value


def _level(row: Mapping[str, Any], where: str) -> Level:
    refuse_unknown(row, _LEVEL_KEYS, where)
    for key in ("devices", "bandwidth"):
        if key not in row:
            raise InputError("missing key", where=f"{where}/{key}")
    devices, bandwidth = whole_above_zero(row["devices"], f"{where}/devices"), row["bandwidth"]
    rate = parsed(bandwidth, parse_bandwidth, f"{where}/bandwidth")
    return Level(devices, Link(rate), require_text(row.get("name", ""), f"{where}/name"))
