"""First plans: layers in their own order, cut into stages of about equal work, made before a search that may not end.

None is optimal, and none may fit. They take seconds for ten thousands of layers at most, so that a search that is given
up has something to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mtpp.errors import Deadlock, InconsistentResult, InputError
from mtpp.host.stop_reason import CUT_SHORT, StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.solvers.last_look.graph_plans import look_at_graph_plan
from mtpp.solvers.last_look.line_plans import look_at_line_plan, look_at_nested_plan
from mtpp.solvers.planners.bounds.work import work_bound
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.nested.planner import work_bound as nested_work_bound
from mtpp.solvers.planners.pfeife.baselines import EVEN, baselines, even_split
from mtpp.solvers.planners.pfeife.candidate import Scheduled
from mtpp.solvers.planners.pfeife.families import ScheduleCell
from mtpp.solvers.planners.pfeife.path_bound import load_bound
from mtpp.solvers.planners.pfeife.schedule_arrays import arrays_of
from mtpp.solvers.planners.registry import DEFAULT
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.model import Configuration
from mtpp.training.nested_plan import NestedPlan, Superstage
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.pfeife.plan import LOADS, SCHEDULE, Baseline, NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan, stage_figures
from mtpp.training.problem import Choice, PlanningProblem
from mtpp.training.stage_costs import ScheduledStage

AnyPlan = TrainingPlan | NestedPlan | GraphPlan | SplitPlan
AnyNoPlan = NoPlan | NoGraphPlan | NoSplitPlan


def first_line_plan(problem: PlanningProblem, planner: str, stopped: StopReason) -> TrainingPlan | None:
    """Return a plan of stages with one replica each, the fastest of a few that fit; None if none of these does.

    Notes
    -----
    Layers run as the fastest or the leanest of their configurations, for the least degree of tensor parallelism that
    all of them have; work or memory is shared equally. O(layers + edges) for each.
    """
    bound = work_bound(problem)
    if bound is None or 1 not in problem.data_degrees:
        return None
    best: TrainingPlan | None = None
    for stages in _lines(problem):
        if problem.exact_micro_batches and len(stages) != problem.micro_batches:
            continue
        if max(one.memory_bytes for one in stage_figures(problem, stages)) > problem.memory_bytes:
            continue
        plan = TrainingPlan(problem, planner, stages, bound, stopped)
        if best is None or plan.time_per_sample < best.time_per_sample:
            best = plan
    if best is not None:
        look_at_line_plan(problem, best)
    return best


def first_plan(problem: PlanningProblem, stopped: StopReason) -> TrainingPlan | None:
    """Return the first plan of the default planner."""
    return first_line_plan(problem, DEFAULT, stopped)


def first_nested_plan(problem: NestedProblem, planner: str, stopped: StopReason) -> NestedPlan | None:
    """Return a plan whose splits have as many equal parts as there are devices, without replicas; None if none fits.

    Notes
    -----
    As :func:`first_line_plan`, with O(layers + edges) for each way to configure layers and to weigh them.
    """
    level_one = problem.level_one
    lower = nested_work_bound(problem)
    anything = replace(lower, value=Fraction(0))  # one without enough memory may be faster than any that has it
    best: NestedPlan | None = None
    for t, chosen, order, weights in _configured(level_one, problem.most_in_flight):
        most = min(level_one.micro_batches, problem.devices // t)
        widths = [one.devices for one in reversed(problem.outer)]
        pipeline = _split(order, weights, [*widths, problem.machine.levels[0].devices // t], most, t, chosen)
        plan = NestedPlan(problem, planner, pipeline, anything, stopped)
        if level_one.exact_micro_batches and plan.degrees_sum != level_one.micro_batches:
            continue
        if max(one.memory_bytes for one in plan.figures) > level_one.memory_bytes:
            continue
        if best is None or plan.time_per_sample < best.time_per_sample:
            best = plan
    if best is None:
        return None
    best = replace(best, lower=lower)
    look_at_nested_plan(problem, best)
    return best


def _split(
    order: Sequence[int], weights: Sequence[int], widths: Sequence[int], most: int, t: int, chosen: Mapping[int, int]
) -> Sequence[Superstage] | Sequence[LayerStage]:
    """Split layers into at most so many stages, level by level; *widths* says the parts of each, outermost first."""
    runs = _runs(order, weights, min(widths[0], most, len(order)))
    if len(widths) == 1:
        return [LayerStage(run, 1, t, [chosen[v] for v in run]) for run in runs]
    weight = dict(zip(order, weights, strict=True))
    room = most // len(runs)
    return [Superstage(1, _split(run, [weight[v] for v in run], widths[1:], room, t, chosen)) for run in runs]


def _lines(problem: PlanningProblem) -> Iterator[list[LayerStage]]:
    for t, chosen, order, weights in _configured(problem, problem.devices):
        runs = _runs(order, weights, min(problem.devices // t, problem.micro_batches, len(order)))
        yield [LayerStage(run, 1, t, [chosen[v] for v in run]) for run in runs]


def _configured(
    problem: PlanningProblem, devices: int
) -> Iterator[tuple[int, Mapping[int, int], Sequence[int], Sequence[int]]]:
    """Go through degrees of tensor parallelism, choices by layer, an order of layers, and weights to share equally."""
    order: list[int] = list(problem.model.order)
    for t, by_layer in zip(problem.degrees, problem.choices, strict=True):
        if not all(by_layer[v] for v in order):
            continue
        count = min(devices // t, problem.micro_batches, len(order))
        for lean in (False, True):
            chosen = {v: _choice(by_layer[v], count if lean else None) for v in order}
            ones = [by_layer[v][chosen[v]] for v in order]
            yield t, chosen, order, [one.compute_ticks for one in ones]
            yield t, chosen, order, [one.memory_a * count + one.memory_b for one in ones]


def _choice(choices: Sequence[Choice], in_flight: int | None) -> int:
    """Return the position of the fastest choice; of the one that holds least with so many micro-batches, if given."""
    held = [0 if in_flight is None else one.memory_a * in_flight + one.memory_b for one in choices]
    return min(range(len(choices)), key=lambda c: (held[c], choices[c].compute_ticks))


def _runs(order: Sequence[int], weights: Sequence[int], count: int) -> list[list[int]]:
    """Cut an order into so many runs of about equal weight."""
    sums = np.cumsum([0, *weights], dtype=np.int64)
    split = even_split(sums, count).tolist()
    return [list(order[begin:end]) for begin, end in pairwise(split)]


def first_graph_plan(problem: GraphProblem, stopped: StopReason) -> GraphPlan | None:
    """Return a line of stages on one device each, of two sizes of micro-batches, the faster that fits.

    Notes
    -----
    O(layers + edges + passes) for each size.
    """
    costs = LeastCosts(problem)
    work = sum(costs.work(costs.every))
    best: GraphPlan | None = None
    for size in sorted({problem.sizes[0], problem.sizes[len(problem.sizes) // 2]}):
        stages = _stages_of(problem, size)
        if stages is None or max(problem.costs.memory_bytes(one) for one in stages) > problem.memory_bytes:
            continue
        names = [problem.costs.stage_name(one) for one in stages]
        try:
            simulated = simulate(problem.costs.stage_graph(stages, names, line=problem.rules.sequential))
        except (Deadlock, InputError):
            continue
        iteration = simulated.iteration
        if best is None or iteration < best.iteration:
            lower = LowerBound(min(iteration, -(-work // problem.devices)), "work", Tier.EXACT)
            best = GraphPlan(problem, stages, iteration, lower, stopped)
    if best is not None:
        look_at_graph_plan(problem, best)
    return best


def _stages_of(problem: GraphProblem, size: int) -> list[ScheduledStage] | None:
    """Return equal stages for micro-batches of so many samples, None if some layer has no costs of them."""
    order: list[int] = list(problem.model.order)
    chosen: dict[int, Configuration] = {}
    times: list[int] = []
    ways = problem.ways.of(size)
    if problem.ways.lacking([size]):
        return None
    for v in order:
        ticks, c = min((one.both_ticks, c) for c, one in ways[v])
        chosen[v] = problem.choices[v][c]
        times.append(ticks)
    interval = min(problem.rules.intervals)
    runs = _runs(order, times, min(problem.devices, len(order)))
    behind: list[tuple[int, int, int]] = []
    stages: list[ScheduledStage] = []
    for run in reversed(runs):  # each reads from the one before at most, and is counted as if all did
        count = problem.fewest_in_flight(size, interval, behind)
        stages.append(ScheduledStage({v: chosen[v] for v in run}, 1, size, count, interval))
        behind = [(size, interval, count)]
    return stages[::-1]


def first_split_plan(problem: SplitProblem, stopped: StopReason) -> SplitPlan | None:
    """Return even stages under the schedule that is given, or the leanest of each number of loops; None if none fits.

    Notes
    -----
    O(ops + tensors + passes) for each.
    """
    found = None
    for scheduled in _schedules(problem):
        row = int(problem.times.speed_of[0])
        sums = problem.times.forward[row] + problem.times.backward[row]
        one = scheduled.of(even_split(sums, scheduled.arrays.stages))
        if one.excess == 0 and (found is None or one.ticks < found.ticks):
            found = one
    if found is None:
        return None
    looped, given = found.scheduled.looped, problem.rules.schedule
    schedule = looped.schedule if looped is not None else given[1] if given is not None else None
    assert schedule is not None
    lower = LowerBound(load_bound(problem), LOADS, Tier.EXACT)
    family = LowerBound(lower.value, SCHEDULE, Tier.EXACT) if given is not None else lower
    name = None if given is None else given[0]
    compared = [*baselines(problem), Baseline(EVEN, found.split.tolist(), found.ticks, fits=True)]
    return SplitPlan(
        problem, schedule, looped, name, found.split.tolist(), found.ticks, lower, family, compared, stopped
    )


def _schedules(problem: SplitProblem) -> Iterator[Scheduled]:
    if problem.rules.schedule is not None:
        arrays = arrays_of(problem.rules.schedule[1])
        if arrays is not None:
            yield Scheduled(problem, arrays, None)
        return
    seen: set[int] = set()
    for loops, batch in problem.cells:
        if loops not in seen and (leanest := ScheduleCell(problem, loops, batch).leanest) is not None:
            seen.add(loops)
            yield leanest


def result_beside_first(found: AnyPlan | AnyNoPlan, first: AnyPlan) -> AnyPlan | AnyNoPlan:
    """Return the result of a planner; of a search that was ended the first plan, where that is faster or the only one.

    A search that came to its own end is believed: its result does not depend on the first plan.
    """
    if isinstance(found, AnyNoPlan):
        if found.proven:
            raise InconsistentResult("no plan is said to be possible, and one was made before the search began")
        return replace(first, stopped=found.stopped) if found.stopped in CUT_SHORT else found
    if found.stopped not in CUT_SHORT or _time(found) <= _time(first):
        return found
    if isinstance(found, SplitPlan):  # its bounds are of its own schedule and order of ops
        return replace(first, stopped=found.stopped)
    return replace(first, lower=found.lower, stopped=found.stopped)  # type: ignore[arg-type]


def _time(plan: AnyPlan) -> Fraction:
    """Return the ticks that a plan is rated by: of an iteration, or for a sample."""
    return Fraction(plan.iteration if isinstance(plan, GraphPlan | SplitPlan) else plan.time_per_sample)
