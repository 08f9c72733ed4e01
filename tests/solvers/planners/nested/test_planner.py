"""The planner for several levels of devices against every plan of small models, and against that for one level."""

from __future__ import annotations

from fractions import Fraction

import pytest
from nested_models import nested_problem, random_question
from nested_oracles import Oracle
from seeds import sampled
from training_models import random_problem

from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.nested import planner as nested_planner
from mtpp.solvers.planners.nested.planner import plan_nested
from mtpp.solvers.planners.piper import planner as piper
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.nested_plan import NestedPlan, all_superstages
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import NoPlan


def question(seed: int) -> NestedProblem | None:
    """Return a random problem, None where no layer can run at all."""
    model, topology, rest = random_question(seed)
    try:
        return nested_problem(model, topology, rest)
    except InputError:
        return None


def check_against_all_plans(seed: int) -> str:
    """Plan, compare with the best of all plans, and return what came of it."""
    problem = question(seed)
    if problem is None:
        return "impossible"
    model, topology, rest = random_question(seed)
    oracle = Oracle(model, topology, **rest)
    result = plan_nested(problem, PlanLimits())
    best = oracle.best()
    if isinstance(result, NoPlan):
        assert best is None
        assert result.proven
        assert result.least_memory_bytes == oracle.least_memory()
        return "none"
    assert result.time_per_sample == best
    assert result.optimal
    assert result.stopped == "optimal"
    assert max(figures.memory_bytes for figures in result.figures) <= rest["memory_bytes"]
    return f"{len(topology.levels)} levels"


@pytest.mark.parametrize("seeds", [range(60), pytest.param(sampled(range(1000, 1300), 150), marks=pytest.mark.slow)])
def test_equals_the_best_of_all_plans(seeds: range) -> None:
    """Time and, where there is no plan, the least memory that would do; one, two and three levels."""
    seen = {check_against_all_plans(seed) for seed in seeds}
    assert seen >= {"none", "1 levels", "2 levels", "3 levels"}


def test_one_level_equals_the_flat_planner() -> None:
    """Exactly the same fraction, under both conventions; and the same least memory where there is no plan."""
    feasible = 0
    for seed in range(60):
        flat = random_problem(seed)
        nested = NestedProblem.build(
            flat.model,
            Machine.of_levels((Level(flat.devices, Link(flat.link.bandwidth_bytes_per_s)),), flat.memory_bytes),
            micro_batches=flat.micro_batches,
            exact_micro_batches=flat.exact_micro_batches,
            convention=flat.convention,
            schemes=flat.schemes,
        )
        mine, theirs = plan_nested(nested, PlanLimits()), piper.plan(flat, PlanLimits())
        if isinstance(theirs, NoPlan):
            assert isinstance(mine, NoPlan)
            assert mine.least_memory_bytes == theirs.least_memory_bytes
        else:
            assert isinstance(mine, NestedPlan)
            assert mine.time_per_sample == theirs.time_per_sample
            assert mine.lower.value == theirs.lower.value
            assert mine.superstages == []
            feasible += 1
    assert feasible > 30


def chain(layers: int, time: int = 12, sent: int = 1) -> TrainingModel:
    """Return equal layers in a row."""
    row = [Layer(v, f"layer {v}", {1: [Configuration("plain", time, 2, 1, 1)]}) for v in range(layers)]
    return TrainingModel("chain", "ps", row, [Edge(v, v + 1, sent) for v in range(layers - 1)])


def cluster(*levels: tuple[int, int]) -> Machine:
    """Return a topology of (devices, bytes per tick)."""
    return Machine.of_levels(tuple(Level(devices, Link(rate * 10**12)) for devices, rate in levels))


def test_slow_outer_networks_are_kept_out_of_the_way() -> None:
    """With fast links everywhere four devices share the work; with slow ones between machines one does all."""

    def time(outer: int) -> Fraction:
        model = chain(4, sent=6)
        problem = NestedProblem.build(model, cluster((2, 100), (2, outer)).with_memory(99), micro_batches=4)
        result = plan_nested(problem, PlanLimits())
        assert isinstance(result, NestedPlan)
        return result.time_per_sample

    assert time(100) < 15
    slow = NestedProblem.build(
        chain(4, sent=600), cluster((2, 10**4), (2, 1)).with_memory(99), micro_batches=4, exact_micro_batches=False
    )
    result = plan_nested(slow, PlanLimits())
    assert isinstance(result, NestedPlan)
    assert result.time_per_sample < 30
    assert sum(one.data_parallel for one in result.superstages if one.level == 2) <= 2
    assert all(one.edges == 0 for one in all_superstages(result.superstages))


def test_models_with_too_many_downsets_are_cut_along_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan comes out with the bound of its work alone, and says so."""
    wide = [Layer(v, f"layer {v}", {1: [Configuration("plain", 5 + v, 1, 1, 1)]}) for v in range(6)]
    model = TrainingModel("wide", "ps", wide, [])
    problem = NestedProblem.build(model, cluster((2, 3), (2, 1)).with_memory(99), micro_batches=4)
    best = plan_nested(problem, PlanLimits())
    monkeypatch.setattr(nested_planner, "MOST_DOWNSETS", 20)
    result = plan_nested(problem, PlanLimits())
    assert isinstance(best, NestedPlan)
    assert isinstance(result, NestedPlan)
    assert best.optimal
    assert best.notes == []
    assert result.time_per_sample >= best.time_per_sample
    assert result.lower.method == "work"
    assert result.lower.value == Fraction(sum(range(5, 11)), 4)
    assert "some orders" in result.notes[0]


def test_limits_that_strike_leave_what_there_is() -> None:
    """No plan at all if nothing was looked at; else the best so far, with a bound on all."""
    problem = NestedProblem.build(chain(6), cluster((2, 3), (2, 1)).with_memory(99), micro_batches=4)
    none = plan_nested(problem, PlanLimits(deadline=Deadline(0)))
    assert isinstance(none, NoPlan)
    assert (none.proven, none.stopped, none.least_memory_bytes) == (False, "time-limit", None)
    best = plan_nested(problem, PlanLimits())
    assert isinstance(best, NestedPlan)
    for patience in range(1, 40):
        asked = iter(range(patience))
        result = plan_nested(problem, PlanLimits(interrupted=lambda asked=asked: next(asked, None) is None))
        if isinstance(result, NestedPlan):
            assert result.lower.value <= best.time_per_sample <= result.time_per_sample
            assert result.stopped == ("optimal" if result.optimal else "interrupted")
    assert result.optimal


def test_threads_change_nothing() -> None:
    """The same plan with one thread and with three."""
    problem = NestedProblem.build(chain(9), cluster((3, 3), (3, 1)).with_memory(14), micro_batches=8)
    one, three = (plan_nested(problem, PlanLimits(jobs=jobs)) for jobs in (1, 3))
    assert isinstance(one, NestedPlan)
    assert isinstance(three, NestedPlan)
    assert one.pipeline == three.pipeline
