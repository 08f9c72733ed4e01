"""``slice``: cut the graph's own order."""

from __future__ import annotations

from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.threads import Threads


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the best cut of the order in which the file lists the ops.

    Optimal among segmentations of that order; can be k times OPT (Archer et al. 2024, Lemma B.2). O(n·w·k + pins).
    """
    with Threads(1) as threads:  # a signal is noticed meanwhile
        (found,) = threads.map(lambda order: slice_order(instance, order), [instance.order])
    if found is None:
        raise none_found(instance, "the file's order")
    limits.observer.evaluated(1)
    limits.observer.incumbent(found.bottleneck)
    stopped = StopReason.OPTIMAL if found.bottleneck <= limits.lower_bound else limits.stop or StopReason.FINISHED
    return SearchResult(found.partition, found.bottleneck, "slice", 1, stopped)
