"""The planner ``piper`` against brute force over all plans, and against the published program's results."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from machines import on_machine
from seeds import sampled
from training_models import random_problem
from training_oracles import best_plan, is_plan, least_memory, time_of

from mtpp.formats.training.models import read_training_model
from mtpp.host.deadline import Deadline
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.piper import planner as piper
from mtpp.solvers.planners.piper import threshold
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.plan import NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes

GIB = 2**30
BATCHES = {"gnmt": 256, "resnet": 7680, "bert32a100": 1920}
UNITS = {"gnmt": "ms", "resnet": "ms", "bert32a100": "s"}
TICKS = {"ms": 10**9, "s": 10**12}


def _check_plan(problem: PlanningProblem, plan: TrainingPlan) -> None:
    """Assert that a plan is one, by the oracle's own account of it."""
    assert is_plan(problem, plan.stages)
    assert time_of(problem, plan.stages) == plan.time_per_sample
    assert plan.devices_used <= problem.devices
    assert plan.degrees_sum <= problem.micro_batches


def _check_against_oracle(seed: int) -> None:
    problem = random_problem(seed)
    result, expected = piper.plan(problem, PlanLimits()), best_plan(problem)
    if isinstance(result, NoPlan):
        assert expected is None
        assert result.proven
        assert result.least_memory_bytes == least_memory(problem)
    else:
        assert expected is not None
        assert result.time_per_sample == expected[0]
        assert result.optimal
        _check_plan(problem, result)


@pytest.mark.parametrize("seed", range(40))
def test_the_result_is_the_optimum(seed: int) -> None:
    """Both conventions, exact batches, schemes left out: the time of brute force, or the least memory it needs."""
    _check_against_oracle(seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", sampled(range(2, 9), 4))
def test_the_result_is_the_optimum_for_many_more(hundred: int) -> None:
    """Hundreds more of the same kind."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        _check_against_oracle(seed)


@pytest.mark.parametrize("seed", [*range(20), 1730, 1976, 2028, 2335])
def test_bang_per_buck_never_beats_the_exact_knapsack(seed: int) -> None:
    """With the heuristic, a plan is still one, not faster than the optimum, and nothing false is proven about that."""
    problem = random_problem(seed)
    exact = piper.plan(problem, PlanLimits())
    heuristic = piper.plan(problem, PlanLimits(knapsack="heuristic"))
    if isinstance(exact, NoPlan):
        assert isinstance(heuristic, NoPlan)
    elif isinstance(heuristic, TrainingPlan):
        _check_plan(problem, heuristic)
        assert heuristic.lower.value <= exact.time_per_sample <= heuristic.time_per_sample


def _published(data: Path, name: str, devices: int, memory_gib: Decimal) -> PlanningProblem:
    unit = UNITS[name]
    model, _ = read_training_model(str(data / "piper" / f"{name}.json"), unit)
    return PlanningProblem(
        model,
        machine=Machine.of_devices(
            devices, memory_bytes=int(memory_gib * GIB), bandwidth_bytes_per_s=25 * GIB * (1000 if unit == "ms" else 1)
        ),
        micro_batches=BATCHES[name],
        convention="program",
    )


def _rows(reference: Path, name: str) -> list[dict[str, Decimal]]:
    text = (reference / "piper.json").read_text(encoding="utf-8")
    rows: list[dict[str, Decimal]] = json.loads(text, parse_float=Decimal)[name]["program"]
    return rows


def _check_row(data: Path, name: str, row: dict[str, Decimal]) -> None:
    problem = _published(data, name, int(row["devices"]), row["memory_gib"])
    result = piper.plan(problem, PlanLimits(jobs=2))
    if row["tps"] is None:
        assert isinstance(result, NoPlan)
        assert result.proven
        assert result.least_memory_bytes is not None
        assert result.least_memory_bytes > problem.memory_bytes
        return
    assert isinstance(result, TrainingPlan)
    assert result.optimal
    _check_plan(problem, result)
    half_a_digit = Decimal(1).scaleb(int(row["tps"].as_tuple().exponent)) / 2
    assert result.time_per_sample / TICKS[UNITS[name]] <= Fraction(row["tps"] + half_a_digit)


@pytest.mark.parametrize(
    ("name", "every"),
    [
        *(("bert32a100", 1), ("resnet", 4), ("gnmt", 4)),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("resnet", "gnmt")),
    ],
)
def test_published_rows_are_met(name: str, every: int, shared_data: Path, shared_reference: Path) -> None:
    """No plan is slower than the published program's, by its rules; what it cannot plan is proven impossible."""
    for row in _rows(shared_reference, name)[::every]:
        _check_row(shared_data, name, row)


def test_threads_do_not_change_the_plan(shared_data: Path) -> None:
    """A model of 17,914 downsets, worked at by one thread and by three."""
    problem = _published(shared_data, "gnmt", 8, Decimal("1.2"))
    plans = [piper.plan(problem, PlanLimits(jobs=jobs)) for jobs in (1, 3)]
    assert isinstance(plans[0], TrainingPlan)
    assert isinstance(plans[1], TrainingPlan)
    assert plans[0].stages == plans[1].stages
    assert plans[0].lower == plans[1].lower


def test_a_search_that_may_not_start_claims_nothing(shared_data: Path) -> None:
    """With no time at all there is no plan, and nothing is said to be proven."""
    problem = _published(shared_data, "gnmt", 8, Decimal("1.2"))
    result = piper.plan(problem, PlanLimits(deadline=Deadline(0)))
    assert isinstance(result, NoPlan)
    assert not result.proven
    assert result.stopped == "time-limit"


def test_a_search_that_is_ended_keeps_its_plan(shared_data: Path) -> None:
    """An interruption in the middle of the first search over all downsets leaves a plan, and a bound below it."""
    problem = _published(shared_data, "gnmt", 16, Decimal("1.2"))
    asked = 0

    def interrupted() -> bool:
        nonlocal asked
        asked += 1
        return asked > 60

    result = piper.plan(problem, PlanLimits(interrupted=interrupted))
    assert isinstance(result, TrainingPlan)
    assert result.stopped == "interrupted"
    assert not result.optimal
    _check_plan(problem, result)


def test_stages_outside_a_downset_run_on_different_numbers_of_devices() -> None:
    """What edges cost their sources is least for another t at each: neither t is the better one for both."""
    sync = {("a", 2): 100, ("b", 1): 100}

    def source(name: str) -> Layer:
        ways = {t: [Configuration("only", 10, 0, 0, 6, {}, {"sink": sync.get((name, t), 0)})] for t in (1, 2)}
        return Layer(name, name, ways)

    layers = [source("a"), source("b"), Layer("sink", "sink", {1: [Configuration("only", 10, 0, 0, 6)]})]
    model = TrainingModel("fork", "ps", layers, [Edge("a", "sink", 0), Edge("b", "sink", 0)])
    asked = {"devices": 4, "memory_bytes": 10, "bandwidth_bytes_per_s": 2 * 10**12, "micro_batches": 4}
    result = piper.plan(PlanningProblem(model, **on_machine(**asked)), PlanLimits())
    assert isinstance(result, TrainingPlan)
    assert (result.time_per_sample, result.optimal) == (10, True)


@pytest.mark.parametrize("entries", ["_MEMORY_ENTRIES", "_STATE_ENTRIES", "_TABLE_ENTRIES"])
def test_small_tables_are_enough(entries: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly an entry in a table nothing false is claimed; all but the states can do without."""
    monkeypatch.setattr(threshold, entries, 1)
    for seed in range(200, 260):
        problem = random_problem(seed, most_layers=4, most_devices=5)
        result, expected = piper.plan(problem, PlanLimits()), best_plan(problem)
        if isinstance(result, NoPlan):
            assert expected is None or not result.proven
            assert entries == "_STATE_ENTRIES" or result.least_memory_bytes == least_memory(problem)
        else:
            assert expected is not None
            assert result.lower.value <= expected[0] <= result.time_per_sample
            assert entries == "_STATE_ENTRIES" or result.optimal


def test_interrupted_while_the_least_memory_is_looked_for() -> None:
    """Nothing is said about memories that were not tried."""
    # The first of two stages keeps two micro-batches: 3 · 2 + 6 bytes.
    layers = [Layer(v, f"layer {v}", {1: [Configuration("only", 10, 0, 3, 6)]}) for v in range(2)]
    model = TrainingModel("pair", "ps", layers, [])
    problem = PlanningProblem(
        model,
        machine=Machine.of_devices(2, memory_bytes=11, bandwidth_bytes_per_s=1),
        micro_batches=2,
        exact_micro_batches=True,
        schemes=Schemes(data_parallel=False),
    )
    asked = iter([False])
    result = piper.plan(problem, PlanLimits(interrupted=lambda: next(asked, True)))
    assert isinstance(result, NoPlan)
    assert (result.proven, result.least_memory_bytes) == (True, None)
    assert result.reason == "no plan fits into the memory of 2 devices"
    whole = piper.plan(problem, PlanLimits())
    assert isinstance(whole, NoPlan)
    assert whole.least_memory_bytes == 12
