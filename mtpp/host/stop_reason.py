"""Reasons why a search, a planner, the work at a bound or a run ended."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """Reason for an end; equal to its name in documents."""

    FINISHED = "finished"
    """Nothing was left to try."""

    OPTIMAL = "optimal"
    """The best was proven to be the optimum."""

    BUDGET = "budget"
    """The evaluations were spent."""

    TIME_LIMIT = "time-limit"
    MEMORY_LIMIT = "memory-limit"

    INTERRUPTED = "interrupted"
    """The user ended it."""

    TARGET = "target"
    """The ratio asked for is proven."""

    SOLVER_TARGET = "solver-target"
    """A bound of tier ``solver`` reaches the ratio asked for, to its tolerance."""

    INFEASIBLE = "infeasible"
    """It ended without a partition."""

    FAILED = "failed"
    """An error ended it."""

    __repr__ = str.__repr__  # records that hold one show the string


LIMITS_REACHED = (StopReason.TIME_LIMIT, StopReason.MEMORY_LIMIT)
"""Reasons that are limits."""

CUT_SHORT = (*LIMITS_REACHED, StopReason.INTERRUPTED)
"""Reasons for which work ends before its own end."""
