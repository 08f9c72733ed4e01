"""``mla-weighted``: the order with the shortest edges, weighted by their transfer, cut optimally."""

from __future__ import annotations

from mtpp.inference.instance import Instance
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners.mla import partition_by_arrangement


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Evolve the order with the least Σ io(u, v)·|π⁻¹(u) − π⁻¹(v)| over all edges, and cut it."""
    return partition_by_arrangement(instance, limits, "mla-weighted", weighted=True)
