"""``piper``: pipelines with data and tensor parallelism and a configuration for each layer, proven to be the fastest.

The problem and the two-level dynamic programme are those of Tarnawski, Narayanan and Phanishayee, "Piper:
Multidimensional Planner for DNN Parallelization", NeurIPS 2021: stages are differences of downsets (section 4), and a
knapsack chooses what their layers run as. Two things are done otherwise:

* a threshold T in place of the best time as the value of a state. Whether a stage is within T has one answer, so the
  fewest devices by sum of degrees are all that a downset has to be known by, and the number of devices is no index any
  more. The least T comes from bisection;
* the knapsack is solved exactly, so that the result is the optimum and not the best of what the heuristic finds.

Models with too many downsets (several long branches) are planned over those that good orders of their layers pass
through, and bounded by thresholds at which few enough downsets are left:
:mod:`mtpp.solvers.planners.piper.sampled_downsets`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.bounds.work import least_memory, no_plan_because, work_bound
from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.layer_downsets import Sets, every_downset, prefixes
from mtpp.solvers.planners.piper.minimising import least_time, memory_that_would_do, no_plan, plan_of, too_little_memory
from mtpp.solvers.planners.piper.sampled_downsets import plan_sampled
from mtpp.solvers.planners.piper.threshold import PipelineSearch
from mtpp.solvers.planners.topological_orders import topological_orders
from mtpp.solvers.threads import Threads
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem

MOST_DOWNSETS = 2**16
"""Models with more are planned over some of them."""

FEW_DOWNSETS = 600
"""So few are all looked at from the start."""


def plan(problem: PlanningProblem, limits: PlanLimits) -> TrainingPlan | NoPlan:
    """Return the plan with the least time per sample, and the proof; or that there is none.

    With the exact knapsack and without a limit that strikes, the plan is optimal among all plans if the model has at
    most :data:`MOST_DOWNSETS` downsets. Otherwise it is the best plan found, with the best bound proven.

    Notes
    -----
    A few nanoseconds for each of the D² / 2 pairs of downsets that cannot be a stage, and for the others O(n log n) for
    each degree t and step of a binary search over d; for each of about a dozen thresholds.
    """
    bound = work_bound(problem)
    if bound is not None:
        limits.observer.bound(math.ceil(bound.value))
    arrays = choice_arrays(problem)
    with Threads(limits.jobs) as threads:

        def search(sets: Sets) -> PipelineSearch:
            """Return the search over a family of downsets."""
            return PipelineSearch(problem, arrays, sets, limits, threads)

        limits.observer.phase("downsets")
        sets = every_downset(problem, MOST_DOWNSETS)
        if sets is None:
            return plan_sampled(problem, limits, bound, search)
        known: tuple[Fraction, Sequence[LayerStage]] | None = None
        enough: int | None = None
        quick = search(prefixes(problem, topological_orders(problem.model))) if len(sets) > FEW_DOWNSETS else None
        if quick is not None:
            limits.observer.phase("plans along orders")
            first = least_time(quick, bound.value, partial=True) if bound else None
            if first is not None and first.stages is not None and first.time is not None:
                known = first.time, first.stages
            if known is None:
                enough, _ = memory_that_would_do(quick, least_memory(problem))
        limits.observer.phase("all plans")
        whole = search(sets)
        if bound is not None:
            minimum = least_time(whole, bound.value, known)
            if minimum.stages is not None:
                return plan_of(problem, minimum, bound, len(sets))
            if minimum.stopped != StopReason.FINISHED or minimum.undecided:
                return no_plan(problem, minimum.stopped, "no plan was found before the search ended", proven=False)
        limits.observer.phase("least memory")
        memory, certain = memory_that_would_do(whole, least_memory(problem), enough)
        if memory is not None or not certain:
            reason = too_little_memory(problem.devices)
        else:
            reason = no_plan_because(problem) or "no plan fits on the devices, whatever their memory"
        return no_plan(problem, StopReason.FINISHED, reason, memory if certain else None)
