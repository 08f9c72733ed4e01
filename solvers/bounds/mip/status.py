"""Ends that a solve of a mixed-integer program can come to."""

from __future__ import annotations

from enum import StrEnum


class SolveStatus(StrEnum):
    """End of a solve; equal to its name in proofs."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    TIME_LIMIT = "time-limit"

    TARGET = "target"
    """A solution of the objective asked for was found."""

    ENOUGH = "enough"
    """The dual bound reached what was asked for."""

    KILLED = "killed"
    """The solver overran its limit."""

    INTERRUPTED = "interrupted"
    FAILED = "failed"

    EMPTY = "empty"
    """There was nothing to solve."""

    __repr__ = str.__repr__  # records that hold one show the string
