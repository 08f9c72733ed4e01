"""``auto``, the default: the graph's own order first, then random orders for what is left of the budget."""

from __future__ import annotations

from mtpp.errors import Infeasible
from mtpp.instance import Instance
from mtpp.solvers.partitioners import random, slice
from mtpp.solvers.search import SearchLimits, SearchResult


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the better of ``slice`` and ``random``; never worse than either under the same budget.

    Raises
    ------
    Infeasible
        If neither finds a partition within the stage memory.
    """
    limits.observer.phase("slice")
    first: SearchResult | None = None
    try:
        first = slice.partition(instance, limits)
    except Infeasible:
        limits.observer.evaluated(1)
    if first is not None and first.stopped == "optimal":
        return first
    limits.observer.phase("random")
    return random.partition(instance, limits, first)
