"""Limits of one run of a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunLimits:
    """Limits of every run of a comparison.

    Attributes
    ----------
    time_limit_s
        Seconds per run, counted from its own start.
    work_limit
        Evaluations per run at most, whatever the algorithm's name says.
    seed, jobs, memory_bytes
        As in :class:`~mtpp.solvers.limits.InstanceLimits`.
    """

    time_limit_s: float | None = None
    work_limit: int | None = None
    seed: int = 0
    jobs: int = 1
    memory_bytes: int | None = None
