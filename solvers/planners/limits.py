"""Limits and results that all planners share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mtpp.host.deadline import Deadline
from mtpp.host.memory_limit import short_of_memory
from mtpp.host.progress import Observer, Silent
from mtpp.host.stop_reason import StopReason
from mtpp.training.plan import TrainingPlan
from mtpp.training.problem import PlanningProblem

KNAPSACKS = ("exact", "heuristic")
"""How configurations of a stage's layers are chosen: the best there are, or by the paper's bang per buck."""


@dataclass(frozen=True)
class PlanLimits:
    """How long a planner may take, and how it works.

    Attributes
    ----------
    deadline
        When to end at the latest, with the best plan and bound so far.
    jobs
        Threads to use; changes the speed, never the result (as long as no deadline strikes).
    knapsack
        One of :data:`KNAPSACKS`. With the heuristic, plans of others may be faster, and only bounds from single layers
        are proven.
    observer
        Is told of phases, and of plans and bounds in ticks.
    interrupted
        Tells whether the user wants the search to end now, with the best so far.
    """

    deadline: Deadline = field(default_factory=Deadline)
    jobs: int = 1
    knapsack: str = "exact"
    observer: Observer = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False

    @property
    def stop(self) -> StopReason | None:
        """Why the search has to end now, or None to go on."""
        if self.interrupted():
            return StopReason.INTERRUPTED
        if short_of_memory():
            return StopReason.MEMORY_LIMIT
        return StopReason.TIME_LIMIT if self.deadline.expired() else None


@dataclass(frozen=True, eq=False)
class NoPlan:
    """No plan came out.

    Attributes
    ----------
    proven
        Whether there is none: every possibility was looked at. False: none was found before the search had to end, or
        the planner only looks at some.
    least_memory_bytes
        The least memory of a device with which the planner finds a plan, the rest being as it is; None where no amount
        of memory helps, or where it is not known.
    stopped
        Why it ended.
    reason
        What stands in the way, for people.
    """

    problem: PlanningProblem
    planner: str
    proven: bool
    least_memory_bytes: int | None
    stopped: StopReason
    reason: str


class Planner(Protocol):
    """A function that plans."""

    def __call__(self, problem: PlanningProblem, limits: PlanLimits) -> TrainingPlan | NoPlan:
        """Return the best plan found, with a bound on all plans, or that there is none."""
