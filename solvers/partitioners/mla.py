"""``mla``: the order with the shortest edges, cut optimally."""

from __future__ import annotations

from mtpp.inference.instance import Instance
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.arrangement import partition_by_arrangement


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Evolve the order with the least Σ |π⁻¹(u) − π⁻¹(v)| over all edges, and cut it."""
    return partition_by_arrangement(instance, limits, "mla", weighted=False)
