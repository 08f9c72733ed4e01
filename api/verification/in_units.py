"""Details of verifications in the units of their documents: the verifier counts in whole ticks and bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mtpp.checker.report import Check, Report
from mtpp.checker.table_report import TableReport
from mtpp.units import PICOSECONDS, InTicks, format_bytes

_QUOTED = r"'[^']*'|\"[^\"]*\""
_NUMBER = r"-?\d+(?:/\d+)?"
_FIGURES = "work|input|output|overflow|cost|latency|bottleneck|compute|communication"

_WORDS = {"param_bytes": "parameters", "peak_bytes": "activations", "state_bytes": "states"}
"""Figures of stages, by keys that are no words for them."""

_RULES = [
    # "the plan says work 5, it is 6": figures by their keys
    (re.compile(rf"{_QUOTED}|\bsays (\w+_ticks|{_FIGURES}) ({_NUMBER}), it is ({_NUMBER})"), "ticks"),
    (re.compile(rf"{_QUOTED}|\bsays (\w+_bytes) ({_NUMBER}), it is ({_NUMBER})"), "bytes"),
]
_PAIR = re.compile(rf"{_QUOTED}|({_NUMBER}) of ({_NUMBER}) (ticks|bytes)\b")
_BESIDE = r"(?:[,;]| and| below| at least)(?: [a-z]+)*,? "
_FOLLOWING = re.compile(rf"{_QUOTED}|\b({_NUMBER}) (ticks|bytes)\b({_BESIDE})({_NUMBER})(?=$|[,;:)]| each| allowed)")
_QUANTITY = re.compile(rf"{_QUOTED}|({_NUMBER}) (ticks|bytes)\b")


class _Unit(InTicks):
    """Unit of the costs of a document."""

    def __init__(self, time_unit: str, ticks_per_unit: int) -> None:
        self.time_unit = time_unit
        self.ticks_per_unit = ticks_per_unit


_PICOSECOND = _Unit("ps", 1)


def in_units(report: Report | TableReport, document: Mapping[str, Any]) -> Report | TableReport:
    """Return a report whose details have times and sizes with units: to four digits, or exactly where those are alike.

    Parameters
    ----------
    document
        What was verified; its units are those of its details.
    """
    if isinstance(report, Report):
        return report_in_units(report, document)
    rows: Sequence[Mapping[str, Any]] = document.get("rows") or document.get("plans") or ()
    units = [_unit_of(row) for row in rows]
    told: dict[tuple[int, str, int], Report] = {}  # rows that the time limit came before share a report
    reports = []
    for found, unit in zip(report.reports, units, strict=True):
        key = id(found), unit.time_unit, unit.ticks_per_unit
        reports.append(told.setdefault(key, _in_unit(found, unit)))
    means = tuple(_of_check(check, units[0] if units else _PICOSECOND) for check in report.means)
    return replace(report, reports=tuple(reports), means=means)


def report_in_units(report: Report, document: Mapping[str, Any]) -> Report:
    """Return the report on a document that is no table in units, as :func:`in_units` does."""
    return _in_unit(report, _unit_of(document))


def _unit_of(document: Mapping[str, Any]) -> _Unit:
    if "time_unit" not in document:
        return _PICOSECOND
    return _unit(document["time_unit"], document["ticks_per_unit"])


@lru_cache(maxsize=64)
def _unit(time_unit: str, ticks_per_unit: int) -> _Unit:
    return _Unit(time_unit, ticks_per_unit)


def _in_unit(report: Report, unit: _Unit) -> Report:
    checks = tuple(_of_check(check, unit) for check in report.checks)
    return replace(report, checks=checks, proven=detail_in_units(report.proven, unit))


def _of_check(check: Check, unit: _Unit) -> Check:
    return replace(check, detail=detail_in_units(check.detail, unit))


def detail_in_units(detail: str, unit: InTicks) -> str:
    """Write the ticks and bytes of a sentence with units.

    Examples
    --------
    >>> detail_in_units("at most 39675808 of 41943040 bytes", _PICOSECOND)
    'at most 37.84 MiB of 40 MiB'
    >>> detail_in_units("the proof's cutoff is 2000001 ticks, the claim is 2000002", _PICOSECOND)
    "the proof's cutoff is 2.000001 µs, the claim is 2.000002 µs"
    """
    detail = _each_with_its_unit(detail)
    found = {(one[1], one[2]) for one in _QUANTITY.finditer(detail) if one[1]}
    if not found:
        return detail
    written = {key: _rounded(*key, unit) for key in found}
    exact = len(set(written.values())) < len(found)
    return _QUANTITY.sub(
        lambda one: one[0] if not one[1] else _exactly(one[1], one[2], unit) if exact else written[one[1], one[2]],
        detail,
    )


def _each_with_its_unit(detail: str) -> str:
    """Name the unit of every number that stands beside another one with its unit, and of figures by their keys."""
    for pattern, unit in _RULES:
        detail = pattern.sub(
            lambda one, unit=unit: (
                one[0] if not one[1] else f"says {_words(one[1])} {one[2]} {unit}, it is {one[3]} {unit}"
            ),  # type: ignore[misc]
            detail,
        )
    detail = _PAIR.sub(lambda one: one[0] if not one[1] else f"{one[1]} {one[3]} of {one[2]} {one[3]}", detail)
    return _FOLLOWING.sub(lambda one: one[0] if not one[1] else f"{one[1]} {one[2]}{one[3]}{one[4]} {one[2]}", detail)


def _words(key: str) -> str:
    return _WORDS.get(key, key.removesuffix("_ticks").removesuffix("_bytes").replace("_", " "))


def _rounded(number: str, kind: str, unit: InTicks) -> str:
    value = Fraction(number)
    if kind == "bytes":
        return format_bytes(int(value)) if value >= 0 else f"−{format_bytes(int(-value))}"
    return f"−{unit.describe(float(-value))}" if value < 0 else unit.describe(float(value))


def _exactly(number: str, kind: str, unit: InTicks) -> str:
    """Write a number with all digits."""
    value = Fraction(number)
    if kind == "bytes":
        return f"{int(value):,} B"
    if not unit.timed:
        return _decimals(value / unit.ticks_per_unit)
    name = next((name for name in ("s", "ms", "µs", "ns") if abs(value) >= PICOSECONDS[name]), "ps")
    return f"{_decimals(value / PICOSECONDS[name])} {name}"


def _decimals(value: Fraction) -> str:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return str(value)
    text = f"{Decimal(value.numerator) / Decimal(value.denominator):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
