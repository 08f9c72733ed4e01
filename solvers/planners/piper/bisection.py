"""The next threshold to ask about, between a bound on all plans and the best plan's time, in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

CLOSE = Fraction(1, 500)
"""With bound and plan this close to each other, the next question is whether there is any better plan at all."""

_FAR = 4
"""Ends this many times each other are far apart."""

_GAINS = 3
"""After so many slightly faster plans in a row, halving the interval gains more."""


class Question(NamedTuple):
    """A threshold to ask about.

    Attributes
    ----------
    time
        Ticks; None: any time will do.
    strictly
        Whether plans have to take less than that, and not just as much.
    close
        Whether a faster plan is one of those that are only slightly faster, *gains* of :func:`next_question`.
    """

    time: Fraction | None
    strictly: bool
    close: bool


def next_question(low: Fraction, high: Fraction | None, gains: int, *, near: bool = False) -> Question:
    """Return what to ask, no plan being known to take less than *low*, and one that takes *high*, or none.

    Parameters
    ----------
    gains
        How many questions in a row were answered by a slightly faster plan.
    near
        Take it that the ends are close to each other, however far apart they are.
    """
    close = high is not None and (near or high - low <= CLOSE * high)
    if close and worth_a_last_question(gains):
        return Question(high, True, close)
    return Question(threshold_between(low, high), False, close)


def worth_a_last_question(gains: int) -> bool:
    """Tell whether to ask for anything better at all, after so many slight gains in a row, where the ends are close."""
    return gains % _GAINS != _GAINS - 1


def threshold_between(low: Fraction, high: Fraction | None) -> Fraction | None:
    """Return a threshold between two others, in whole ticks where that is one; None (any time) if there is no upper.

    The geometric mean while they are far apart, then the arithmetic one.
    """
    if high is None:
        return None
    if low * _FAR < high:
        middle = Fraction(math.isqrt(max(1, int(low * high))))
        if low < middle < high:
            return middle
    middle = (low + high) / 2
    whole = Fraction(int(middle))
    return whole if low < whole < high else middle
