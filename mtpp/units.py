"""Quantities with units, read exactly and written readably.

Numbers are decimals until they are rounded once, by the code that knows which way is safe: everything here
returns ``int`` or ``Fraction``, never ``float``.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor

from mtpp.errors import InputError

Exact = int | Fraction
"""An exact rational: an ``int`` where it is one, a ``Fraction`` elsewhere."""

PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12}
"""Picoseconds in each unit of time that a graph or an option may use."""

_DECIMAL_PREFIX = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY_PREFIX = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_PREFIX = _DECIMAL_PREFIX | _BINARY_PREFIX
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([^\d\s].*?)?\s*")
_BITS = re.compile(r"([KMGTPkmgtp]?[Ii]?)(?:bps|[Bb][Ii][Tt]/(.*))")
_LARGEST_EXPONENT = 400
_LEAST_SHARE = 0.001
_ROUNDS_TO_ONE = 0.99995  # with four digits: 999,960 is "1 M", not "1000 k"


def exact_decimal(text: str) -> Exact:
    """Read a decimal literal without rounding: ``"12.5"`` is 25/2, ``"1e3"`` is the int 1000.

    Raises
    ------
    ValueError
        If *text* is no finite decimal, or its magnitude is beyond 10^±400 (no cost is; and the integers that
        stand for ``1e-999999999`` would fill the memory).
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not finite")
    exponent = int(value.as_tuple().exponent)
    if value and (value.adjusted() > _LARGEST_EXPONENT or exponent < -2 * _LARGEST_EXPONENT):
        raise ValueError(f"{text[:40]} is out of range")
    ratio = Fraction(value)
    return ratio.numerator if ratio.denominator == 1 else ratio


def above_zero(value: object, parameter: str) -> None:
    """Raise InputError, naming *parameter*, if a value is no exact number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or value <= 0:
        raise InputError(f"must be a number above zero, not {value!r}", parameter=parameter)


def ceil_ratio(numerator: int, denominator: int) -> int:
    """Return ⌈numerator / denominator⌉ in integers; *denominator* must be positive."""
    return -(-numerator // denominator)


def _split(text: str, what: str, example: str) -> tuple[Exact, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a {what}", remedy=f"write it like {example}")
    try:
        number = exact_decimal(match[1])
    except ValueError as error:
        raise InputError(f"{what} {text!r}: {error}", remedy=f"write it like {example}") from None
    if not match[2]:
        raise InputError(f"{what} {text!r} has no unit", remedy=f"write it like {example}")
    return number, match[2]


def _whole_positive(value: Exact, text: str, what: str, *, zero: bool = False) -> int:
    if value.denominator != 1:
        raise InputError(f"{what} {text!r} does not come to a whole number")
    if value < 0 or (value == 0 and not zero):
        raise InputError(f"{what} {text!r} must be {'at least zero' if zero else 'above zero'}")
    if value >= 2**63:
        raise InputError(f"{what} {text!r} is too large", remedy="it must stay below 2^63")
    return int(value)


def parse_bytes(text: str, *, round_down: bool = False) -> int:
    """Read an amount of memory such as ``24MiB`` or ``1.5GB``, in bytes.

    Parameters
    ----------
    round_down
        Take ``1.2GiB``, which is no whole number of bytes, for the whole ones in it: right for limits.
    """
    what, example = "size", "24MiB or 1.5GB"
    number, unit = _split(text, what, example)
    prefix = unit.removesuffix("B")
    if not unit.endswith("B") or prefix not in _PREFIX:
        raise InputError(f"{what} {text!r} has an unknown unit {unit!r}", remedy=f"write it like {example}")
    size = number * _PREFIX[prefix]
    return _whole_positive(floor(size) if round_down else size, text, what, zero=True)


class BitRate(int):
    """Bytes per second that were given in bits: the same number as any other, which people see in both."""


def parse_bandwidth(text: str) -> int:
    """Read a bandwidth such as ``25GB/s``, ``100Gbit/s``, ``25Gbps`` or ``25GiB/ms``, in bytes per second.

    ``bit`` and ``bps`` may have prefixes in any case. A bandwidth in bits is a :class:`BitRate`.
    """
    what, example = "bandwidth", "25GB/s or 100Gbit/s"
    number, unit = _split(text, what, example)
    amount, _, time = _spelled_out(unit).partition("/")
    for suffix, bits, kind in (("bit", 1, BitRate), ("b", 1, BitRate), ("B", 8, int)):
        prefix = amount.removesuffix(suffix)
        if prefix != amount and prefix in _PREFIX and time in PICOSECONDS:
            per_s = PICOSECONDS["s"] // PICOSECONDS[time]
            return kind(_whole_positive(Fraction(number * _PREFIX[prefix] * bits * per_s, 8), text, what))
    raise InputError(f"{what} {text!r} has an unknown unit {unit!r}", remedy=f"write it like {example}")


def _spelled_out(unit: str) -> str:
    """Return a unit of bandwidth with its time behind a slash: ``Gbit/s`` for ``gbps``, ``GB/s`` for ``GBps``."""
    if unit.endswith("Bps"):
        return f"{unit.removesuffix('ps')}/s"
    bits = _BITS.fullmatch(unit)
    return f"{bits[1].capitalize()}bit/{bits[2] or 's'}" if bits else unit


def parse_compute_rate(text: str) -> int:
    """Read a rate of arithmetic such as ``20TFLOP/s`` or ``4TOPS``, in operations per second."""
    what, example = "compute rate", "20TFLOP/s or 4TOPS"
    number, unit = _split(text, what, example)
    for suffix in ("FLOP/s", "FLOPS", "OP/s", "OPS"):
        prefix = unit.removesuffix(suffix)
        if prefix != unit and prefix in _DECIMAL_PREFIX:
            return _whole_positive(number * _DECIMAL_PREFIX[prefix], text, what)
    raise InputError(f"{what} {text!r} has an unknown unit {unit!r}", remedy=f"write it like {example}")


def parse_duration(text: str) -> Exact:
    """Read a length of time such as ``1.5ms``, in picoseconds."""
    what, example = "duration", "1.5ms"
    number, unit = _split(text, what, example)
    if unit not in PICOSECONDS:
        units = ", ".join(PICOSECONDS)
        raise InputError(f"{what} {text!r} has an unknown unit {unit!r}", remedy=f"use one of {units}")
    if number < 0:
        raise InputError(f"{what} {text!r} must be at least zero")
    return number * PICOSECONDS[unit]


def format_bytes(count: int) -> str:
    """Write an amount of memory for people, in binary units: ``24.0 MiB``."""
    for prefix in ("Ti", "Gi", "Mi", "Ki"):
        if count >= _BINARY_PREFIX[prefix]:
            return f"{count / _BINARY_PREFIX[prefix]:.4g} {prefix}B"
    return f"{count} B"


def format_bandwidth(bytes_per_s: int) -> str:
    """Write a bandwidth for people, in decimal units: ``25 GB/s``; one given in bits in both: ``8 Gbit/s = 1 GB/s``."""
    given = f"{_with_prefix(8 * bytes_per_s)}bit/s = " if isinstance(bytes_per_s, BitRate) else ""
    return f"{given}{_with_prefix(bytes_per_s)}B/s"


def format_compute_rate(flops_per_s: int) -> str:
    """Write a rate of arithmetic for people: ``20 TFLOP/s``."""
    return f"{_with_prefix(flops_per_s)}FLOP/s"


def format_count(count: int) -> str:
    """Write a large count for people, in decimal units: ``4.11 G``."""
    return _with_prefix(count).rstrip()


def format_quantity(count: int, unit: str) -> str:
    """Write a large count of a unit for people: ``4.11 GFLOP``."""
    return f"{_with_prefix(count)}{unit}"


def _with_prefix(value: int) -> str:
    for prefix in ("P", "T", "G", "M", "k"):
        if value >= _ROUNDS_TO_ONE * _DECIMAL_PREFIX[prefix]:
            return f"{value / _DECIMAL_PREFIX[prefix]:.4g} {prefix}"
    return f"{value} "


def format_picoseconds(picoseconds: float) -> str:
    """Write a length of time for people, with four significant digits: ``671.2 µs``."""
    for unit in ("s", "ms", "µs", "ns"):
        if picoseconds >= _ROUNDS_TO_ONE * PICOSECONDS[unit]:
            return f"{_significant(picoseconds / PICOSECONDS[unit])} {unit}"
    return f"{picoseconds:.4g} ps"


def format_clock(seconds: float) -> str:
    """Write a length of time as clocks do, without parts of a second: ``0:07``, ``1:02:03``."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class InTicks:
    """Costs in ticks: picoseconds, unless *time_unit* is ``"1"``, that of abstract graphs.

    Attributes
    ----------
    ticks_per_unit
        Ticks in a unit of the graph's costs.
    """

    time_unit: str
    ticks_per_unit: int

    @property
    def timed(self) -> bool:
        """Whether a tick is a picosecond."""
        return self.time_unit != "1"

    def describe(self, ticks: float) -> str:
        """Write a number of ticks for people: a time with its unit, or a plain number for an abstract graph."""
        return format_picoseconds(ticks) if self.timed else f"{ticks / self.ticks_per_unit:,.6g}"


def format_share(part: float, whole: float) -> str:
    """Write a part of a whole in percent, ``12.5%``; one that is above nothing never reads as nothing."""
    share = part / whole if whole else 0.0
    return f"<{_LEAST_SHARE:.1%}" if 0 < share < _LEAST_SHARE else f"{share:.1%}"


def _significant(value: float) -> str:
    for limit, digits in ((10, 3), (100, 2), (1000, 1)):
        if round(value, digits) < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def exact_bytes(count: int) -> str:
    """Write an amount of memory so that it reads back as what it is: ``80GB``, ``8GiB``, ``1234567B``."""
    units = {f"{prefix}iB": 2**power for prefix, power in (("T", 40), ("G", 30), ("M", 20), ("K", 10))}
    units |= {f"{prefix}B": 10**power for prefix, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3))}
    fitting = [(count // size, unit) for unit, size in units.items() if count and count % size == 0]
    number, unit = min(fitting, default=(count, "B"))
    return f"{number}{unit}"
