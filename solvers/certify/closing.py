"""Searches with a time limit: the default search, the bounds of ``certify``, and what is left for the search again."""

from __future__ import annotations

from dataclasses import replace

from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.cell_work import certify
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.registry import Partitioner
from mtpp.solvers.timed_search import search_in_time

_FIRST_SHARE = 0.75
"""Of the time, at most, for the search that would be made without a time limit."""

_BOUNDS_SHARE = 0.8
"""Of the time left then, at most, for bounds."""

_LEAST_S = 0.3
"""Seconds below which nothing new is begun."""

_MEMORY_SHARE = 0.5
"""Of the memory, for each of two that may keep much at once: an exhaustive search, and HiGHS in its own process."""


def search_and_close(partitioner: Partitioner, instance: Instance, limits: SearchLimits, budget: int) -> SearchResult:
    """Search as without a time limit, and spend the time left on a proof, and then on a better partition.

    Parameters
    ----------
    budget
        Evaluations of the search without a time limit.

    Raises
    ------
    Infeasible
        As :func:`~mtpp.solvers.timed_search.search_in_time`.

    Notes
    -----
    A search alone comes to its best partition early, and its exhaustive part has an end that no time gets it past;
    bounds of other kinds close many of the instances that it leaves open. Those of tier ``solver``, which nobody can
    check, count for nothing here.
    """
    found = _by_budget(partitioner, instance, limits, budget)
    if _goes_on(found, limits):
        found = _with_bounds(instance, found, limits)
    if not _goes_on(found, limits):
        return found
    known = 0 if found.lower is None else found.lower.value
    again = search_in_time(partitioner, instance, replace(limits, lower_bound=max(known, limits.lower_bound)))
    evaluations = found.evaluations + again.evaluations
    if again.lower is not None and (found.lower is None or again.lower.value > known):
        found = replace(found, lower=again.lower)
    better = again if again.bottleneck < found.bottleneck else found
    lower = found.lower
    met = lower is not None and lower.value >= better.bottleneck
    stopped = StopReason.OPTIMAL if met else again.stopped
    return replace(better, lower=lower, evaluations=evaluations, stopped=stopped)


def _by_budget(partitioner: Partitioner, instance: Instance, limits: SearchLimits, budget: int) -> SearchResult:
    """Search as without a time limit, which ends it all the same."""

    def untimed(instance: Instance, inside: SearchLimits) -> SearchResult:
        return partitioner(
            instance, replace(inside, evaluations=budget, deadline=Deadline(), interrupted=lambda: inside.ended())
        )

    found = search_in_time(untimed, instance, replace(limits, deadline=limits.deadline.share(_FIRST_SHARE)))
    ended = found.stopped == StopReason.INTERRUPTED and not limits.interrupted()
    return replace(found, stopped=StopReason.TIME_LIMIT) if ended else found


def _goes_on(found: SearchResult, limits: SearchLimits) -> bool:
    """Tell whether there is no proof yet, and time to go on."""
    known = limits.lower_bound if found.lower is None else max(limits.lower_bound, found.lower.value)
    return known < found.bottleneck and limits.stop is None and limits.deadline.remaining_s() > _LEAST_S


def _with_bounds(instance: Instance, found: SearchResult, limits: SearchLimits) -> SearchResult:
    """Return a partition with the best proof that bounds come to; one that they find is taken over if it is better."""
    memory = None if limits.memory_bytes is None else int(_MEMORY_SHARE * limits.memory_bytes)
    part_s = _BOUNDS_SHARE * limits.deadline.remaining_s()
    own = CellLimits(part_s, proofs_only=True, seed=limits.seed, jobs=limits.jobs, memory_bytes=memory)
    state = certify(instance, own, interrupted=limits.interrupted, observer=limits.observer, found=found)
    assert state.partition is not None
    assert state.upper is not None
    if state.upper < found.bottleneck:
        by = str(state.upper_algorithm)
        found = replace(found, partition=state.partition, bottleneck=state.upper, found_by=by)
    lower = state.proven if found.lower is None or state.proven.value > found.lower.value else found.lower
    ends = {StopReason.TARGET: StopReason.OPTIMAL, None: found.stopped}
    ended = StopReason.OPTIMAL if lower.value >= found.bottleneck else ends.get(state.stopped, state.stopped)
    return replace(found, lower=lower, stopped=ended or found.stopped)
