"""The oracles of training plans against plans worked out by hand, and what the random problems are like."""

from __future__ import annotations

from fractions import Fraction

import training_oracles
from machines import on_machine
from training_models import random_problem
from training_oracles import OracleStage

from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.problem import PlanningProblem, Schemes

TICKS = 10**12


def chain_of_two() -> TrainingModel:
    """Return two layers of 10 and 14 ps; the second can also take 18 ps and less memory, or two devices."""
    plain = Configuration("plain", 10, 5, 3, 20)
    second = [Configuration("plain", 14, 2, 3, 20), Configuration("lean", 18, 2, 1, 20, recomputes=True)]
    split = Configuration("split", 8, 1, 2, 12, forward_sync_bytes={"a": 3})
    layers = [Layer("a", "a", {1: [plain]}), Layer("b", "b", {1: second, 2: [split]})]
    return TrainingModel("two", "ps", layers, [Edge("a", "b", 1)])


def problem(devices: int, memory: int, micro_batches: int, **rest: object) -> PlanningProblem:
    """Return what to plan; a byte takes half a tick."""
    limits = {"devices": devices, "memory_bytes": memory, "micro_batches": micro_batches}
    return PlanningProblem(chain_of_two(), **on_machine(bandwidth_bytes_per_s=2 * TICKS, **limits, **rest))


def test_plans_worked_out_by_hand() -> None:
    """Costs of each kind, on one device to three."""
    together = OracleStage((0, 1), 1, 1, (0, 0))
    assert training_oracles.best_plan(problem(1, 46, 1)) == (24, [together])
    lean = OracleStage((0, 1), 1, 1, (0, 1))
    assert training_oracles.best_plan(problem(1, 45, 1)) == (28, [lean])
    assert training_oracles.best_plan(problem(1, 43, 1)) is None
    assert training_oracles.least_memory(problem(1, 43, 1)) == 44
    # Two devices: d = 2 takes 24/2 + 1/4 · 14 = 15.5; two stages 14 + 1 for the edge, but keep 2 · 3 + 20 bytes.
    apart = [OracleStage((0,), 1, 1, (0,)), OracleStage((1,), 1, 1, (0,))]
    assert training_oracles.best_plan(problem(2, 46, 2)) == (15, apart)
    twice = OracleStage((0, 1), 2, 1, (0, 0))
    assert training_oracles.stage_parts(problem(2, 46, 2), twice, 2) == (12, 0, Fraction(7, 2), 46)
    assert training_oracles.stage_parts(problem(2, 46, 4, convention="program"), twice, 2).gradients == Fraction(7, 4)
    # Three: the second layer on two of them, 8 + 1 for the edge + 3 for bringing its input to both; the first 10 + 1.
    split = [OracleStage((0,), 1, 1, (0,)), OracleStage((1,), 1, 2, (0,))]
    assert training_oracles.best_plan(problem(3, 26, 2)) == (12, split)
    assert [parts.memory for parts in training_oracles.pipeline_parts(problem(3, 26, 2), split)] == [26, 14]


def test_rules_worked_out_by_hand() -> None:
    """Exact sums of degrees, divisors of N, and schemes left out."""
    assert training_oracles.best_plan(problem(1, 100, 2, exact_micro_batches=True)) is None
    assert training_oracles.least_memory(problem(1, 100, 2, exact_micro_batches=True)) is None
    assert training_oracles.data_degrees(problem(6, 100, 6, convention="program")) == [1, 2, 3, 6]
    assert training_oracles.data_degrees(problem(6, 100, 4)) == [1, 2, 3, 4]
    without = problem(3, 100, 3, schemes=Schemes(data_parallel=False, tensor_parallel=False, recompute=False))
    assert training_oracles.data_degrees(without) == [1]
    found = training_oracles.best_plan(without)
    assert found is not None
    assert found[0] == 15
    no_recompute = problem(1, 45, 1, schemes=Schemes(recompute=False))
    assert training_oracles.best_plan(no_recompute) is None
    assert training_oracles.least_memory(no_recompute) == 46


def test_random_problems_are_of_all_kinds() -> None:
    """Among the first ones every scheme decides some plan, and some have none."""
    found = [training_oracles.best_plan(random_problem(seed)) for seed in range(60)]
    stages = [stage for plan in found if plan is not None for stage in plan[1]]
    assert sum(plan is None for plan in found) > 5
    assert len({len(plan[1]) for plan in found if plan is not None}) >= 3
    assert any(stage.data_parallel > 1 for stage in stages)
    assert any(stage.tensor_parallel > 1 for stage in stages)
    assert any(any(stage.chosen) for stage in stages)
