"""The planners by name: what each guarantees, and where it lives."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from mtpp.solvers.planners.planning import Planner

DEFAULT = "piper"


@dataclass(frozen=True)
class PlannerEntry:
    """A planner that users can name.

    Attributes
    ----------
    summary
        One line of help.
    guarantee
        What its result is optimal among.
    module
        Module whose function ``plan`` it is; imported on first use, for it brings numba.
    topologies
        Whether it takes networks of several levels.
    sweeps
        Whether it answers for many numbers of devices in one run.
    """

    name: str
    summary: str
    guarantee: str
    module: str
    topologies: bool = False
    sweeps: bool = False

    def load(self) -> Planner:
        """Import the planner and return it."""
        return cast(Planner, import_module(self.module).plan)


PLANNERS = {
    entry.name: entry
    for entry in (
        PlannerEntry(
            "piper",
            "stages of any kind: the two-level dynamic programme over downsets of Tarnawski et al. 2021",
            "optimal among all plans, with the exact knapsack",
            "mtpp.solvers.planners.piper",
            topologies=True,
            sweeps=True,
        ),
        PlannerEntry(
            "equi",
            "equal stages: so many layers, d and t in each (a baseline of that paper)",
            "optimal among equal stages",
            "mtpp.solvers.planners.equi",
        ),
        PlannerEntry(
            "pipedream-2bw",
            "equal stages without tensor parallelism, as PipeDream-2BW plans (Narayanan et al. 2021)",
            "optimal among equal stages with t = 1",
            "mtpp.solvers.planners.pipedream_2bw",
        ),
    )
}
"""All planners, in the order in which help lists them."""
