"""``auto``, the default: the graph's own order first, then random orders for what is left of the budget."""

from __future__ import annotations

from mtpp.instance import Instance
from mtpp.solvers.partitioners import random, slice
from mtpp.solvers.search import SearchLimits, SearchResult


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the better of ``slice`` and ``random``; never worse than either under the same budget."""
    limits.observer.phase("slice")
    first = slice.partition(instance, limits)
    if first.stopped == "optimal":
        return first
    limits.observer.phase("random")
    return random.partition(instance, limits, first)
