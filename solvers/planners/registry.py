"""The planners by name: what each guarantees, and where it lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

from mtpp import names
from mtpp.solvers.planners.limits import NoPlan, PlanLimits, Planner

if TYPE_CHECKING:
    from mtpp.host.stop_reason import StopReason
    from mtpp.solvers.limits import Limits
    from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
    from mtpp.training.graph_problem import GraphProblem
    from mtpp.training.nested_plan import NestedPlan
    from mtpp.training.nested_problem import NestedProblem
    from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
    from mtpp.training.pfeife.problem import SplitProblem
    from mtpp.training.plan import TrainingPlan
    from mtpp.training.problem import PlanningProblem

    FirstPlan = Callable[[PlanningProblem, StopReason], TrainingPlan | None]
    NestedPlanner = Callable[[NestedProblem, PlanLimits], NestedPlan | NoPlan]
    GraphPlanner = Callable[[GraphProblem, Limits], GraphPlan | NoGraphPlan]
    SplitPlanner = Callable[[SplitProblem, Limits], SplitPlan | NoSplitPlan]

DEFAULT = names.PIPER

Problem = TypeVar("Problem")
SearchLimit = TypeVar("SearchLimit")
Result = TypeVar("Result")


def looked_at(
    planner: Callable[[Problem, SearchLimit], Result], look: Callable[[Problem, Result], None]
) -> Callable[[Problem, SearchLimit], Result]:
    """Return a planner whose results get a last look before anybody sees them; *look* raises if one is wrong."""

    @wraps(planner)
    def plan(problem: Problem, limits: SearchLimit) -> Result:
        result = planner(problem, limits)
        look(problem, result)
        return result

    return plan


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
    knapsack
        Whether it chooses a configuration for each layer by itself, and ``PlanLimits.knapsack`` means something to it.
    sweeps
        Whether it answers for many numbers of devices in one run.
    nested
        Module whose function ``plan_nested`` plans for networks of several levels; None: there is none.
    first
        Module whose function ``first_plan`` makes a plan of the planner's kind in next to no time.
    """

    name: str
    summary: str
    guarantee: str
    module: str
    knapsack: bool = False
    sweeps: bool = False
    nested: str | None = None
    first: str = "mtpp.solvers.planners.first_plans"

    def load_first(self) -> FirstPlan:
        """Import the maker of a first plan and return it."""
        return cast("FirstPlan", import_module(self.first).first_plan)

    def load(self) -> Planner:
        """Import the planner and return it, with a last look at what it comes to."""
        from mtpp.solvers.last_look.line_plans import look_at_line_plan

        return cast(Planner, looked_at(import_module(self.module).plan, look_at_line_plan))

    def load_nested(self) -> NestedPlanner | None:
        """Import the planner for several levels and return it; None if there is none."""
        from mtpp.solvers.last_look.line_plans import look_at_nested_plan

        if self.nested is None:
            return None
        return looked_at(import_module(self.nested).plan_nested, look_at_nested_plan)


PLANNERS = {
    entry.name: entry
    for entry in (
        PlannerEntry(
            names.PIPER,
            "stages of any kind: the two-level dynamic programme over downsets of Tarnawski et al. 2021",
            "optimal among pipelines of stages in a line, with the exact knapsack",
            "mtpp.solvers.planners.piper.planner",
            knapsack=True,
            sweeps=True,
            nested="mtpp.solvers.planners.nested.planner",
        ),
        PlannerEntry(
            names.EQUI,
            "equal stages: so many layers, d and t in each (a baseline of that paper)",
            "optimal among equal stages",
            "mtpp.solvers.planners.equal.equi",
            first="mtpp.solvers.planners.equal.equi",
        ),
        PlannerEntry(
            names.PIPEDREAM_2BW,
            "equal stages without tensor parallelism, as PipeDream-2BW plans (Narayanan et al. 2021)",
            "optimal among equal stages with t = 1",
            "mtpp.solvers.planners.equal.pipedream_2bw",
            first="mtpp.solvers.planners.equal.pipedream_2bw",
        ),
    )
}
"""Planners of the time per sample, in the order in which help lists them."""


@dataclass(frozen=True)
class GraphPlannerEntry:
    """A planner of the time of an iteration.

    Attributes
    ----------
    summary
        One line of help.
    guarantee
        What its result is optimal among.
    module
        Module whose function ``plan`` it is; imported on first use, for it brings numba.
    """

    name: str
    summary: str
    guarantee: str
    module: str

    def load(self) -> GraphPlanner:
        """Import the planner and return it, with a last look at what it comes to."""
        from mtpp.solvers.last_look.graph_plans import look_at_graph_plan

        return looked_at(import_module(self.module).plan, look_at_graph_plan)


GRAPH_PLANNERS = {
    entry.name: entry
    for entry in (
        GraphPlannerEntry(
            names.GRAPHPIPE,
            "stages that form any acyclic graph, by the simulated time of an iteration (Jeon et al. 2025)",
            "optimal on small models, within a proven ratio on all",
            "mtpp.solvers.planners.graphpipe.planner",
        ),
    )
}
"""Planners of the time of an iteration."""


@dataclass(frozen=True)
class SplitPlannerEntry:
    """A planner of split points and schedules; the attributes are those of :class:`GraphPlannerEntry`."""

    name: str
    summary: str
    guarantee: str
    module: str

    def load(self) -> SplitPlanner:
        """Import the planner and return it, with a last look at what it comes to."""
        from mtpp.solvers.last_look.split_plans import look_at_split_plan

        return looked_at(import_module(self.module).plan, look_at_split_plan)


SPLIT_PLANNERS = {
    entry.name: entry
    for entry in (
        SplitPlannerEntry(
            names.PFEIFE,
            "split points of any graph with a schedule of prefetched passes, by the time of an iteration "
            "(Jhoo et al. 2025)",
            "within a proven ratio of all splits along an order of ops under looped schedules of whole backward passes",
            "mtpp.solvers.planners.pfeife.planner",
        ),
    )
}
"""Planners of split points and schedules together."""
