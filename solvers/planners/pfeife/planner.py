"""``pfeife``: split points and a schedule together, the shortest iteration found, and bounds on that of all.

The problem is that of Jhoo et al., "Pfeife: Automatic Pipeline Parallelism for PyTorch", ICML 2025: stages are runs of
an order, their passes follow a looped 1F1B schedule with prefetched forward passes. Three things are added: warm-ups
are searched device by device, a mixture of paths through the passes bounds all splits of a schedule, and one through
what all schedules share bounds them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.baselines import EVEN, baselines
from mtpp.solvers.planners.pfeife.candidate import Candidate, Scheduled
from mtpp.solvers.planners.pfeife.families import ScheduleCell
from mtpp.solvers.planners.pfeife.least_memory import leanest_found, memory_that_would_do
from mtpp.solvers.planners.pfeife.path_bound import load_bound, path_bound
from mtpp.solvers.planners.pfeife.path_network import schedule_network
from mtpp.solvers.planners.pfeife.schedule_arrays import arrays_of
from mtpp.solvers.planners.pfeife.search import MOST_PLAYED, CellBound, SplitSearch
from mtpp.solvers.planners.topological_orders import random_orders, topological_orders
from mtpp.solvers.threads import Threads
from mtpp.training.model import LinePlace
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.plan import FAMILY, LOADS, PATHS, SCHEDULE, Baseline, NoSplitPlan, SplitPlan
from mtpp.training.pfeife.precedence import precedence_order
from mtpp.training.pfeife.problem import SplitProblem

_DRAWN = 20
"""Random orders that are tried, besides a dozen that walk along branches or across them."""

_MOST_OPS = 5_000
"""Of graphs for which the narrowest order is made, at a cost of ops by ops that are ready."""


def plan(problem: SplitProblem, limits: Limits) -> SplitPlan | NoSplitPlan:
    """Return the plan with the shortest iteration found, and what is proven; or that there is none.

    Raises
    ------
    Deadlock
        If the passes of the only schedule that is allowed wait for each other; the text names them.
    """
    with Threads(limits.jobs) as threads:
        if problem.rules.order != "search":
            return _along(problem, threads, limits)
        return _along_orders(problem, threads, limits)


def _along_orders(problem: SplitProblem, threads: Threads, limits: Limits) -> SplitPlan | NoSplitPlan:
    """Plan along the file's order, and with each cell of schedules along the order that is best for it."""
    limits.observer.phase("orders")
    cells = [(0, 0)] if problem.rules.schedule is not None else problem.cells
    orders: dict[Sequence[LinePlace], list[tuple[int, int]]] = {}
    for cell in cells:
        if orders and limits.ended():
            break
        order = best_order(problem, cell, threads, limits)
        if order is not None:
            orders.setdefault(order, []).append(cell)
    found = None
    for order, best_for in orders.items():
        along = _along(problem.reordered(order), threads, limits, best_for)
        found = along if found is None else _better(found, along)
        if limits.ended():
            return found
    own = _along(problem, threads, limits)
    return own if found is None else _better(own, found)


def _better(one: SplitPlan | NoSplitPlan, other: SplitPlan | NoSplitPlan) -> SplitPlan | NoSplitPlan:
    """Return the faster plan, or of two that do not fit the one that needs less memory."""
    plans = [found for found in (one, other) if isinstance(found, SplitPlan)]
    if plans:
        return min(plans, key=lambda plan: plan.iteration)
    unfit = [found for found in (one, other) if isinstance(found, NoSplitPlan)]
    return min(unfit, key=lambda found: (found.least_memory_bytes is None, found.least_memory_bytes or 0))


def _along(
    problem: SplitProblem, threads: Threads, limits: Limits, of: Sequence[tuple[int, int]] | None = None
) -> SplitPlan | NoSplitPlan:
    """Plan along one order of ops, with the schedules of some cells alone or of all."""
    search = SplitSearch(problem, limits)
    if problem.rules.schedule is not None:
        return _of_schedule(problem, search, threads, limits)
    limits.observer.phase("schedules")
    cells = search.cell_bounds(threads)
    if not cells:
        _tell_deadlock(problem)
    limits.observer.phase("splits")
    chosen = [one for one in cells if of is None or (one.cell.loops, one.cell.loop_batch) in of]
    best = search.best_of_cells(chosen, threads)
    if best is None:
        best = leanest_found(problem, search, [one.cell for one in cells], threads, limits)
    if best is None or best.excess:
        return memory_that_would_do(problem, best, limits)
    limits.observer.incumbent(best.ticks)
    return _plan_of(problem, best, cells, search, limits)


def _tell_deadlock(problem: SplitProblem) -> None:
    """Raise Deadlock: no schedule of the rules runs, which only a fixed prefetch leads to."""
    for loops, batch in problem.cells:
        cell = ScheduleCell(problem, loops, batch)
        assert cell.fixed is not None
        precedence_order(cell.looped(cell.fixed).schedule)
    raise AssertionError


def _of_schedule(
    problem: SplitProblem, search: SplitSearch, threads: Threads, limits: Limits
) -> SplitPlan | NoSplitPlan:
    """Plan split points for the schedule that is given."""
    assert problem.rules.schedule is not None
    _, schedule = problem.rules.schedule
    arrays = arrays_of(schedule)
    if arrays is None:
        precedence_order(schedule)
        raise AssertionError
    scheduled = Scheduled(problem, arrays, None)
    limits.observer.phase("splits")
    if problem.rules.search == "beam":
        best = search.beam_of([scheduled], threads)
    elif search.few:
        best = search.best_of_all([scheduled])
    else:
        best = search.annealed(scheduled, threads)
    if best is None or best.excess:
        best = search.within_memory([scheduled])
    if best is None:
        best = leanest_found(problem, search, [scheduled], threads, limits)
    if best is None or best.excess:
        return memory_that_would_do(problem, best, limits)
    limits.observer.incumbent(best.ticks)
    return _plan_of(problem, best, [], search, limits)


def _plan_of(
    problem: SplitProblem, best: Candidate, cells: list[CellBound], search: SplitSearch, limits: Limits
) -> SplitPlan:
    limits.observer.phase("bound")
    lower, family = _bounds(problem, best, cells, search)
    limits.observer.bound(family.value)
    rules, looped = problem.rules, best.scheduled.looped
    schedule = looped.schedule if looped is not None else rules.schedule[1] if rules.schedule else None
    assert schedule is not None
    planned = SplitPlan(
        problem,
        schedule,
        looped,
        None if rules.schedule is None else rules.schedule[0],
        best.split.tolist(),
        best.ticks,
        lower,
        family,
        [*baselines(problem), _even(best, search)],
        limits.stop or StopReason.FINISHED,
    )
    return replace(planned, stopped=StopReason.OPTIMAL) if planned.optimal else planned


def _even(best: Candidate, search: SplitSearch) -> Baseline:
    """Return even stages under the plan's own schedule: what uneven ones gain is told by them."""
    even = best.scheduled.of(search.even(best.scheduled.arrays.stages))
    return Baseline(EVEN, even.split.tolist(), even.ticks, even.excess == 0)


def _bounds(
    problem: SplitProblem, best: Candidate, cells: list[CellBound], search: SplitSearch
) -> tuple[LowerBound, LowerBound]:
    """Return the bound on all splits of the plan's schedule, and that on all schedules of the rules."""
    loads = LowerBound(load_bound(problem), LOADS, Tier.EXACT)
    if problem.rules.transport == "direct":
        return loads, loads
    lower = loads
    if not search.ended and len(best.scheduled.arrays.table) <= MOST_PLAYED:
        network = schedule_network(best.scheduled.arrays)
        own = path_bound(network, problem.times, search.game(network, best.split))
        if own.value > loads.value:
            lower = LowerBound(own.value, PATHS, Tier.EXACT, own.proof)
    if not cells or (len(problem.cells) == 1 and problem.rules.prefetch is not None):
        return lower, LowerBound(lower.value, SCHEDULE, Tier.EXACT)
    family = _family_bound(problem, cells) or loads
    if loads.value >= family.value:
        family = loads
    return LowerBound(family.value, FAMILY, Tier.EXACT) if family.value > lower.value else lower, family


def _family_bound(problem: SplitProblem, cells: list[CellBound]) -> LowerBound | None:
    """Return the least of the bounds of all cells, what no schedule of the rules is below; None if one is missing."""
    if any(one.network is None or one.game is None for one in cells):
        return None
    found = {
        (one.cell.loops, one.cell.loop_batch): path_bound(one.network, problem.times, one.game)
        for one in cells
        if one.network is not None and one.game is not None
    }
    rows: list[dict[str, Any]] = []
    for loops, batch in problem.cells:
        proof = found[loops, batch].proof if (loops, batch) in found else {"total": 1, "paths": []}
        rows.append({"loops": loops, "loop_batch": batch, **proof})
    value = min(one.value for one in found.values())
    return LowerBound(value, PATHS, Tier.EXACT, {"cells": rows})


def best_order(
    problem: SplitProblem, cell: tuple[int, int], threads: Threads, limits: Limits
) -> Sequence[LinePlace] | None:
    """Return the best of some topological orders, by a short search of splits; None if that is the line's own.

    Parameters
    ----------
    cell
        Loops and loop batch of the schedules that are tried, where none is given.
    """
    orders = list(dict.fromkeys(map(tuple, _orders(problem.line))))
    tried = threads.map(lambda order: _tried(problem, order, cell, limits), orders)
    best = min(range(len(orders)), key=lambda i: (tried[i], i))
    return orders[best] if best else None


def _orders(line: ModelLine) -> Iterator[Sequence[LinePlace]]:
    """Go through orders, the line's own first."""
    yield line.order
    if line.costs.ops <= _MOST_OPS:
        yield _narrow(line)
    yield from chain(topological_orders(line), random_orders(line, _DRAWN))


def _narrow(line: ModelLine) -> Sequence[LinePlace]:
    """Return an order that takes next the op after which least has to be handed over, and earlier ones among equals."""
    costs = line.costs
    made: list[list[int]] = [[] for _ in range(costs.ops)]
    read: list[list[int]] = [[] for _ in range(costs.ops)]
    left = [len(one.consumers) for one in costs.tensors]
    waiting = [0] * costs.ops
    for t, one in enumerate(costs.tensors):
        made[one.producer].append(t)
        for v in one.consumers:
            read[v].append(t)
            waiting[v] += 1
    ready = [v for v in line.order if not waiting[v]]
    order: list[LinePlace] = []
    while ready:
        v = min(
            ready,
            key=lambda op: (
                sum(costs.tensors[t].ticks for t in made[op] if left[t])
                - sum(costs.tensors[t].ticks for t in read[op] if left[t] == 1),
                op,
            ),
        )
        ready.remove(v)
        order.append(v)
        for t in read[v]:
            left[t] -= 1
        for t in made[v]:
            for w in costs.tensors[t].consumers:
                waiting[w] -= 1
                if not waiting[w]:
                    ready.append(w)
    return order


def _tried(problem: SplitProblem, order: Sequence[LinePlace], cell: tuple[int, int], limits: Limits) -> tuple[int, int]:
    """Return the rank of a short search of splits along an order."""
    if limits.ended():
        return 2**62, 2**62
    return SplitSearch(problem.reordered(order), limits).quick(*cell).rank
