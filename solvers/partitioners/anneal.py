"""``anneal``: simulated annealing on assignments, with restarts and polishing."""

from __future__ import annotations

from mtpp.inference.instance import Instance
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.device_portfolio import search_devices
from mtpp.solvers.local_search.initial_partition import first_result
from mtpp.solvers.local_search.multilevel import LARGE, solve_by_levels
from mtpp.solvers.local_search.portfolio import Portfolio
from mtpp.solvers.threads import Threads


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the best of many annealing runs, each polished, their best orders cut again.

    Notes
    -----
    Single ops move between their legal stages; per-tensor stage counters make a move O(degree). The rounds begin at the
    cut of the graph's own order, or where a clock ends the search at what was annealed on contractions of the graph,
    later ones at the best assignments met. One evaluation is n proposed moves. O(n + m·k) memory per thread. Above
    :data:`~mtpp.solvers.local_search.multilevel.LARGE` ops all that is done to a contraction of the graph, and the
    result is refined: its own order is then not cut. On devices that differ as
    :func:`~mtpp.solvers.local_search.device_portfolio.search_devices`.
    """
    if not instance.equal_devices:
        free = instance.machine.free
        return search_devices(instance, limits, free=free).placed(instance, free=free)
    with Threads(limits.jobs) as threads:
        if instance.op_count > LARGE:
            return solve_by_levels(instance, limits, threads, order_share=0.0)
        start = first_result(instance, limits, threads)
        limits.observer.incumbent(start.bottleneck)
        return Portfolio(instance, start, limits, threads, order_share=0.0).improve()
