"""First plans: valid, never faster than the best, and no slower plan is shown where a search is ended."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from graph_plan_oracles import random_graph_case
from looped_oracles import random_line
from nested_models import ladder_problem, nested_problem, random_question
from planning import plan_with
from training_models import four_layers, random_problem

import mtpp
from mtpp.errors import InconsistentResult, Infeasible, InputError
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits, PlanLimits
from mtpp.solvers.planners.first_plans import (
    first_graph_plan,
    first_nested_plan,
    first_plan,
    first_split_plan,
    result_beside_first,
)
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, PLANNERS, SPLIT_PLANNERS
from mtpp.training.nested_plan import NestedPlan
from mtpp.training.pfeife.plan import SplitPlan
from mtpp.training.pfeife.problem import SplitProblem, SplitRules
from mtpp.training.plan import NoPlan, TimeBound, TrainingPlan
from mtpp.training.problem import PlanningProblem


@pytest.mark.parametrize(
    ("planner", "seeds", "least"), [("piper", 60, 20), ("equi", 40, 10), ("pipedream-2bw", 40, 10)]
)
def test_first_plans_are_plans_and_none_is_faster_than_the_best(planner: str, seeds: int, least: int) -> None:
    """A first plan is of the planner's family and no faster than its best; many problems have one."""
    made = 0
    for seed in range(seeds):
        problem = random_problem(seed, 5)
        first = PLANNERS[planner].load_first()(problem, StopReason.TIME_LIMIT)
        best = PLANNERS[planner].load()(problem, PlanLimits())
        if first is not None:
            made += 1
            assert isinstance(best, TrainingPlan)
            assert best.time_per_sample <= first.time_per_sample
    assert made > least


def test_nested_plans_keep_to_their_problems() -> None:
    """A first plan for several levels gets past the last look, and is no faster than the best."""
    made = 0
    for seed in range(60):
        model, topology, rest = random_question(seed)
        try:
            problem = nested_problem(model, topology, rest)
        except InputError:
            continue
        first = first_nested_plan(problem, "piper", StopReason.TIME_LIMIT)
        if first is None:
            continue
        made += 1
        planner = PLANNERS["piper"].load_nested()
        assert planner is not None
        best = planner(problem, PlanLimits())
        assert isinstance(best, NestedPlan)
        assert best.time_per_sample <= first.time_per_sample
    assert made > 5


@pytest.mark.parametrize("seed", range(12))
def test_splits_are_plans_and_none_is_faster_than_the_best(seed: int) -> None:
    """A first split keeps to the memory; with all of it there always is one."""
    pick = random.Random(seed)
    line = random_line(pick, pick.randint(4, 7))
    memory = None if seed % 2 else [int(line.costs.fixed_bytes.sum()) + 40] * 2
    problem = SplitProblem.build(
        line,
        machine=Machine.of_devices(2, memory_bytes=memory, bandwidth_bytes_per_s=1),
        micro_batches=3,
        rules=SplitRules(loops=(1, 2)),
    )
    first = first_split_plan(problem, StopReason.TIME_LIMIT)
    best = SPLIT_PLANNERS["pfeife"].load()(problem, Limits())
    assert first is not None or memory is not None
    if first is not None:
        assert isinstance(best, SplitPlan)
        assert best.iteration <= first.iteration


def _given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search be given up before it has found anything."""
    from mtpp.api.training import running

    monkeypatch.setattr(running, "run_planner", lambda plan, limits: StopReason.TIME_LIMIT)


def test_searches_that_are_given_up_have_a_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each planner gives its first plan, which is verified; where none of these fits, it says that none was found."""
    _given_up(monkeypatch)
    found = 0
    for seed in range(12):
        document, asked = random_graph_case(seed)
        text = json.dumps(document)
        given: dict[str, Any] = {"devices": asked["devices"], "memory": asked["memory_bytes"], "time_limit_s": 100.0}
        others: tuple[dict[str, Any], ...] = (
            {"planner": "graphpipe", "batch_size": 4, "bandwidth": "1GB/s", "sequential": asked["sequential"]},
            {"planner": "pfeife", "micro_batches": 3, "bandwidth": "1GB/s", "loops": [1]},
            {"planner": "piper", "max_micro_batches": 4, "bandwidth": "1GB/s"},
            {"planner": "equi", "max_micro_batches": 4, "bandwidth": "1GB/s"},
            {"planner": "pipedream-2bw", "max_micro_batches": 4, "bandwidth": "1GB/s"},
        )
        for one in others:
            try:
                plan = plan_with(text.encode(), **given, **one)
            except (Infeasible, InputError):
                continue
            found += 1
            assert plan.document()["stopped"] == "time-limit"
            assert mtpp.verify(plan, text.encode()).verdict == "ok"
    assert found > 25


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
