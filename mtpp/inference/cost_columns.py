"""The unit of a table of costs, and how they are written in it: nothing that is above zero reads as zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from mtpp.units import PICOSECONDS

_LEAST_IN_UNIT = 10
"""Units that the largest cost takes at least, where there is one that small."""

_LEAST_PLAIN = Fraction(1, 100)
"""Abstract costs below are written as so many of a power of ten."""

_MOST_DIGITS = 12
"""Digits behind the point at most: picoseconds of a second."""

_STEP = 1000
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Ticks(Protocol):
    """Size of ticks: an instance has it, and a plan's document."""

    @property
    def timed(self) -> bool:
        """Whether a tick is a picosecond."""

    @property
    def ticks_per_unit(self) -> int:
        """Ticks in a unit of the graph's costs."""


@dataclass(frozen=True)
class CostColumns:
    """Unit and digits of the costs of one table.

    Attributes
    ----------
    unit
        Of time, a power of ten, or nothing: that of the graph.
    ticks
        In one of it.
    digits
        Behind the point.
    """

    unit: str
    ticks: Fraction
    digits: int = 1

    @classmethod
    def of(cls, instance: Ticks, largest: int) -> CostColumns:
        """Return the columns of a table whose largest cost is so many ticks."""
        if instance.timed:
            for unit in ("s", "ms", "µs", "ns"):
                if largest >= _LEAST_IN_UNIT * PICOSECONDS[unit]:
                    return cls(unit, Fraction(PICOSECONDS[unit]))
            return cls("ps", Fraction(1))
        one = Fraction(instance.ticks_per_unit)
        if one == 1 or largest == 0 or largest >= _LEAST_IN_UNIT * one:
            return cls("", one)
        if largest >= _LEAST_PLAIN * one:
            return cls("", one, next(n for n in (3, 4, 5) if largest * 10 ** (n - 3) >= one))
        exponent = 0
        while largest < _LEAST_IN_UNIT * one:
            one, exponent = one / _STEP, exponent - 3
        return cls(f"10{str(exponent).translate(_SUPERSCRIPTS)}", one)

    def apart(self, *columns: Sequence[int]) -> CostColumns:
        """Return the same with enough digits to tell apart the costs that differ within each column."""
        costs = self
        while costs.digits < _MOST_DIGITS and any(
            len({costs.text(cost) for cost in column}) < len(set(column)) for column in columns
        ):
            costs = replace(costs, digits=costs.digits + 1)
        return costs

    def text(self, ticks: int | Fraction, *, signed: bool = False) -> str:
        """Write a cost; one that is too small for the digits of the table, with two significant ones."""
        value = float(Fraction(ticks) / self.ticks)
        sign = "+" if signed else ""
        if value and abs(value) < 0.5 * 10**-self.digits:
            return f"{value:{sign}.2g}"
        return f"{value:{sign},.{self.digits}f}"
