"""Planners by name: module and last look of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from mtpp import names
from mtpp.solvers.limits import PlanLimits
from mtpp.training.plan import NoPlan

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

DEFAULT = names.PIPER

_HERE, _LOOKS = "mtpp.solvers.planners", "mtpp.solvers.last_look"

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
class AnyPlannerEntry(Generic[Problem, SearchLimit, Result]):
    """A planner that users can name, of problems and results of some kind.

    Attributes
    ----------
    module
        Module whose function ``plan`` it is; imported on first use, for it brings numba.
    look
        Module and function that derive its results again.
    """

    name: str
    module: str
    look: str

    def load(self) -> Callable[[Problem, SearchLimit], Result]:
        """Import the planner and return it, with a last look at what it comes to."""
        return looked_at(import_module(self.module).plan, resolve_name(self.look))


@dataclass(frozen=True)
class PlannerEntry(AnyPlannerEntry["PlanningProblem", PlanLimits, "TrainingPlan | NoPlan"]):
    """A planner of stages in a line.

    Attributes
    ----------
    knapsack
        Whether it chooses a configuration for each layer by itself, and ``PlanLimits.knapsack`` means something to it.
    sweeps
        Whether it answers for many numbers of devices in one run.
    nested
        Module whose function ``plan_nested`` plans for networks of several levels; None: there is none.
    first
        Module whose function ``first_plan`` makes a plan of the planner's kind in next to no time.
    """

    look: str = f"{_LOOKS}.line_plans:look_at_line_plan"
    knapsack: bool = False
    sweeps: bool = False
    nested: str | None = None
    first: str = "mtpp.solvers.planners.first_plans"

    def load_first(self) -> FirstPlan:
        """Import the maker of a first plan and return it."""
        return cast("FirstPlan", import_module(self.first).first_plan)

    def load_nested(self) -> NestedPlanner | None:
        """Import the planner for several levels and return it; None if there is none."""
        if self.nested is None:
            return None
        return looked_at(
            import_module(self.nested).plan_nested, resolve_name(f"{_LOOKS}.line_plans:look_at_nested_plan")
        )


PLANNERS = {
    entry.name: entry
    for entry in (
        PlannerEntry(
            names.PIPER, f"{_HERE}.piper.planner", knapsack=True, sweeps=True, nested=f"{_HERE}.nested.planner"
        ),
        PlannerEntry(names.EQUI, f"{_HERE}.equal.equi", first=f"{_HERE}.equal.equi"),
        PlannerEntry(names.PIPEDREAM_2BW, f"{_HERE}.equal.pipedream_2bw", first=f"{_HERE}.equal.pipedream_2bw"),
    )
}
"""Planners of the time per sample, in the order in which help lists them."""

GRAPH_PLANNERS: dict[str, AnyPlannerEntry[GraphProblem, Limits, GraphPlan | NoGraphPlan]] = {
    names.GRAPHPIPE: AnyPlannerEntry(
        names.GRAPHPIPE, f"{_HERE}.graphpipe.planner", f"{_LOOKS}.graph_plans:look_at_graph_plan"
    )
}
"""Planners of the time of an iteration."""

SPLIT_PLANNERS: dict[str, AnyPlannerEntry[SplitProblem, Limits, SplitPlan | NoSplitPlan]] = {
    names.PFEIFE: AnyPlannerEntry(names.PFEIFE, f"{_HERE}.pfeife.planner", f"{_LOOKS}.split_plans:look_at_split_plan")
}
"""Planners of split points and schedules together."""
