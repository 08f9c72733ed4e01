"""Ticks as a MIP solver takes them, and what its dual bound is worth in ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

LEAST_MARGIN = 1e-5
MARGIN_PER_COLUMN = 2e-7
"""What is taken off a dual bound, in units of the objective: HiGHS has absolute tolerances of 1e-6 (measured)."""

_BITS = 10
"""The cutoff is between 2^9 and 2^10 in units of the objective."""


def margin(columns: int) -> float:
    """Return what is taken off the dual bound of a model with that many columns."""
    return max(LEAST_MARGIN, MARGIN_PER_COLUMN * columns)


@dataclass(frozen=True)
class Scale:
    """How ticks become units of the objective.

    Attributes
    ----------
    cutoff
        Only partitions below so many ticks are of interest; at least 1.
    unit
        The cost of every stage is a multiple of so many ticks.
    shift
        One unit is 2^shift units of the objective: a power of two, so that no cost is rounded.
    """

    cutoff: int
    unit: int
    shift: int

    @classmethod
    def of(cls, cutoff: int, unit: int) -> Scale:
        """Return the scale that puts the cutoff between 2^9 and 2^10."""
        return cls(cutoff, unit, _BITS - (-(-cutoff // unit)).bit_length())

    @property
    def limit(self) -> int:
        """The most that a partition below the cutoff can cost, in ticks."""
        return (self.cutoff - 1) // self.unit * self.unit

    def objective(self, ticks: int) -> float:
        """Return ticks in units of the objective."""
        return float(Fraction(ticks, self.unit) * Fraction(2) ** self.shift)

    def ceiling(self, columns: int) -> float:
        """Return a limit on the objective that every partition below the cutoff stays below, by twice the margin."""
        return self.objective(self.limit) + 2 * margin(columns)

    def lower(self, dual_bound: float, columns: int) -> int:
        """Return the ticks that a dual bound proves, at most :attr:`cutoff`.

        Parameters
        ----------
        dual_bound
            On the least objective of all partitions below the cutoff; infinite if there is none.

        Notes
        -----
        The margin is taken off first, then it is rounded up to a multiple of the unit: OPT is such a multiple.
        """
        if dual_bound == math.inf:
            return self.cutoff
        value = (Fraction(dual_bound) - Fraction(margin(columns))) / Fraction(2) ** self.shift
        return max(0, min(self.cutoff, math.ceil(value) * self.unit))
