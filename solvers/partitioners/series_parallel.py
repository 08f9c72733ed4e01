"""``series-parallel``: dynamic programming over the series-parallel decomposition of the graph."""

from __future__ import annotations

from dataclasses import replace

from mtpp.errors import Infeasible, InputError
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.placed_partition import as_placed
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners import slice as slicing
from mtpp.solvers.series_parallel.components import Components
from mtpp.solvers.series_parallel.cuts import Cutter
from mtpp.solvers.series_parallel.decomposition import decompose

_NAME = "series-parallel"

_CLOSE = 1 << 12
"""When what is out of reach is closer than this part of the bottleneck, the next cutoff is the bottleneck itself."""

_POINTS = (200, 20_000)
_POINTS_OF_ALL_OPS = 4_000_000
"""Fewest and most points of a front that is not thinned; in between, about this many for all ops together."""

_TOO_MANY = "the file's order alone was cut: too many devices differ for counts of them"

_POINT_BYTES = 128
"""Memory for a point and where it comes from, more rather than less."""


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the best partition whose stages are series-parallel pieces.

    :mod:`mtpp.solvers.series_parallel.cuts` says which stages these are. Begins with the best cut of the file's order
    and is never worse. Then asks for a cut below a cutoff, half-way between the bottleneck and what is known to be out
    of reach, again and again, and at last below the bottleneck itself, until there is none. Each cutoff is an
    evaluation.

    Cores with many downsets are cut along the file's order only, and the fronts of large graphs are thinned; what that
    leaves out is in ``coverage`` of the result.

    Raises
    ------
    InputError
        If the working memory of stages in the graph's order matters: it does not follow from that of their parts. If
        tensors pass from neighbour to neighbour: stages side by side would pay for those of each other.
    Infeasible
        If no partition was found that keeps to the stage memory; that proves nothing about other partitions.
    """
    if instance.peaks_in_order:
        raise InputError(
            "series-parallel pieces do not tell the peak of a stage that runs in the graph's order",
            parameter="peak",
            remedy="use ‹peak› reserve, or another ‹algorithm›",
        )
    if instance.machine.neighbours:
        raise InputError(
            "series-parallel pieces do not tell which tensors pass a stage from neighbour to neighbour",
            parameter="algorithm",
            remedy='use transport "direct", or another ‹algorithm›',
        )
    best = _sliced(instance, limits)
    upper = best.bottleneck if best else instance.most_ticks + 1
    lower = limits.lower_bound
    if (best and upper <= lower) or limits.evaluations <= 1 or limits.stop:
        return _result(instance, best, limits, 1, finished=False, coverage="")
    limits.observer.phase(_NAME)
    fewest, most = _POINTS
    room = _POINTS_OF_ALL_OPS
    if limits.memory_bytes is not None:
        room = min(room, limits.memory_bytes // _POINT_BYTES)
    points = max(fewest, min(most, room // instance.op_count))
    components = Components(instance, decompose(instance))
    if not components.groups.countable:
        return _result(instance, best, limits, 1, finished=True, coverage=_TOO_MANY)
    terms = components.groups.terms(upper, points)
    cutter = Cutter(components, terms)
    evaluations = 1
    while lower < upper and evaluations < limits.evaluations and not limits.stop:
        cutoff = (lower + upper + 1) // 2 if (upper - lower) * _CLOSE > upper else upper
        found = cutter.cut(terms._replace(cutoff=cutoff), lambda: limits.stop is not None)
        if found is None:
            if limits.stop:
                break
            lower = cutoff
        else:
            upper = bottleneck(as_placed(instance, found), found)
            best = SearchResult(found, upper, _NAME, evaluations, StopReason.FINISHED)
            limits.tell(best)
        evaluations += 1
        limits.observer.evaluated(1)
    return _result(instance, best, limits, evaluations, finished=lower >= upper, coverage=cutter.coverage())


def _sliced(instance: Instance, limits: SearchLimits) -> SearchResult | None:
    try:
        return slicing.partition(instance, limits)
    except Infeasible:
        return None


def _result(
    instance: Instance,
    best: SearchResult | None,
    limits: SearchLimits,
    evaluations: int,
    *,
    finished: bool,
    coverage: str,
) -> SearchResult:
    if best is None:
        raise none_found(instance, "its series-parallel pieces")
    stopped = StopReason.FINISHED if finished else limits.stop or StopReason.BUDGET
    if best.bottleneck <= limits.lower_bound:
        stopped = StopReason.OPTIMAL
    return replace(best, evaluations=evaluations, stopped=stopped, coverage=coverage)
