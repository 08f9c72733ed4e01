"""Multilevel search for large graphs: contract, solve the small instance, and refine on the way back.

The scheme of Herrmann et al. (2019) for acyclic partitioning, with the bottleneck for an objective. A partition of
the contracted instance is one of the large instance at the same cost, so every level begins with what the last one
found and only improves it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.contraction import Contraction, lift_through
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.solvers.best_so_far import Keeper, Lifted
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.annealing import Annealer, Schedule, Start
from mtpp.solvers.local_search.initial_partition import FirstSearch, first_result
from mtpp.solvers.local_search.portfolio import Portfolio
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.reduction.coarsening import coarsen
from mtpp.solvers.threads import Threads

LARGE = 8_000
"""Ops from which on searching a contraction first gives better partitions in the same time."""

_TARGET = 3_000
_TARGET_PER_STAGE = 125
_FIRST_TRIES = 600
"""Evaluations for a first partition of the smallest instance, before larger ones are tried."""

_COARSE_SHARE = 0.5
_REFINING = Schedule(0.0004, 0.00005, 12.0, 24.0)
_SWEEPS = 30
"""Moves per op that a level is refined with, where time and budget allow."""

_RUNS = 2
_STATE_BYTES = 2**30
"""For the counters of all runs of a level together, where a clock ends the search and more threads are at hand."""


def solve_by_levels(instance: Instance, limits: SearchLimits, threads: Threads, *, order_share: float) -> SearchResult:
    """Search a contraction of a few thousand ops, then refine its partition level by level.

    Notes
    -----
    Half of the time or, at most, of the budget goes to the smallest instance, or all of it if there is none smaller
    than *instance*. Half of the budget at most goes to a little annealing at each level; some may be left over. What
    is left of the time is used up. O(n + pins) per level and sweep; O(n + m·k) memory per run.
    """
    limits.observer.phase("contract")
    levels = coarsen(instance, max(_TARGET, _TARGET_PER_STAGE * instance.k), ended=limits.ended)
    start, levels, searched = _first(instance, levels, limits, threads)
    replace(limits, keeper=_lifting(limits.keeper, levels)).tell(start)
    if not searched:
        return _refined(start, levels, limits, threads)
    if not levels:
        return Portfolio(instance, start, limits, threads, order_share=order_share).improve()
    coarse = levels[-1].instance
    scale = instance.op_count / coarse.op_count  # an evaluation is as many moves as there are ops
    bounded = limits.evaluations < UNLIMITED
    part = replace(
        limits,
        evaluations=max(1, int(_COARSE_SHARE * scale * limits.evaluations)) if bounded else UNLIMITED,
        deadline=limits.deadline.share(_COARSE_SHARE),
        keeper=_lifting(limits.keeper, levels),
    )
    found = Portfolio(coarse, start, part, threads, order_share=order_share).improve()
    spent = max(1, int(found.evaluations / scale))
    return _refined(replace(found, evaluations=spent), levels, limits, threads)


def _lifting(keeper: Keeper, levels: list[Contraction]) -> Keeper:
    """Return a keeper for the instance that *levels* lead to."""
    return Lifted(keeper, partial(lift_through, levels)) if levels else keeper


def _first(
    instance: Instance, levels: list[Contraction], limits: SearchLimits, threads: Threads
) -> tuple[SearchResult, list[Contraction], bool]:
    """Return a first partition, the levels down to the instance it is of, and whether that is to be searched.

    The smallest instance has one unless a stage memory is too tight for its large ops. Then the first larger instance
    whose own order can be cut will do. It is only refined where it is too large to be searched.
    """
    coarse = levels[-1].instance if levels else instance
    if not levels or instance.device.memory_bytes is None:
        return first_result(coarse, limits, threads), levels, True
    first = FirstSearch(coarse, limits.seed)
    try:
        tries = min(limits.evaluations, _FIRST_TRIES)
        return first.go_on(replace(limits, evaluations=tries), threads), levels, True
    except Infeasible:
        for depth in range(len(levels) - 1, -1, -1):
            if limits.ended():
                raise
            larger = levels[depth].original
            (cut,) = threads.map(lambda one: slice_order(one, one.order), [larger])
            if cut is not None:
                start = SearchResult(cut.partition, cut.bottleneck, "slice", 1, StopReason.BUDGET)
                return start, levels[:depth] or [_itself(instance)], larger.op_count <= LARGE
    return first.go_on(limits, threads), levels, True


def _itself(instance: Instance) -> Contraction:
    """Return the contraction that merges nothing."""
    return Contraction(instance, np.arange(instance.op_count, dtype=np.int32), instance)


def _runs(instance: Instance, limits: SearchLimits) -> int:
    """Return how many runs refine a level side by side."""
    if limits.deadline.limit_s is None:
        return _RUNS  # whatever the number of threads, for the sake of the same result
    fitting = _STATE_BYTES // (4 * max(1, instance.tensor_count) * instance.k)
    return max(_RUNS, min(limits.jobs, fitting))


def _refined(found: SearchResult, levels: list[Contraction], limits: SearchLimits, threads: Threads) -> SearchResult:
    """Carry a partition of the last level back to the first instance, annealing it a little at every level.

    Where a clock ends the search, the first instance is annealed again and again, longer each time, until it does.
    """
    stage = found.partition.assignment
    bottleneck, found_by, spent = found.bottleneck, found.found_by, found.evaluations
    sweeps = max(1, min(_SWEEPS, (limits.evaluations - spent) // (2 * _RUNS)))  # levels add up to twice the largest
    largest, stages = levels[0].original.op_count, levels[0].original.k
    for index in range(len(levels) - 1, -1, -1):
        level = levels[index]
        stage = stage[level.group_of]
        instance = level.original
        keeper = _lifting(limits.keeper, levels[:index])
        runs = _runs(instance, limits)
        length = sweeps * instance.op_count
        annealer: Annealer | None = None
        while stages > 1 and not limits.ended() and bottleneck > limits.lower_bound:
            length = min(length, (limits.evaluations - spent) * largest // runs)
            if not length:
                break
            if annealer is None:
                limits.observer.phase(f"refine {instance.op_count:,} ops")
                annealer = Annealer(instance, min(stages, instance.op_count), threads, limits.seed, limits.ended)
            results, proposals = annealer.round([Start(stage, _REFINING)] * runs, length)
            spent += ceil(proposals / largest)
            limits.observer.evaluated(ceil(proposals / largest))
            best = min(results, key=lambda one: one.bottleneck)
            if best.bottleneck < bottleneck:
                bottleneck, stage, found_by = best.bottleneck, best.stage, "anneal"
                limits.observer.incumbent(bottleneck)
                keeper.offer(bottleneck, found_by, partial(Partition.from_stages, instance, stage))
            if level is not levels[0] or limits.deadline.limit_s is None:
                break
            length *= 2
    partition = Partition.from_stages(levels[0].original, stage)
    stopped = (
        StopReason.OPTIMAL
        if bottleneck <= limits.lower_bound
        else limits.stop or (StopReason.BUDGET if stages > 1 else StopReason.FINISHED)
    )
    return SearchResult(partition, bottleneck, found_by, spent, stopped)
