"""Results of planners beside a plan that was made before they began: the slower plan is not shown."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from mtpp.errors import InconsistentResult
from mtpp.host.stop_reason import CUT_SHORT
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.nested_plan import NestedPlan
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.plan import NoPlan, TrainingPlan

AnyPlan = TrainingPlan | NestedPlan | GraphPlan | SplitPlan
AnyNoPlan = NoPlan | NoGraphPlan | NoSplitPlan


def result_beside_first(found: AnyPlan | AnyNoPlan, first: AnyPlan) -> AnyPlan | AnyNoPlan:
    """Return the result of a planner; of a search that was ended the first plan, where that is faster or the only one.

    A search that came to its own end is believed: its result does not depend on the first plan.
    """
    if isinstance(found, AnyNoPlan):
        if found.proven:
            raise InconsistentResult("no plan is said to be possible, and one was made before the search began")
        return replace(first, stopped=found.stopped) if found.stopped in CUT_SHORT else found
    if found.stopped not in CUT_SHORT or _time(found) <= _time(first):
        return found
    if isinstance(found, SplitPlan):  # its bounds are of its own schedule and order of ops
        return replace(first, stopped=found.stopped)
    return replace(first, lower=found.lower, stopped=found.stopped)  # type: ignore[arg-type]


def _time(plan: AnyPlan) -> Fraction:
    """Return the ticks that a plan is rated by: of an iteration, or for a sample."""
    return Fraction(plan.iteration if isinstance(plan, GraphPlan | SplitPlan) else plan.time_per_sample)
