"""Limits and results that all planners share."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.solvers.limits import Limits


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
