"""Searches that were ended: nothing slower is shown than the plan that was made before they began."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from looped_oracles import random_line
from nested_models import ladder_problem
from training_models import four_layers

from mtpp.errors import InconsistentResult
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.ended_search import result_beside_first
from mtpp.solvers.planners.first_plans import first_graph_plan, first_plan, first_split_plan
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, SPLIT_PLANNERS
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.plan import NoPlan, TimeBound
from mtpp.training.problem import PlanningProblem

ENDED = StopReason.TIME_LIMIT


def line_plan() -> Any:
    """Return a first plan of stages in a line."""
    problem = PlanningProblem(
        four_layers(), machine=Machine.of_devices(3, memory_bytes=10**6, bandwidth_bytes_per_s=10**12), micro_batches=3
    )
    return first_plan(problem, ENDED)


def graph_plan() -> Any:
    """Return a first plan of stages that form a graph."""
    return first_graph_plan(ladder_problem(), ENDED)


def split_plan() -> Any:
    """Return a first plan of split points."""
    line = random_line(random.Random(5), 8)
    return first_split_plan(
        SplitProblem.build(line, machine=Machine.of_devices(2, bandwidth_bytes_per_s=1), micro_batches=3), ENDED
    )


@pytest.mark.parametrize("made", [graph_plan, split_plan])
def test_slower_plans_are_shown_of_whole_searches_alone(made: Any) -> None:
    """A search that was ended gives the first plan where that is faster; one that came to its end gives its own."""
    first = made()
    slower = replace(first, iteration=first.iteration + 1, stopped=StopReason.INTERRUPTED)
    found = result_beside_first(slower, first)
    assert (found.iteration, found.stopped) == (first.iteration, StopReason.INTERRUPTED)  # type: ignore[union-attr]
    whole = replace(slower, stopped=StopReason.FINISHED)
    assert result_beside_first(whole, first) is whole
    assert result_beside_first(first, slower) is first


def test_bounds_of_ended_searches_are_kept() -> None:
    """The first plan has the bound that the search has proven of all plans."""
    first = line_plan()
    stages = [stage for stage in first.stages if stage is not first.stages[-1]]
    stages[-1] = replace(
        stages[-1],
        layers=[*stages[-1].layers, *first.stages[-1].layers],
        chosen=[*stages[-1].chosen, *first.stages[-1].chosen],
    )
    proven = TimeBound(Fraction(1), "downset", Tier.ENUMERATED)
    slower = replace(first, stages=stages, lower=proven)
    assert slower.time_per_sample > first.time_per_sample
    found = result_beside_first(slower, first)
    assert (found.stages, found.lower) == (first.stages, proven)  # type: ignore[union-attr]


def test_no_plan_beside_one_is_a_contradiction_if_proven() -> None:
    """Else the search was ended, and the first plan is what there is, or it came to its end, and is believed."""
    first = line_plan()
    none = NoPlan(first.problem, "piper", True, None, ENDED, "nothing fits")
    with pytest.raises(InconsistentResult, match="no plan is said to be possible"):
        result_beside_first(none, first)
    found = result_beside_first(replace(none, proven=False), first)
    assert (found.stages, found.stopped) == (first.stages, ENDED)  # type: ignore[union-attr]
    believed = replace(none, proven=False, stopped=StopReason.FINISHED)
    assert result_beside_first(believed, first) is believed


@pytest.mark.parametrize("made", [graph_plan, split_plan])
def test_no_time_gives_the_first_plan_or_a_faster_one(made: Any) -> None:
    """Planners whose time is up at once come to plans that are no slower than the first, once both are seen."""
    first = made()
    planners: Any = GRAPH_PLANNERS if made is graph_plan else SPLIT_PLANNERS
    (planner,) = (entry.load() for entry in planners.values())
    found: Any = result_beside_first(planner(first.problem, Limits(deadline=Deadline(0.0))), first)
    assert found.iteration <= first.iteration
    assert found.lower.value <= found.iteration
    assert isinstance(found.lower, LowerBound)
