"""``auto``, the default: everything that pays, in turns."""

from __future__ import annotations

from dataclasses import replace

from mtpp.instance import Instance
from mtpp.solvers.multilevel import LARGE, solve_by_levels
from mtpp.solvers.portfolio import Portfolio
from mtpp.solvers.reduction import reduce_instance
from mtpp.solvers.search import SearchLimits, SearchResult
from mtpp.solvers.starts import first_result
from mtpp.solvers.threads import Threads

_ORDER_SHARE = 0.15


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Reduce the instance, cut its own order, then anneal and evolve orders in turns.

    Raises
    ------
    Infeasible
        If no first partition within the stage memory is found.

    Notes
    -----
    Never worse than ``slice``: it starts there. Without a deadline the result depends on the seed and the number of
    evaluations alone.
    """
    merges = reduce_instance(instance)
    inner = merges[-1].instance if merges else instance
    with Threads(limits.jobs) as threads:
        if inner.op_count > LARGE:
            found = solve_by_levels(inner, limits, threads, order_share=_ORDER_SHARE)
        else:
            limits.observer.phase("slice")
            start = first_result(inner, limits, threads)
            limits.observer.incumbent(start.bottleneck)
            found = Portfolio(inner, start, limits, threads, order_share=_ORDER_SHARE).improve()
    lifted = found.partition
    for merge in reversed(merges):
        lifted = merge.lift(lifted)
    return replace(found, partition=lifted)
