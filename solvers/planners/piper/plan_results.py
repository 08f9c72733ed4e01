"""A TrainingPlan with the stronger of two bounds, or a NoPlan, from a Piper search."""

from __future__ import annotations

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.solvers.planners.piper.minimising import Minimum
from mtpp.training.plan import NoPlan, TimeBound, TrainingPlan
from mtpp.training.problem import PlanningProblem

NAME = "piper"

METHOD = "downset"


def plan_of(problem: PlanningProblem, minimum: Minimum, bound: TimeBound, downsets: int) -> TrainingPlan:
    """Return the plan that a search over *downsets* downsets found, with the better of its bound and *bound*."""
    if minimum.stages is None:
        raise AssertionError("there is no plan")
    if minimum.lower > bound.value:
        proof = {"less_than": [minimum.lower.numerator, minimum.lower.denominator], "downsets": downsets}
        bound = TimeBound(minimum.lower, METHOD, Tier.ENUMERATED, proof)
    stopped = StopReason.OPTIMAL if bound.value == minimum.time else minimum.stopped
    return TrainingPlan(problem, NAME, minimum.stages, bound, stopped)


def too_little_memory(devices: int) -> str:
    """Return for people that more memory would help."""
    return f"no plan fits into the memory of {f'{devices:,} devices' if devices > 1 else '1 device'}"


def no_plan(
    problem: PlanningProblem, stopped: StopReason, reason: str, memory: int | None = None, *, proven: bool = True
) -> NoPlan:
    """Return that there is no plan, or that none was found."""
    return NoPlan(problem, NAME, proven, memory, stopped, reason)
