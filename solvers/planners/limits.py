"""Limits and results that all planners share."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import Limits
from mtpp.training.problem import PlanningProblem


@dataclass(frozen=True, kw_only=True)
class PlanLimits(Limits):
    """Limits of a planner, and how it chooses configurations.

    Attributes
    ----------
    knapsack
        One of :data:`mtpp.names.KNAPSACKS`. With the heuristic, plans of others may be faster, and only bounds from
        single layers are proven.
    """

    knapsack: str = "exact"


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
