"""Bounds from single layers hold for every plan there is, and come to what they say by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from machines import on_machine, on_other_devices
from training_models import random_model, random_problem
from training_oracles import best_time

from mtpp.machine.machine import Machine
from mtpp.solvers.planners.bounds.work import least_memory, work_bound
from mtpp.training.model import Configuration, Layer, TrainingModel
from mtpp.training.problem import PlanningProblem, Schemes


def problem_of(times: list[dict[int, int]], *, weights: int = 0, **asked: object) -> PlanningProblem:
    """Return a problem in ps of layers without edges: the time of each by t; B makes a byte of *weights* 4 ps."""
    layers = [
        Layer(v, f"layer {v}", {t: [Configuration("only", p, weights, 3, 4)] for t, p in by_degree.items()})
        for v, by_degree in enumerate(times)
    ]
    asked = {"devices": 4, "memory_bytes": 10**6, "bandwidth_bytes_per_s": 10**12, "micro_batches": 8, **asked}
    return PlanningProblem(TrainingModel("hand-made", "ps", layers, []), **on_machine(**asked))


@pytest.mark.parametrize(
    ("times", "asked", "value", "rule"),
    [
        # 10 + 20 + 30 over 4 devices, tensor parallelism does no good.
        ([{1: 10}, {1: 20, 2: 11}, {1: 30}], {"weights": 0}, Fraction(60, 4), "devices"),
        # One micro-batch in flight: all of it in one stage, at t = 4.
        ([{1: 10, 4: 4}, {1: 20, 4: 6}], {"micro_batches": 1}, Fraction(10), "degrees"),
        # Without data parallelism there are at most two stages on the hundred devices.
        ([{1: 10}, {1: 10}, {1: 30}], {"devices": 100, "schemes": Schemes(data_parallel=False)}, Fraction(30), "layer"),
        ([{1: 29}, {1: 31}], {"devices": 100, "schemes": Schemes(data_parallel=False)}, Fraction(31), "layer"),
        # d = 4: 40 / 4 + 3 · 4 · w / 16, or / (4 · 8) where gradients are spread over the batch.
        ([{1: 40}], {"weights": 10}, 10 + Fraction(3 * 40, 16), "layer"),
        ([{1: 40}], {"weights": 10, "convention": "program"}, 10 + Fraction(3 * 40, 4 * 8), "layer"),
        # Gradients so dear that one replica is best.
        ([{1: 40}], {"weights": 1000}, Fraction(40), "layer"),
        # d has to divide 3.
        ([{1: 40}], {"micro_batches": 3, "convention": "program"}, Fraction(40, 3), "degrees"),
        ([{1: 40}], {"micro_batches": 6, "devices": 4, "convention": "program"}, Fraction(40, 3), "layer"),
    ],
)
def test_hand_made(times: list[dict[int, int]], asked: dict[str, object], value: Fraction, rule: str) -> None:
    """The best rule is the one that binds."""
    bound = work_bound(problem_of(times, **asked))
    assert bound is not None
    assert (bound.value, bound.proof["rule"], bound.method, bound.tier) == (value, rule, "work", "exact")


def test_ways_that_cost_nothing_beside_ways_that_do() -> None:
    """No cutoff above zero leaves out the free ones: the search for one ends."""
    bound = work_bound(problem_of([{1: 0, 2: 4}, {1: 0}], weights=3))
    assert bound is not None
    assert bound.value == 0


def test_mixed_rule_is_above_both() -> None:
    """Two layers, three devices, two micro-batches: neither devices nor micro-batches alone are what is short."""
    # Devices: (10 + 10) / 3. Degrees: (6 + 6) / 2. With α = 4, β = 2 both ways cost 60: 120 / (4 · 3 + 2 · 2).
    bound = work_bound(problem_of([{1: 10, 2: 6}] * 2, devices=3, micro_batches=2))
    assert bound is not None
    assert bound.value == Fraction(15, 2)
    assert bound.proof == {"rule": "mixed", "total": 60, "per_device": 2, "per_degree": 1}


def test_gradients_of_stages_that_have_to_be_replicated() -> None:
    """Two layers of 40 on four devices: within 30 each needs two replicas at least, and what these exchange."""
    # 29.99: three replicas of each would be needed, (40 + 40 · 2 / 3) · 2 / 4. Two stages of two replicas take 30.
    bound = work_bound(problem_of([{1: 40}] * 2, weights=10))
    assert bound is not None
    assert bound.proof["rule"] == "gradients"
    assert Fraction(299, 10) < bound.value <= 30
    # Spread over eight micro-batches, 40 + 40 / 8 each are the least for two replicas.
    bound = work_bound(problem_of([{1: 40}] * 2, weights=10, convention="program"))
    assert bound is not None
    assert bound.proof["rule"] == "gradients"
    assert Fraction(90, 4) - Fraction(1, 10) < bound.value <= Fraction(90, 4)


@pytest.mark.parametrize("convention", ["paper", "program"])
def test_no_plan_with_dear_gradients_is_better(convention: str) -> None:
    """The rule for gradients holds for every plan of random models as well, where it is the best."""
    some = 0
    for seed in range(60):
        model = random_model(seed, 2)
        layers = [
            replace(layer, configurations={
                t: [replace(one, time_per_sample=one.time_per_sample + 40, memory_a=0, memory_b=0) for one in here]
                for t, here in layer.configurations.items()
            })
            for layer in model.layers
        ]  # fmt: skip
        machine = Machine.of_devices(6, memory_bytes=1, bandwidth_bytes_per_s=10**12)
        heavy = PlanningProblem(replace(model, layers=layers), machine=machine, micro_batches=6, convention=convention)
        bound = work_bound(heavy)
        assert bound is not None
        if bound.proof["rule"] == "gradients":
            some += 1
            assert bound.value <= best_time(heavy)
    assert some > 5


def test_no_way_to_run_a_layer() -> None:
    """Too little memory for a layer, or for all layers on all devices, means that there is no plan."""
    problem = problem_of([{1: 10}] * 3, devices=2, memory_bytes=11)
    assert least_memory(problem) == 11
    assert work_bound(problem) is not None
    assert work_bound(on_other_devices(problem, memory_bytes=10)) is None
    alone = problem_of([{1: 10}] * 3, devices=100, memory_bytes=7)
    assert least_memory(alone) == 7
    assert work_bound(on_other_devices(alone, memory_bytes=6)) is None


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_no_plan_is_better(first: int) -> None:
    """Bounds are at most the best of all plans of random models, and need no more memory than any of them."""
    some = 0
    for seed in range(first, first + 40):
        problem = random_problem(seed, 4)
        best = best_time(problem)
        bound = work_bound(problem)
        if best is None:
            continue
        some += 1
        assert least_memory(problem) <= problem.memory_bytes
        assert bound is not None
        assert bound.value <= best
        assert bound.value > 0 or best < 100
    assert some > 10
