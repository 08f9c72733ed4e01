"""``auto``, the default: annealing, evolved orders and exhaustive search in turns."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isqrt

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.names import FRACTION, NODE
from mtpp.solvers.best_so_far import Lifted
from mtpp.solvers.bounds.cheap import cheap_bound
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.initial_partition import first_result
from mtpp.solvers.local_search.multilevel import LARGE, solve_by_levels
from mtpp.solvers.local_search.portfolio import ORDER_SHARE, Portfolio
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.partitioners import brkga
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.registry import default_sweeps
from mtpp.solvers.relaxation.loop import MOVES_PER_STEP, RelaxationLoop, lifting_steps
from mtpp.solvers.threads import Threads
from mtpp.solvers.unequal.partition import partition_unequal
from mtpp.solvers.unequal.replicated import partition_replicated

_SEED_SHARE = 0.2
"""Of a time limit, for ``brkga`` with its own defaults beforehand: the result is none worse, where that suffices."""

_FIRST_SHARE = 0.3
"""Of the time, for orders that a tight stage memory may let be cut, before an exhaustive search for any partition."""

_RELAXATION_SHARE = 0.35
"""Of the budget, for relaxations of wide graphs."""

_FEWEST_STEPS, _TURNS = 1 << 14, 12
"""Of the first relaxed searches: steps at least, and what part of all."""

_NEXT = 2
"""Times as many in the next round."""

_PROMISING = 0.85
"""Of the bottleneck, that relaxations have to prove in their first round, unless they find a better partition."""

_FEWEST_OPS = 250
"""Ops from which on relaxations are tried: smaller graphs are searched as they are."""

_SHORT = 100
"""Evaluations of ``brkga`` beforehand where no clock ends the search."""


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Reduce the instance, cut its own order, then prove, anneal and evolve orders in turns.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the stage memory; else because none was found.

    Notes
    -----
    Up to :data:`~mtpp.solvers.local_search.multilevel.LARGE` ops never worse than ``slice``: it starts there. Without a
    deadline the result depends on the seed and the number of evaluations alone, as long as the memory suffices.
    """
    if instance.replicas:
        return partition_replicated(instance, limits)
    if not instance.equal_devices:
        return partition_unequal(instance, limits)
    reduced = reduce_instance(instance, ended=limits.ended)
    if reduced.instance.op_count <= LARGE:
        return search(reduced, limits, Prover(reduced, limits))
    with Threads(limits.jobs) as threads:
        found = solve_by_levels(reduced.instance, _inside(limits, reduced), threads, order_share=ORDER_SHARE)
    lower = None
    if limits.cheap_bounds:
        lower = cheap_bound(NODE, reduced, found.partition, found.bottleneck, limits.lower_bound, limits)
    met = lower is not None and lower.value >= found.bottleneck
    stopped = StopReason.OPTIMAL if met else found.stopped
    return replace(found, partition=reduced.lift(found.partition), lower=lower, stopped=stopped)


def search(reduced: ReducedInstance, limits: SearchLimits, prover: Prover) -> SearchResult:
    """Return the best partition of the original that a portfolio on the reduced instance finds, with its proof."""
    with Threads(limits.jobs) as threads:
        start = _first(reduced, limits, threads, prover)
        limits.observer.incumbent(start.bottleneck)
        inside = _inside(limits, reduced)
        portfolio = Portfolio(reduced.instance, start, inside, threads, order_share=ORDER_SHARE, prover=prover)
        cheap = [_cheap_bound(NODE, reduced, limits, portfolio, prover)]
        portfolio.prove_first()
        cheap.append(_cheap_bound(FRACTION, reduced, limits, portfolio, prover))
        if not portfolio.ended:
            _relax(reduced, limits, portfolio, prover, threads)
        evaluations = limits.evaluations - portfolio.evaluations
        seed = None if portfolio.ended else _evolved(reduced.original, limits, evaluations)
        if seed is not None:
            portfolio.add(replace(seed, partition=reduced.carry(seed.partition)))
        found = portfolio.improve()
    for bound in cheap:  # only now: from above one of them, the prover's own steps may get less far
        if bound is not None:
            prover.accept(bound)
    met = prover.lower >= found.bottleneck
    stopped = StopReason.OPTIMAL if met else found.stopped
    return replace(found, partition=reduced.lift(found.partition), lower=prover.bound, stopped=stopped)


def _cheap_bound(
    name: str, reduced: ReducedInstance, limits: SearchLimits, portfolio: Portfolio, prover: Prover
) -> LowerBound | None:
    """Return a bound that costs little and is above what is known; the prover has it at once if it ends the search."""
    if portfolio.ended or not limits.cheap_bounds:
        return None
    best = portfolio.best
    start = Partition.from_stages(reduced.instance, best.stage)
    found = cheap_bound(name, reduced, start, best.bottleneck, prover.lower, limits)
    if found is not None:
        limits.observer.bound(found.value)
        if found.value >= best.bottleneck:
            prover.accept(found)
        else:
            limits.keeper.prove(found)
    return found


def _relax(
    reduced: ReducedInstance, limits: SearchLimits, portfolio: Portfolio, prover: Prover, threads: Threads
) -> None:
    """Let partitions and bounds of relaxed instances help for a share of the budget, where ops may be left out."""
    instance = reduced.original
    left = min(limits.evaluations - portfolio.evaluations, default_sweeps(instance))
    steps = int(_RELAXATION_SHARE * left * instance.op_count / MOVES_PER_STEP)
    if instance.op_count < _FEWEST_OPS or steps < 2 * (len(instance.pins) + lifting_steps(instance.op_count)):
        return
    part = replace(limits, deadline=limits.deadline.share(_RELAXATION_SHARE))
    loop = RelaxationLoop(reduced, prover.lower, portfolio.best.bottleneck, part, threads)
    if loop.finished:
        return
    limits.observer.phase("relaxation")
    first = max(_FEWEST_STEPS, steps // _TURNS)
    loop.run(steps, first, most_rounds=1)
    if loop.partition is not None or loop.lower >= _PROMISING * loop.upper:
        loop.run(steps - loop.steps, _NEXT * first)
    if loop.bound is not None:
        prover.accept(loop.bound)
    spent = ceil(loop.steps * MOVES_PER_STEP / instance.op_count)
    portfolio.spend(min(spent, limits.evaluations - portfolio.evaluations))
    if loop.partition is not None:
        found = reduced.carry(loop.partition)
        portfolio.add(SearchResult(found, loop.upper, "relaxation", 0, StopReason.BUDGET))


def _inside(limits: SearchLimits, reduced: ReducedInstance) -> SearchLimits:
    """Return the limits of a search after the merges: what it finds is kept as it is before them."""
    return replace(limits, keeper=Lifted(limits.keeper, reduced.lift)) if reduced.rounds else limits


def _first(reduced: ReducedInstance, limits: SearchLimits, threads: Threads, prover: Prover) -> SearchResult:
    """Return a first partition of the reduced instance, by exhaustive search where nothing else finds one."""
    kept = min(limits.evaluations // 2, default_sweeps(reduced.original))
    tries = limits.evaluations - kept
    in_time = limits.evaluations == UNLIMITED and limits.deadline.limit_s is not None
    deadline = limits.deadline.share(_FIRST_SHARE) if in_time else limits.deadline
    try:
        return _better_start(reduced, replace(limits, evaluations=tries, deadline=deadline), threads)
    except Infeasible:
        n = prover.inner.op_count
        limits.observer.phase("downset")
        partition = prover.any_partition(UNLIMITED if in_time else n * kept)
        if partition is None and in_time and not limits.ended():
            return _better_start(reduced, limits, threads)
        if partition is None:
            raise
        cost = bottleneck(prover.inner, partition)
        spent = ceil(prover.steps / n)
        evaluations = spent if in_time else tries + min(kept, spent)
        return SearchResult(partition, cost, "downset", evaluations, StopReason.BUDGET)


def _better_start(reduced: ReducedInstance, limits: SearchLimits, threads: Threads) -> SearchResult:
    """Return a first partition of the reduced instance: none worse than the cut of either instance's own order."""
    start = first_result(reduced.original, limits, threads)
    if not reduced.rounds:
        return start
    inner = reduced.instance
    start = replace(start, partition=reduced.carry(start.partition))
    start = replace(start, bottleneck=bottleneck(inner, start.partition))
    cut = slice_order(inner, inner.order, start.bottleneck)
    return start if cut is None else replace(start, partition=cut.partition, bottleneck=cut.bottleneck)


def _evolved(instance: Instance, limits: SearchLimits, left: int) -> SearchResult | None:
    """Return what ``brkga`` finds: with its own defaults in a share of the time, else in a few evaluations.

    None if there is no room for it in the evaluations *left*, or nothing is found within the stage memory.
    """
    timed = limits.deadline.limit_s is not None
    evaluations = left if timed else _SHORT
    if evaluations > left or left < 2 * _SHORT:
        return None
    limits.observer.phase("brkga")
    part = replace(
        limits,
        evaluations=evaluations,
        population=min(brkga.POPULATION, isqrt(evaluations)),
        generations=brkga.GENERATIONS,
        deadline=limits.deadline.share(_SEED_SHARE),
    )
    try:
        return brkga.partition(instance, part)
    except Infeasible:
        return None
