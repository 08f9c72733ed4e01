"""First assignments of graphs of hundreds of ops, annealed on contractions of them, the smallest first.

A layer of a network is many ops, of which none moves to another stage alone at a gain. On a contraction to some ten ops
for each stage a move takes a whole part of the graph along, and the same time goes further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mtpp.inference.contraction import Contraction
from mtpp.inference.instance import Instance
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.local_search.annealing import COOL, HOT, WARM, Annealer, Assignment, Schedule, Start, best_of
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.reduction.coarsening import coarsen
from mtpp.solvers.threads import Threads

_OPS_PER_STAGE, _FEWEST_OPS = 10, 40
"""Of the smallest contraction, about."""

_SMALLER = 2
"""Times as many ops as that a graph has at least."""

_MOST_PER_STAGE = 64
"""Ops for each stage, from which on single ones suffice to even stages out: the time is better spent on those."""

_RUNS, _KEPT = 8, 8
_SWEEPS, _MOST_SWEEPS = 800, 10_000
"""Moves for each op in a run: in the first round, twice as many in each round, and at most."""

_SCHEDULES = (HOT, WARM)
"""Of the smallest contraction, after a first round in which all are hot."""

_LATER_SCHEDULES = (WARM, COOL)
"""Of the others."""


def coarse_start(
    instance: Instance, stages: int, limits: SearchLimits, threads: Threads
) -> Iterator[tuple[list[Assignment], int]]:
    """Anneal contractions until the deadline of *limits*, the smallest first.

    Parameters
    ----------
    stages
        That ops may be in.

    Yields
    ------
    After each contraction, its best assignments as such of the instance, the best first, and the moves proposed.
    Nothing where the graph is too small, stages are large, or no cut of the contraction's own order keeps to the stage
    memory.
    """
    target = max(_FEWEST_OPS, _OPS_PER_STAGE * instance.k)
    if not _SMALLER * target <= instance.op_count <= _MOST_PER_STAGE * instance.k:
        return
    levels = coarsen(instance, target, ended=limits.ended)
    if not levels or _SMALLER * levels[-1].instance.op_count > instance.op_count or limits.ended():
        return
    coarse = levels[-1].instance
    cut = slice_order(coarse, coarse.order)
    if cut is None:
        return
    pool = [Assignment(cut.bottleneck, cut.partition.assignment)]
    for left in range(len(levels), 0, -1):
        level = levels[left - 1]
        part = replace(limits, deadline=limits.deadline.share(1 / left))
        schedules = _SCHEDULES if left == len(levels) else _LATER_SCHEDULES
        pool, moves = _annealed(level.instance, pool, schedules, stages, part, threads)
        if moves:
            yield [_lifted(one, levels[:left]) for one in pool], moves
        pool = [_lifted(one, levels[left - 1 : left]) for one in pool]


def _lifted(one: Assignment, levels: Sequence[Contraction]) -> Assignment:
    """Return an assignment of the last level as one of the first level's original."""
    stage = one.stage
    for level in reversed(levels):
        stage = stage[level.group_of]
    return Assignment(one.bottleneck, stage)


def _annealed(
    instance: Instance,
    pool: list[Assignment],
    schedules: Sequence[Schedule],
    stages: int,
    limits: SearchLimits,
    threads: Threads,
) -> tuple[list[Assignment], int]:
    """Return the best assignments after rounds of annealing until a deadline, and the moves proposed."""
    annealer = Annealer(instance, stages, threads, limits.seed, limits.ended)
    length, proposals = _SWEEPS * instance.op_count, 0
    runs = range(max(_RUNS, limits.jobs))
    while pool[0].bottleneck > limits.lower_bound and not limits.ended():
        own = schedules if len(pool) > 1 else schedules[:1]
        starts = [Start(pool[run % len(pool)].stage, own[run % len(own)]) for run in runs]
        found, moves = annealer.round(starts, length)
        pool = best_of([*pool, *found], _KEPT)
        proposals += moves
        length = min(2 * length, _MOST_SWEEPS * instance.op_count)
    return pool, proposals
