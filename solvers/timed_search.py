"""Searches that end with their time: the best that a partitioner has told of, where it does not come back."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

from mtpp.errors import Infeasible
from mtpp.host.ending import EndedEarly, run_in_time
from mtpp.host.memory_limit import limited_memory, spare_memory
from mtpp.host.progress import Counting
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers import registry
from mtpp.solvers.best_so_far import BestSoFar
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.initial_partition import first_partition


def search_in_time(
    partitioner: registry.Partitioner, instance: Instance, limits: SearchLimits, *, none: Infeasible | None = None
) -> SearchResult:
    """Search, and where a limit is past before the search comes back, return the best that it has told of.

    That is at least a cut of the graph's own order into stages of about equal work, made beforehand where there is a
    limit. Without one only Ctrl-C gives a search up, a moment after it was asked to end.

    Parameters
    ----------
    none
        Raised where nothing was found, for a search whose objective is not the bottleneck: no cut is made for it.

    Raises
    ------
    Infeasible
        As the partitioner; or because nothing that keeps to the stage memory was found in the time.
    """
    best = BestSoFar()
    limited = limits.deadline.limit_s is not None or limited_memory()
    first = first_partition(instance) if limited and none is None else None
    if first is not None:
        cut = first.partition
        best.offer(first.bottleneck, first.found_by, lambda: cut)
    given_up = Event()
    counting = Counting(limits.observer)
    own = replace(limits, keeper=best, observer=counting, interrupted=lambda: given_up.is_set() or limits.interrupted())
    try:
        return run_in_time(lambda: partitioner(instance, own), limits.deadline, lambda: limits.stop)
    except Infeasible:
        ended = limits.stop
        if first is None or ended is None:
            raise
        stopped = ended
    except EndedEarly as end:
        given_up.set()  # or it might go on beside what comes next
        stopped = end.stopped
    spare_memory()
    found = best.partition()
    if found is None and none is not None:
        raise none
    if found is None and not limited and (first := first_partition(instance)) is not None:
        found = first.partition, first.bottleneck, first.found_by
    if found is None:
        raise none_found(instance, "the file's order in the time")
    partition, bottleneck, found_by = found
    if bottleneck <= limits.lower_bound:
        stopped = StopReason.OPTIMAL
    return SearchResult(partition, bottleneck, found_by, max(1, counting.count), stopped, lower=best.lower)
