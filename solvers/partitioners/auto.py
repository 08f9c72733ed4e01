"""``auto``, the default: everything that pays, in turns."""

from __future__ import annotations

from dataclasses import replace

from mtpp.instance import Instance
from mtpp.objective import bottleneck
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
    Up to :data:`~mtpp.solvers.multilevel.LARGE` ops never worse than ``slice``: it starts there. Without a deadline the
    result depends on the seed and the number of evaluations alone.
    """
    rounds = reduce_instance(instance)
    inner = rounds[-1].contraction.instance if rounds else instance
    with Threads(limits.jobs) as threads:
        if inner.op_count > LARGE:
            found = solve_by_levels(inner, limits, threads, order_share=_ORDER_SHARE)
        else:
            start = first_result(instance, limits, threads)
            for merges in rounds:
                start = replace(start, partition=merges.carry(start.partition))
            start = replace(start, bottleneck=bottleneck(inner, start.partition))
            limits.observer.incumbent(start.bottleneck)
            found = Portfolio(inner, start, limits, threads, order_share=_ORDER_SHARE).improve()
    for merges in reversed(rounds):
        found = replace(found, partition=merges.contraction.lift(found.partition))
    return found
