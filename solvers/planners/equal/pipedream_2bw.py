"""The planner of PipeDream-2BW as Piper's paper stands in for it: equal division without tensor parallelism.

Tarnawski et al. 2021, section 5, "equi-no TP". PipeDream-2BW (Narayanan et al. 2021) cuts models of repeated layers
into equal stages, replicates all of them as often, and recomputes activations in all layers or in none.
"""

from __future__ import annotations

from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.equal.equi import first_equal_plan, plan_equally
from mtpp.training.plan import NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem

NAME = "pipedream-2bw"


def first_plan(problem: PlanningProblem, stopped: StopReason) -> TrainingPlan | None:
    """Return a plan of equal groups with t = 1 made in next to no time, None if none of a few fits."""
    return first_equal_plan(problem, [1], NAME, stopped)


def plan(problem: PlanningProblem, limits: PlanLimits) -> TrainingPlan | NoPlan:
    """Return the fastest plan of equal groups of layers with t = 1 and one d for all stages.

    The bound is on all plans of the problem, those with tensor parallelism included if it allows any.
    """
    return plan_equally(problem, limits, [1], NAME)
