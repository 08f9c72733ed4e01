"""``auto``, the default: everything that pays, in turns."""

from __future__ import annotations

from dataclasses import replace

from mtpp.instance import Instance
from mtpp.objective import bottleneck
from mtpp.solvers.multilevel import LARGE, solve_by_levels
from mtpp.solvers.portfolio import Portfolio
from mtpp.solvers.reduction import Reduction, reduce_instance
from mtpp.solvers.search import SearchLimits, SearchResult
from mtpp.solvers.slicing import slice_order
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
            start = _better_start(instance, rounds, limits, threads)
            limits.observer.incumbent(start.bottleneck)
            found = Portfolio(inner, start, limits, threads, order_share=_ORDER_SHARE).improve()
    for merges in reversed(rounds):
        found = replace(found, partition=merges.contraction.lift(found.partition))
    return found


def _better_start(instance: Instance, rounds: list[Reduction], limits: SearchLimits, threads: Threads) -> SearchResult:
    """Return a first partition of the reduced instance: none worse than the cut of either instance's own order."""
    start = first_result(instance, limits, threads)
    if not rounds:
        return start
    inner = rounds[-1].contraction.instance
    for merges in rounds:
        start = replace(start, partition=merges.carry(start.partition))
    start = replace(start, bottleneck=bottleneck(inner, start.partition))
    cut = slice_order(inner, inner.order, start.bottleneck)
    return start if cut is None else replace(start, partition=cut.partition, bottleneck=cut.bottleneck)
