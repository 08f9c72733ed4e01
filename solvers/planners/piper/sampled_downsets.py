"""Planning over sampled downsets, for models with too many: several long branches side by side.

Plans come from families of downsets: those that good topological orders pass through, then those around the ends of
the stages of the best plan. Bounds come from thresholds: no plan within T ends a stage where too much would have to be
sent. Where few enough downsets are left at a threshold, the search over them decides about all plans within it; if they
are few enough at the time of the best plan, that search finds the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.solvers.planners.bounds.work import least_memory, no_plan_because
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.piper.downset_families import neighbours, useful_downsets
from mtpp.solvers.planners.piper.layer_downsets import Sets, prefixes
from mtpp.solvers.planners.piper.least_memory import memory_that_would_do
from mtpp.solvers.planners.piper.minimising import Minimum, least_time
from mtpp.solvers.planners.piper.plan_results import no_plan, plan_of, too_little_memory
from mtpp.solvers.planners.piper.threshold import PipelineSearch
from mtpp.solvers.planners.topological_orders import random_orders, topological_orders
from mtpp.training.plan import LayerStage, NoPlan, TimeBound, TrainingPlan
from mtpp.training.problem import PlanningProblem

MOST_USEFUL = 30_000
"""So many downsets are searched for a proof at most."""

_DRAWN = 24
_ROUNDS = 12
_AROUND = 300
_THRESHOLDS = 8
_NARROW = Fraction(1, 10_000)

_NOT_ALL = "too many downsets to look at all: stages were sought along good orders of layers and around the best plan"

MakeSearch = Callable[[Sets], PipelineSearch]


def plan_sampled(
    problem: PlanningProblem, limits: PlanLimits, bound: TimeBound | None, search: MakeSearch
) -> TrainingPlan | NoPlan:
    """Return the best plan found and the best bound proven; *bound* is the one to beat, None if there is no plan.

    Optimal if the plan and the bound meet. Random orders are always the same, so without a limit that strikes the
    result is, too.
    """
    orders = [*topological_orders(problem.model), *random_orders(problem.model, _DRAWN)]
    family = prefixes(problem, orders)
    if bound is None:
        memory, _ = memory_that_would_do(search(family), least_memory(problem))
        reason = no_plan_because(problem) or too_little_memory(problem.devices)
        return no_plan(problem, limits.stop or StopReason.FINISHED, reason, memory)
    limits.observer.phase("plans along orders")
    # One order is cut in a moment; with its plan, stages that take longer need not be looked at in the whole family.
    minimum = least_time(search(prefixes(problem, orders[:1])), bound.value, partial=True)
    if not limits.stop:
        known = None if minimum.stages is None or minimum.time is None else (minimum.time, minimum.stages)
        minimum = least_time(search(family), bound.value, known, partial=True)
    if minimum.stages is None or minimum.time is None:
        stopped = limits.stop
        memory = None if stopped else memory_that_would_do(search(family), least_memory(problem))[0]
        reason = "no plan was found, which may be for lack of memory: the model has too many downsets to look at all"
        return no_plan(problem, stopped or StopReason.FINISHED, reason, memory, proven=False)
    limits.observer.phase("plans around the best")
    minimum = _improved(problem, limits, minimum, orders, search, bound.value)
    limits.observer.phase("all plans within a time")
    minimum, searched = _bounded(problem, limits, minimum, bound.value, search)
    plan = plan_of(problem, replace(minimum, stopped=limits.stop or minimum.stopped), bound, searched)
    return plan if plan.optimal else replace(plan, notes=[_NOT_ALL])


def _improved(
    problem: PlanningProblem,
    limits: PlanLimits,
    minimum: Minimum,
    orders: Sequence[Sequence[int]],
    search: MakeSearch,
    lower: Fraction,
) -> Minimum:
    """Look for faster plans around the ends of the best plan's stages, until there is none or rounds run out."""
    for _ in range(_ROUNDS):
        assert minimum.stages is not None
        assert minimum.time is not None
        stage_of = {v: i for i, stage in enumerate(minimum.stages) for v in stage.layers}
        # Orders that take the plan's stages one after the other, each inside as the order has it.
        through = [sorted(order, key=lambda v: stage_of[v]) for order in orders]
        family = prefixes(problem, through)
        around = [neighbours(problem, end, _AROUND) for end in _ends(minimum.stages)]
        family = np.unique(np.concatenate([family, *around]), axis=0)
        better = least_time(search(family), lower, (minimum.time, minimum.stages), partial=True)
        if better.time is None or better.time >= minimum.time:
            break
        minimum = better
        if limits.stop:
            break
    # What was proven holds for plans over a family only.
    return replace(minimum, lower=lower)


def _ends(stages: Sequence[LayerStage]) -> Iterable[list[int]]:
    """Yield the downsets behind each stage but the last."""
    behind: list[int] = []
    for stage in stages[:0:-1]:
        behind.extend(stage.layers)
        yield behind


def _bounded(
    problem: PlanningProblem, limits: PlanLimits, minimum: Minimum, lower: Fraction, search: MakeSearch
) -> tuple[Minimum, int]:
    """Raise the bound as far as few enough downsets are left; return the result, and how many were searched last."""
    assert minimum.time is not None
    assert minimum.stages is not None
    searched = 0
    floor, ceiling = lower, minimum.time
    asked = ceiling
    for _ in range(_THRESHOLDS):
        sets = useful_downsets(problem, asked, MOST_USEFUL, limits)
        if limits.stop:
            break
        if sets is None:
            ceiling = asked
        else:
            found = least_time(search(sets), floor, (asked, ()) if asked < minimum.time else (asked, minimum.stages))
            searched = len(sets)
            if found.stages and found.time is not None and found.time < minimum.time:
                # Every plan up to the threshold was looked at, so this one is the best there is.
                return found, searched
            if found.undecided or found.lower < asked:
                return replace(minimum, lower=max(found.lower, lower)), searched
            if asked >= minimum.time:
                return replace(minimum, lower=minimum.time), searched
            floor = lower = asked
        if ceiling - floor <= _NARROW * ceiling:
            break
        asked = (floor + ceiling) / 2
        asked = Fraction(int(asked)) if int(asked) > floor else asked
    return replace(minimum, lower=lower), searched
