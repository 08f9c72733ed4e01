"""``slice``: cut the graph's own order."""

from __future__ import annotations

from mtpp.instance import Instance
from mtpp.solvers.search import SearchLimits, SearchResult
from mtpp.solvers.slicing import slice_order


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the best cut of the order in which the file lists the ops.

    Optimal among segmentations of that order; can be k times OPT (Archer et al. 2024, Lemma B.2). O(n·w·k + pins).
    """
    found = slice_order(instance, instance.order)
    assert found is not None  # without a cutoff there is always a segmentation
    limits.observer.evaluated(1)
    limits.observer.incumbent(found.bottleneck)
    stopped = "optimal" if found.bottleneck <= limits.lower_bound else "finished"
    return SearchResult(found.partition, found.bottleneck, "slice", 1, stopped)
