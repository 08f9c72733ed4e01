"""Planning over sampled downsets, for models with too many: several long branches side by side.

Plans come from families of downsets: those that good topological orders pass through, then those around the ends of
the stages of the best plan. Bounds come from thresholds: no plan within T ends a stage where too much would have to be
sent. Where few enough downsets are left at a threshold, the search over them decides about all plans within it; if they
are few enough at the time of the best plan, that search finds the optimum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.graph import Int64Array
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.bounds.work import least_memory, no_plan_because
from mtpp.solvers.planners.layer_options import layer_options, least_by_layer, most_degrees
from mtpp.solvers.planners.piper.layer_downsets import Sets, layer_bits, prefixes
from mtpp.solvers.planners.piper.minimising import (
    Minimum,
    least_time,
    memory_that_would_do,
    no_plan,
    plan_of,
    too_little_memory,
)
from mtpp.solvers.planners.piper.threshold import PipelineSearch
from mtpp.solvers.planners.topological_orders import depth_first, random_orders, topological_orders
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


def useful_downsets(problem: PlanningProblem, time: Fraction, most: int, limits: PlanLimits) -> Sets | None:
    """Return a family with every downset that lies behind a stage of any plan within *time* ticks, if it is small.

    Returns
    -------
    None if more than *most* downsets come up on the way, or if the limits strike.

    Notes
    -----
    Let T be the time, D a downset behind a stage, and let an edge into D be paid for by the stages at both its ends, at
    the least for any configuration. Then K · T ≥ Σ d · t · f ≥ Σ over layers of the least t · p + what all edges into D
    are paid, and min(N, K) · T ≥ Σ over layers of the least p + the same. Each of D and the rest needs whole devices,
    which is asked for at the end. Layers are decided from the sinks on, branch by branch; an edge counts as soon as
    both its ends are decided, one in and one out, so what is left out early cannot come back. O(n · D · n / 64).
    """
    n, ends = len(problem.model.layers), problem.model.ends
    devices, degrees = problem.devices, most_degrees(problem)
    least = np.array(least_by_layer(problem, lambda option: option.compute), dtype=np.int64)
    least_device = np.array(least_by_layer(problem, lambda option: option.device_compute), dtype=np.int64)
    paid_in, paid_out = _least_paid(problem)
    spare: Fraction = min(devices * time - int(least_device.sum()), degrees * time - int(least.sum()))
    if spare < 0:
        return np.stack([layer_bits((), n), layer_bits(range(n), n)])
    room = min(int(spare), 2**62)
    sets = layer_bits((), n)[None, :]
    paid, work, device_work, inward = (np.zeros(1, dtype=np.int64) for _ in range(4))
    for v in reversed(depth_first(problem.model)):
        if limits.stop:
            return None
        bit = layer_bits([v], n)
        successors = [(e, layer_bits([ends[e][1]], n)) for e in problem.edges_out[v]]
        needed = layer_bits((ends[e][1] for e in problem.edges_out[v]), n)
        joins = ((sets & needed) == needed).all(axis=1)
        # Left out, the layer's edges into the downset cross.
        stays_paid, stays_inward = paid.copy(), inward.copy()
        for e, target in successors:
            crossing = (sets & target).any(axis=1)
            stays_paid += crossing * (paid_in[e] + paid_out[e])
            stays_inward += crossing * paid_in[e]
        kept = stays_paid <= room
        sets = np.concatenate([sets[kept], sets[joins] | bit])
        paid = np.concatenate([stays_paid[kept], paid[joins]])
        inward = np.concatenate([stays_inward[kept], inward[joins]])
        work = np.concatenate([work[kept], work[joins] + least[v]])
        device_work = np.concatenate([device_work[kept], device_work[joins] + least_device[v]])
        if len(sets) > most:
            return None
    ticks = max(1, -(-time.numerator // time.denominator))
    enough = np.ones(len(sets), dtype=bool)
    for inside, total, number in (
        (device_work, int(least_device.sum()), devices),
        (work, int(least.sum()), degrees),
    ):
        behind, before = inside + inward, total - inside + (paid - inward)
        enough &= -(-behind // ticks) - (-before // ticks) <= number
    whole = (sets == layer_bits(range(n), n)).all(axis=1) | ~sets.any(axis=1)
    useful: Sets = sets[enough | whole]
    return useful


def neighbours(problem: PlanningProblem, layers: Iterable[int], most: int) -> Sets:
    """Return the up to *most* downsets that fewest layers have to be added to or taken from a given one to reach."""
    n, ends = len(problem.model.layers), problem.model.ends
    after = [sum(1 << ends[e][1] for e in edges) for edges in problem.edges_out]
    before = [sum(1 << ends[e][0] for e in edges) for edges in problem.edges_in]
    start = sum(1 << v for v in layers)
    seen = {start}
    waiting = deque([start])
    while waiting and len(seen) < most:
        here = waiting.popleft()
        for v in range(n):
            inside = here >> v & 1
            if (inside and not before[v] & here) or (not inside and after[v] & ~here == 0):
                other = here ^ 1 << v
                if other not in seen and len(seen) < most:
                    seen.add(other)
                    waiting.append(other)
    words = -(-n // 64)
    mask = 2**64 - 1
    return np.array([[one >> (64 * w) & mask for w in range(words)] for one in sorted(seen)], dtype=np.uint64)


def _least_paid(problem: PlanningProblem) -> tuple[Int64Array, Int64Array]:
    """Return the least that the stages of each edge's target and source pay if they differ, sync included."""
    paid_in = np.array(problem.edge_ticks, dtype=np.int64)
    paid_out = paid_in.copy()
    for paid, edges_at, incoming in ((paid_in, problem.edges_in, True), (paid_out, problem.edges_out, False)):
        for v, edges in enumerate(edges_at):
            choices = [option.choice for option in layer_options(problem, v)]
            for i, e in enumerate(edges):
                paid[e] += min((one.sync_in_ticks if incoming else one.sync_out_ticks)[i] for one in choices)
    return paid_in, paid_out
