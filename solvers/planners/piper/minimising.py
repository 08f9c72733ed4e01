"""The least time per sample of plans over one family of downsets, by thresholds that are exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.solvers.planners.piper.bisection import next_question, worth_a_last_question
from mtpp.solvers.planners.piper.threshold import Decision, PipelineSearch
from mtpp.training.plan import LayerStage, NoPlan, TimeBound, TrainingPlan, stage_figures
from mtpp.training.problem import PlanningProblem

NAME = "piper"

METHOD = "downset"

_ENOUGH = 2**62


@dataclass(frozen=True, eq=False)
class Minimum:
    """What a search over a family came to.

    Attributes
    ----------
    stages
        The best plan, None if there is none.
    time
        Its time per sample in ticks.
    lower
        No plan over the family takes less; equal to *time* if it was proven to be the least. What bang per buck does
        not find may exist all the same, so with that knapsack it stays where it was.
    stopped
        Why the search ended before that, ``finished`` if it did not.
    undecided
        Whether some knapsack was given up, so that *lower* may be less than could be.
    """

    stages: Sequence[LayerStage] | None
    time: Fraction | None
    lower: Fraction
    stopped: StopReason
    undecided: bool = False


def least_time(
    search: PipelineSearch,
    lower: Fraction,
    known: tuple[Fraction, Sequence[LayerStage]] | None = None,
    *,
    partial: bool = False,
) -> Minimum:
    """Find the fastest plan whose stages end at the downsets of *search*, and prove that none of them is faster.

    Parameters
    ----------
    lower
        No plan is known to take less.
    known
        A plan and its time; those over the family that are no faster are of no interest. It is taken to be a good one:
        whether there is a faster one at all is the first question.
    partial
        Other plans end their stages elsewhere: what is proven does not hold for them, and nobody is told.

    Returns
    -------
    The best plan; *known* itself if nothing is faster.

    Notes
    -----
    Every plan that a threshold gives takes a sum of costs, usually less than was asked for: that is the next upper end.
    Bisection between both ends, in their geometric mean while they are far apart, until they are within 1/500; then the
    question is for anything strictly faster, and a "no" ends the search. About a dozen decisions.
    """
    time, stages = known or (None, None)
    floor = lower  # what was looked through; above *lower* where a knapsack was given up, or is bang per buck
    undecided, gains = False, 0
    trusted = known is not None
    while time is None or floor < time:
        asked, strictly, close = next_question(floor, time, gains, near=trusted)
        decision = search.decide(asked, strictly=strictly)
        if decision is None:
            return Minimum(stages, time, lower, search.stopped, undecided)
        if decision.front:
            found = search.stages(len(decision.front) - 1)
            takes = max(figures.time for figures in stage_figures(search.problem, found))
            if time is None or takes < time:
                stages, time = found, takes
                search.tell_time(time)
                gains += close
                trusted = trusted and worth_a_last_question(gains)
                continue
            # Choices that are there cannot be told, as a knapsack was given up: nothing is known of this threshold.
            undecided, gains = True, 0
            if strictly or asked is None:
                break
            floor = asked
            continue
        gains = 0
        sure: Decision = decision
        if not decision.certain:
            again = search.decide(asked, strictly=strictly, optimistic=True)
            if again is None:
                return Minimum(stages, time, lower, search.stopped, True)
            sure = again
        undecided = undecided or bool(sure.front) or not sure.complete
        if asked is None:
            break
        floor = asked
        if search.proves and not undecided:
            lower = asked
            if not partial:
                search.tell_bound(lower)
        if strictly:
            break
    return Minimum(stages, time, lower, StopReason.FINISHED, undecided)


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


def memory_that_would_do(search: PipelineSearch, least: int, known: int | None = None) -> tuple[int | None, bool]:
    """Find the least memory with which some plan ends its stages at the downsets of *search*.

    Parameters
    ----------
    least
        No plan needs less, in bytes.
    known
        A memory with which there is a plan.

    Returns
    -------
    Bytes, None if no memory would do; and whether that is proven, which it is not if the search had to end.

    Notes
    -----
    Every plan that is found says what it really needs, which is the next upper end of a bisection; it ends when there
    is none that needs a byte less.
    """
    most = known
    gains = 0
    while most is None or least < most:
        close = most is not None and (most - least) * 64 <= most and worth_a_last_question(gains)
        asked = _ENOUGH if most is None else most - 1 if close else (least + most) // 2
        decision = search.decide(None, memory=asked)
        if decision is None:
            return most, False
        if decision.front:
            most = min(search.memory_needed(state) for state in range(len(decision.front)))
            gains += close
        elif not decision.complete:
            return most, False
        elif most is None:
            return None, True
        else:
            least, gains = asked + 1, 0
    return most, True
