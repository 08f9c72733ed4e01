"""Statistics of measured times that a few disturbed runs do not move, exact."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mtpp.units import Exact

Quartiles = tuple[Fraction, Fraction, Fraction]


def middle_mean(times: Sequence[Exact]) -> Fraction:
    """Return the mean of the middle half of some times: a quarter of them is left out at either end.

    Unlike their median it tells apart what differs by less than the clock's unit.
    """
    ordered = sorted(times)
    cut = len(ordered) // 4
    middle = ordered[cut : len(ordered) - cut]
    return Fraction(sum(middle)) / len(middle)


def quartiles(times: Sequence[Exact]) -> Quartiles:
    """Return the quartiles of some times, between neighbours in proportion (Hyndman and Fan 1996, type 7)."""
    ordered = sorted(times)

    def at(quarter: int) -> Fraction:
        place = Fraction(quarter * (len(ordered) - 1), 4)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    return at(1), at(2), at(3)


def in_thousandths(time: Fraction) -> Exact:
    """Return a time rounded to a thousandth of its unit: a decimal that JSON can hold."""
    rounded = Fraction(round(time * 1000), 1000)
    return rounded.numerator if rounded.denominator == 1 else rounded
