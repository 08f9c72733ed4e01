"""Files that describe devices in order (TOML): each group of equal ones by a table.

::

    name = "two V100s and an A100"
    order = "free"              # devices may stand anywhere in the pipeline; "fixed" (default): stage i on device i
    [[device]]
    name = "v100"
    count = 2
    system = "v100"             # a preset, or its keys in a table here
    memory = "32GB"             # the limit is memory · utilization − reserve
    utilization = 0.9
    reserve = "1GiB"
    bandwidth = "12.5GB/s"
    latency = "20us"            # of each message
    [[device]]
    name = "a100"
    system = "a100"
    speed = 1.5                 # or "3/2"; or costs = "measured.json"
    link_speed = 2
    place = "cuda:0"            # or "cpu"; of several devices one for each: ["cuda:0", "cuda:1"]
    [[device]]
    name = "node"
    count = 4                   # nodes; all figures are of one GPU of them
    tensor_parallel = [1, 2, 8] # GPUs that may share a stage of a language model; or one number
    tensor_link = "450GB/s"     # between the GPUs of a node
    [[device]]
    name = "measured"
    stage_times = ["4ms", "9ms"]    # of stages of 1, 2 ops of a chain of equal layers, in place of all other times

With ``transport = "neighbours"`` tensors pass from each stage to the next, over the link of the two devices::

    [[link]]                    # "v100" twice: of the two among each other
    between = ["v100", "a100"]
    bandwidth = "3GB/s"         # else the slower of the two
    latency = "50us"            # of each tensor; else the longer of the two
    link_speed = 2              # of given transfers; else the smaller of the two
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain, groupby
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

from mtpp.errors import InputError
from mtpp.machine.boards import RATES
from mtpp.machine.device import LARGEST_STAGE_TIME, Device, DeviceGroup
from mtpp.machine.link import Link
from mtpp.machine.pair_link import GivenLink
from mtpp.machine.presets import (
    figures_of_table,
    load_device,
    parsed,
    preset_named,
    preset_tables,
    refuse_unknown,
    require_text,
    unknown_preset,
    whole_above_zero,
)
from mtpp.machine.tensor_group import ONE_GPU, TensorGroup
from mtpp.names import DEVICE_ORDERS, DIRECT, FIXED, TRANSPORTS
from mtpp.ranges import MOST_STAGES
from mtpp.units import Exact, exact_decimal, format_bytes, parse_bandwidth, parse_bytes, parse_duration
from mtpp.wording import counted, did_you_mean

_PLACE = re.compile("cpu|cuda:(0|[1-9][0-9]{0,3})")
_KEYS = ("name", "order", "transport", "device", "link", "description")
_DEVICE_KEYS = (
    *("name", "count", "system", "memory", "utilization", "reserve", "bandwidth", "latency"),
    *("speed", "link_speed", "costs", "stage_times", "place", "tensor_parallel", "tensor_link"),
)
_LINK_KEYS = ("between", "bandwidth", "latency", "link_speed")


@dataclass(frozen=True)
class Defaults:
    """Figures that take the place of those that a device leaves out.

    Attributes
    ----------
    system
        Of a device without one; None: the default preset.
    bandwidth_bytes_per_s, peak, activation_reserve_bytes
        Of a device whose own system does not say.
    """

    system: Device | None = None
    bandwidth_bytes_per_s: int | None = None
    peak: str | None = None
    activation_reserve_bytes: int | None = None

    def figures(self) -> dict[str, Any]:
        """Return the figures that are given, by the names of :meth:`Device.to_document`."""
        given = {
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "peak": self.peak,
            "activation_reserve_bytes": self.activation_reserve_bytes,
        }
        return {key: value for key, value in given.items() if value is not None}


NO_DEFAULTS = Defaults()


class MachineTable(NamedTuple):
    """Machine as its file describes it."""

    name: str
    order: str
    transport: str
    groups: tuple[DeviceGroup, ...]
    links: tuple[GivenLink, ...]


def machine_of_table(table: Mapping[str, Any], path: Path, defaults: Defaults) -> MachineTable:
    """Return the machine that a table describes.

    Parameters
    ----------
    path
        Of the file: paths in it are relative to its folder.

    Raises
    ------
    InputError
        If a key is unknown or its value is not allowed; *where* is a JSON pointer.
    """
    refuse_unknown(table, _KEYS, "")
    require_text(table.get("description", ""), "/description")
    transport = _one_of(table.get("transport", DIRECT), TRANSPORTS, "/transport")
    if transport == DIRECT and "link" in table:
        raise InputError("links of pairs need transport neighbours", where="/link", remedy="leave them out")
    rows = table.get("device", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(
            "is not a list of devices" if "device" in table else "missing key",
            where="/device",
            remedy="describe each: [[device]]",
        )
    tables = [_group(row, i, path, defaults) for i, row in enumerate(rows)]
    seen: set[str] = set()
    for i, (first, *_) in enumerate(tables):
        if first.name in seen:
            raise InputError(f"{first.name!r} is the name of another device", where=f"/device/{i}/name")
        seen.add(first.name)
    groups = tuple(chain.from_iterable(tables))
    if sum(group.count for group in groups) > MOST_STAGES:
        raise InputError(f"more than {MOST_STAGES} devices", where="/device")
    name = require_text(table.get("name", path.stem), "/name")
    links = table.get("link", [])
    if not isinstance(links, list) or not all(isinstance(row, dict) for row in links):
        raise InputError("is not a list of links", where="/link", remedy="describe each: [[link]]")
    order = _one_of(table.get("order", FIXED), DEVICE_ORDERS, "/order")
    return MachineTable(name, order, transport, groups, tuple(_link(row, f"/link/{i}") for i, row in enumerate(links)))


def _link(row: Mapping[str, Any], at: str) -> GivenLink:
    refuse_unknown(row, _LINK_KEYS, at)
    between = row.get("between")
    if not isinstance(between, list) or len(between) != 2:
        problem = "is not a pair of devices" if "between" in row else "missing key"
        raise InputError(problem, where=f"{at}/between", remedy='name the two, or one twice: ["a100", "v100"]')
    one, other = (require_text(name, f"{at}/between/{i}") for i, name in enumerate(between))
    bandwidth = parsed(row["bandwidth"], parse_bandwidth, f"{at}/bandwidth") if "bandwidth" in row else None
    latency = _latency(row, at) if "latency" in row else None
    return GivenLink((one, other), bandwidth, latency, _factor(row, "link_speed", at) if "link_speed" in row else None)


def _group(row: Mapping[str, Any], i: int, path: Path, defaults: Defaults) -> list[DeviceGroup]:
    at = f"/device/{i}"
    refuse_unknown(row, _DEVICE_KEYS, at)
    times = _stage_times(row, at)
    if "speed" in row and "costs" in row:
        raise InputError("does not go with costs, which are the device's own times", where=f"{at}/speed")
    name = require_text(row.get("name", f"d{i}"), f"{at}/name")
    if not name.strip():
        raise InputError("is empty", where=f"{at}/name")
    count = whole_above_zero(row.get("count", 1), f"{at}/count")
    places = _places(row.get("place", "cpu"), count, f"{at}/place")
    figures = _figures(row, at, defaults)
    link = Link(figures.pop("bandwidth_bytes_per_s"), _latency(row, at), _factor(row, "link_speed", at))
    if times:
        figures |= {"fast_memory_bytes": None}
    speed, limit = _factor(row, "speed", at), _limit(row, at, figures.pop("stage_memory_bytes", None))
    costs = require_text(row["costs"], f"{at}/costs") if "costs" in row else ""
    if "costs" in row and not costs:
        raise InputError("is empty", where=f"{at}/costs", remedy="name a file, or leave it out")
    try:
        device = Device(
            **figures,
            link=link,
            memory_bytes=limit,
            speed=speed,
            costs=costs and str(path.parent / costs),
            stage_times_ps=times,
            tensor=_tensor_group(row, at),
        )
    except InputError as error:
        raise InputError(error.problem, where=error.where or at, remedy=error.remedy) from None
    return [DeviceGroup(device, number, name, place) for place, number in places]


def _places(value: Any, count: int, at: str) -> list[tuple[str, int]]:
    """Return the places of so many devices, one for all or a list of them, with the number of devices in a row."""
    each = value if isinstance(value, list) else [value]
    for place in each:
        if not _PLACE.fullmatch(require_text(place, at)):
            raise InputError(f"{place!r} is no place", where=at, remedy='use "cpu" or "cuda:0"')
    if not isinstance(value, list):
        return [(value, count)]
    if len(value) != count:
        raise InputError(f"{counted(len(value), 'place')} for {counted(count, 'device')}", where=at)
    return [(place, len(list(same))) for place, same in groupby(value)]


def _tensor_group(row: Mapping[str, Any], at: str) -> TensorGroup:
    """Return the degrees of tensor parallelism, a number or a list of them in any order, and the link."""
    if "tensor_parallel" not in row:
        if "tensor_link" in row:
            problem = "is a link between the GPUs of a stage, of which there is one"
            raise InputError(problem, where=f"{at}/tensor_link", remedy="give tensor_parallel, too")
        return ONE_GPU
    given = row["tensor_parallel"]
    listed = isinstance(given, list)
    degrees = [
        whole_above_zero(degree, f"{at}/tensor_parallel{f'/{i}' if listed else ''}")
        for i, degree in enumerate(given if listed else [given])
    ]
    if len(set(degrees)) < len(degrees):
        raise InputError("names a number twice", where=f"{at}/tensor_parallel")
    link = parsed(row["tensor_link"], parse_bandwidth, f"{at}/tensor_link", "450GB/s") if "tensor_link" in row else None
    try:
        return TensorGroup(tuple(sorted(degrees)), link)
    except InputError as error:
        raise InputError(error.problem, where=f"{at}/{error.where}", remedy=error.remedy) from None


_BESIDE_STAGE_TIMES = ("speed", "costs", "system")


def _stage_times(row: Mapping[str, Any], at: str) -> tuple[int, ...]:
    """Return the time of a stage of 1, 2, … ops in picoseconds; nothing where the device does not say."""
    if "stage_times" not in row:
        return ()
    place, given = f"{at}/stage_times", row["stage_times"]
    for key in _BESIDE_STAGE_TIMES:
        if key in row:
            raise InputError(f"do not go with {key}: they are all times of the device", where=place)
    if not isinstance(given, list) or not given:
        raise InputError("is not a list of times", where=place, remedy='write it like ["4ms", "9ms"]')
    times = []
    for i, text in enumerate(given):
        time = parsed(text, parse_duration, f"{place}/{i}", "4ms")
        if time.denominator != 1 or time >= LARGEST_STAGE_TIME:
            raise InputError("is not a whole number of picoseconds below 2^61", where=f"{place}/{i}")
        times.append(int(time))
    return tuple(times)


def _figures(row: Mapping[str, Any], at: str, defaults: Defaults) -> dict[str, Any]:
    """Return the figures of the device's system, and others in place of those that are left out."""
    if "system" in row:
        own = _system_figures(row["system"], f"{at}/system")
        figures = {**dict.fromkeys(("peak_flops_per_s", "memory_bandwidth_bytes_per_s")), **defaults.figures(), **own}
    else:
        figures = {**(defaults.system or load_device()).to_document(), **defaults.figures()}
    if "bandwidth" in row:
        figures["bandwidth_bytes_per_s"] = parsed(row["bandwidth"], parse_bandwidth, f"{at}/bandwidth")
    if "bandwidth_bytes_per_s" not in figures:
        if row.get("system") == {}:
            raise InputError("its rates are open", where=f"{at}/system", remedy="fill in " + ", ".join(RATES))
        raise InputError("missing key", where=f"{at}/bandwidth")
    return figures


def _system_figures(system: Any, at: str) -> dict[str, Any]:
    if isinstance(system, dict):
        return figures_of_table(system, "device", f"{at}/")
    preset = preset_named(system) if isinstance(system, str) else None
    if preset is None:
        raise InputError(f"{system!r} is neither a preset nor a table", where=at, remedy=unknown_preset(str(system)))
    return figures_of_table(preset_tables()[preset], preset)


def _limit(row: Mapping[str, Any], at: str, of_system: int | None) -> int | None:
    """Return the memory that a stage may use, in bytes; None where there is no limit."""
    memory = of_system
    if "memory" in row:
        memory = parsed(row["memory"], _bytes_below, f"{at}/memory", "32GB")
    if memory is None:
        for key in ("utilization", "reserve"):
            if key in row:
                raise InputError("is a part of the memory, which is not given", where=f"{at}/{key}")
        return None
    utilization = _factor(row, "utilization", at)
    if utilization > 1:
        raise InputError("must be at most 1", where=f"{at}/utilization")
    reserve = parsed(row["reserve"], parse_bytes, f"{at}/reserve", "1GiB") if "reserve" in row else 0
    limit = floor(memory * utilization) - reserve
    if limit < 0:
        raise InputError(
            f"the reserve ({format_bytes(reserve)}) is above the memory ({format_bytes(limit + reserve)})",
            where=f"{at}/reserve",
        )
    return limit


def _bytes_below(text: str) -> int:
    return parse_bytes(text, round_down=True)


def _latency(row: Mapping[str, Any], at: str) -> int:
    if "latency" not in row:
        return 0
    latency = parsed(row["latency"], parse_duration, f"{at}/latency", "20us")
    if latency.denominator != 1 or latency >= 2**62:
        raise InputError("is not a whole number of picoseconds below 2^62", where=f"{at}/latency")
    return int(latency)


_LARGEST_FACTOR = 10**40
"""Numbers of a speed, as a ratio, are below it: documents hold no more digits."""


def _factor(row: Mapping[str, Any], key: str, at: str) -> Exact:
    """Return a number above zero, given as one or as a ratio ``"3/2"``; 1 where it is left out."""
    value = row.get(key, 1)
    try:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise ValueError(f"{value} is no number")
        above, ratio, below = str(value).partition("/")
        divisor = exact_decimal(below) if ratio else 1
        if divisor <= 0:
            raise ValueError(f"{value} is out of range")
        factor = Fraction(exact_decimal(above)) / divisor
    except ValueError as error:
        raise InputError(str(error), where=f"{at}/{key}", remedy='write it like 1.5 or "3/2"') from None
    if factor <= 0:
        raise InputError(f"must be above zero, not {value}", where=f"{at}/{key}")
    if max(factor.numerator, factor.denominator) >= _LARGEST_FACTOR:
        raise InputError("is out of range", where=f"{at}/{key}", remedy="write a number of fewer digits")
    return factor.numerator if factor.denominator == 1 else factor


def _one_of(value: Any, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise InputError(
            f"{value!r} is unknown",
            where=where,
            remedy=did_you_mean(value, choices, f"use one of {', '.join(choices)}"),
        )
    return str(value)
