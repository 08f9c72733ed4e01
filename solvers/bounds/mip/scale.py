"""Ticks as a MIP solver takes them, and what its dual bound is worth in ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mtpp.inference.certificate import SOLVER_TOLERANCE

MARGIN = 2.0**-12
"""Taken off a dual bound, in units of the objective: less than 5·10⁻⁷ of a cutoff, so that a bound can be within 10⁻⁶.

It is empirical, and no proof: HiGHS promises nothing of its dual bound. Graphs of up to eight ops were held against
brute force. A cutoff taken for a bound was up to 7·10⁻⁸ above the optimum. Dual bounds of models that reach beyond the
cutoff were up to 10⁻⁶ above with the default tolerances of 10⁻⁶ and 10⁻⁷, where costs of all sizes meet. With 10⁻⁹ they
were up to 10⁻⁹ above, once rows that an optimum can meet exactly were loosened by 10⁻⁷: they had cut it off. The margin
is some hundred times as much, and holds a relaxation that is dual infeasible by 10⁻⁹ in each of 200,000 columns.
``benchmarks/cutoffs.py`` looks for bounds that it does not hold for.
"""

_BITS = 10
"""The cutoff is between 2^9 and 2^10 in units of the objective."""

_ROOM = 10_000
"""A model reaches beyond what it is asked about by one part in so many, and by one unit at least."""

_EXACT = 2**53
"""Sums of whole numbers up to this are exact in double precision."""


def beyond_precision(ticks: int, unit: int) -> bool:
    """Tell whether costs of so many ticks in all, each a multiple of *unit*, are too large for double precision."""
    return ticks // unit > _EXACT


@dataclass(frozen=True)
class Scale:
    """Scale from ticks to units of the objective, and the bounds that may be claimed.

    Attributes
    ----------
    cutoff
        The model holds for partitions below so many ticks; above all that may be claimed.
    most
        The highest bound that may be claimed, in ticks.
    unit
        The cost of every stage is a multiple of so many ticks.
    shift
        One unit is 2^shift units of the objective: a power of two, so that no cost is rounded.
    """

    cutoff: int
    most: int
    unit: int
    shift: int

    @classmethod
    def of(cls, asked: int, unit: int, most: int | None = None) -> Scale:
        """Return the scale that puts the cutoff between 2^9 and 2^10.

        Parameters
        ----------
        asked
            No bound above so many ticks is of use. Partitions of that cost, and some above, are in the model: a solver
            that takes the least of them for infeasible would be off by far more than its tolerances.
        most
            No bound above so many ticks may be claimed: None: *asked*.
        """
        above = -(-asked // unit) * unit
        limit = above + max(1, -(-asked // (unit * _ROOM))) * unit
        claimed = above if most is None else min(above, most // unit * unit)
        return cls(limit + 1, claimed, unit, _BITS - (limit // unit).bit_length())

    @property
    def limit(self) -> int:
        """The most that a partition below the cutoff can cost, in ticks."""
        return (self.cutoff - 1) // self.unit * self.unit

    @property
    def enough(self) -> int:
        """Ticks of a bound that is as good as :attr:`most`, but for the tolerance of the solver."""
        return math.ceil(self.most / (1 + SOLVER_TOLERANCE))

    def objective(self, ticks: int) -> float:
        """Return ticks in units of the objective."""
        return float(Fraction(ticks, self.unit) * Fraction(2) ** self.shift)

    @property
    def ceiling(self) -> float:
        """A limit on the objective that every partition below the cutoff stays below, by twice the margin."""
        return self.objective(self.limit) + 2 * MARGIN

    def lower(self, dual_bound: float) -> int | None:
        """Return the ticks that a dual bound is worth, at most :attr:`most`; None for an infinite one.

        Parameters
        ----------
        dual_bound
            On the least objective of all partitions below the cutoff.

        Notes
        -----
        The margin is taken off first, then it is rounded up to a multiple of the unit: OPT is such a multiple.
        """
        if not math.isfinite(dual_bound):
            return None
        value = (Fraction(dual_bound) - Fraction(MARGIN)) / Fraction(2) ** self.shift
        return max(0, min(self.most, math.ceil(value) * self.unit))
