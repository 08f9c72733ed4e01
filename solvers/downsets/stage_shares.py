"""Weights of ops of which no stage within a limit holds more than a capacity, as searches take them.

Where they are more than k stages hold, the limit is ruled out: that is the bound of
:mod:`mtpp.solvers.bounds.convex_weights`. Where they are a little less, each stage of a partition within the limit has
to be nearly full: a second rule of fit, beside that of work. What has to be shown of them is only the capacity, by a
scan of all convex sets that goes into the proof of the search. What holds at a limit holds at all lower ones, for they
have fewer convex sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from mtpp.array_types import Int64Array

_SLACK = 1.7
"""Stages less than there are that weights fill at least where they are a rule of any use."""


@dataclass(frozen=True, eq=False)
class StageShares:
    """That no stage of a partition within a limit holds more of some weights than a capacity.

    It holds at all lower limits too.

    Attributes
    ----------
    limit
        In ticks.
    weights
        Of each op, integers of at least 0, int64, shape (n,).
    capacity
        Of a stage.
    document
        Makes the proof, as JSON values, for the check without a search.
    """

    limit: int
    weights: Int64Array
    capacity: int
    document: Callable[[], dict[str, Any]]

    @property
    def filled(self) -> float:
        """Stages that the ops fill at least."""
        return float(self.weights.sum()) / self.capacity if self.capacity else inf

    def rule_out(self, k: int) -> bool:
        """Tell whether *k* stages cannot hold them."""
        return int(self.weights.sum()) > k * self.capacity

    def tells(self, k: int) -> bool:
        """Tell whether a search with *k* stages is likely to gain from them."""
        return self.filled > k - _SLACK


def shares_within(known: Iterable[StageShares], limit: int) -> StageShares | None:
    """Return the weights that fill most stages among those that hold at a limit, None if none do."""
    return max((one for one in known if one.limit >= limit), key=lambda one: one.filled, default=None)
