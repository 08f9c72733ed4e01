"""The knapsack of a stage against all combinations of choices."""

from __future__ import annotations

import itertools
import random

import pytest
from training_models import random_problem

from mtpp.machine.machine import Machine
from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.bang_per_buck import bang_per_buck
from mtpp.solvers.planners.piper.kernels.stage_choices import (
    ANY,
    BANG_PER_BUCK,
    LEAST,
    NOTHING_FITS,
    UNBOUNDED,
    least_cost,
)
from mtpp.solvers.planners.piper.kernels.stage_options import Demand, StageLayers, gather_members, knapsack_scratch
from mtpp.solvers.planners.piper.layer_downsets import layer_bits
from mtpp.training.model import Configuration, Layer, TrainingModel
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem


def _problem(layers: list[list[tuple[int, int, int]]], memory: int) -> PlanningProblem:
    """Return layers without edges, each with configurations of (picoseconds, bytes, parameters)."""
    rows = [
        Layer(
            v,
            f"layer {v}",
            {1: [Configuration(f"c{c}", time, size, 0, held) for c, (time, held, size) in enumerate(own)]},
        )
        for v, own in enumerate(layers)
    ]
    return PlanningProblem(
        TrainingModel("knapsack", "ps", rows, []),
        machine=Machine.of_devices(2, memory_bytes=memory, bandwidth_bytes_per_s=4 * 10**12),
        micro_batches=2,
    )


def _solve(problem: PlanningProblem, wanted: int, budget: int = UNBOUNDED) -> tuple[int, list[int]]:
    """Return what the kernel makes of all layers on two devices, and what it chose."""
    n = len(problem.model.layers)
    arrays = choice_arrays(problem)
    scratch = knapsack_scratch(n, len(arrays.compute))
    outer, inner = layer_bits(range(n), n), layer_bits((), n)
    count = gather_members(n, outer, inner, scratch)
    demand = Demand(0, 2, 1, 1, problem.memory_bytes, budget, wanted)
    cost = least_cost(StageLayers(count, outer, inner), demand, arrays, scratch)
    return cost, (scratch.chosen[:count] - arrays.start[:n]).tolist()


def _brute_force(problem: PlanningProblem) -> int:
    costs = [
        sum(2 * one.compute_ticks + one.weight_ticks for one in way)
        for way in itertools.product(*problem.choices[0])
        if sum(one.memory_b for one in way) <= problem.memory_bytes
    ]
    return min(costs, default=NOTHING_FITS)


def _random_layers(pick: random.Random, count: int, alike: bool) -> list[list[tuple[int, int, int]]]:
    layers = []
    for _ in range(count):
        options = pick.randint(1, 3)
        steps = [pick.choice((5, 7)) if alike else pick.randint(1, 20) for _ in range(options)]
        held = [sum(steps[i:]) for i in range(options)]
        layers.append([(pick.randint(0, 30) + 10 * i, held[i], pick.randint(0, 9)) for i in range(options)])
    return layers


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_the_least_cost_is_that_of_all_combinations(seed: int, alike: bool) -> None:
    """Layers with one to three choices, savings all different or in a few classes."""
    pick = random.Random(seed)
    layers = _random_layers(pick, pick.randint(1, 8), alike)
    least = sum(min(held for _, held, _ in own) for own in layers)
    most = sum(max(held for _, held, _ in own) for own in layers)
    problem = _problem(layers, max(1, pick.randint(least - 1, most)))
    expected = _brute_force(problem)
    cost, chosen = _solve(problem, LEAST)
    assert cost == expected
    if expected == NOTHING_FITS:
        return
    picked = [own[c] for own, c in zip(problem.choices[0], chosen, strict=True)]
    assert sum(2 * one.compute_ticks + one.weight_ticks for one in picked) == cost
    assert sum(one.memory_b for one in picked) <= problem.memory_bytes
    assert expected <= _solve(problem, ANY, expected)[0] <= expected
    assert _solve(problem, ANY, expected - 1)[0] == NOTHING_FITS
    assert _solve(problem, LEAST, expected - 1)[0] == NOTHING_FITS


@pytest.mark.parametrize("seed", range(24))
def test_bang_per_buck_is_the_rounded_relaxation(seed: int) -> None:
    """The kernel's way to it comes to the cost of the heuristic as the paper tells it."""
    pick = random.Random(seed)
    # No two ratios of time to memory are alike, so that there is one way to go.
    layers = [
        [(time * 1009 + pick.randint(0, 999), held, 0) for time, held, _ in own]
        for own in _random_layers(pick, 6, False)
    ]
    least = sum(min(held for _, held, _ in own) for own in layers)
    problem = _problem(layers, least + pick.randint(0, 20))
    chosen = bang_per_buck(problem, LayerStage(list(range(6)), 1, 1, [0] * 6), 1)
    cost, _ = _solve(problem, BANG_PER_BUCK)
    assert chosen is not None
    assert cost == sum(2 * own[c].compute_ticks for own, c in zip(problem.choices[0], chosen, strict=True))


def test_a_layer_without_choices_fits_nowhere() -> None:
    """Where a layer has nothing for a degree there is nothing to choose."""
    layers = [
        Layer(0, "a", {1: [Configuration("x", 1, 0, 0, 1)]}),
        Layer(1, "b", {2: [Configuration("x", 1, 0, 0, 1)]}),
    ]
    problem = PlanningProblem(
        TrainingModel("m", "ps", layers, []),
        machine=Machine.of_devices(2, memory_bytes=9, bandwidth_bytes_per_s=1),
        micro_batches=2,
    )
    assert _solve(problem, LEAST)[0] == NOTHING_FITS


def test_many_layers_that_save_alike_are_no_search() -> None:
    """Which 48 of 96 layers save is a matter of order, although all prices differ a little."""
    pick = random.Random(1)
    prices = [1000 + pick.randint(0, 99) for _ in range(96)]
    problem = _problem([[(0, 10, 0), (price, 0, 0)] for price in prices], 485)
    assert _solve(problem, LEAST)[0] == 2 * sum(sorted(prices)[:48])


@pytest.mark.parametrize("seed", range(5))
def test_sync_costs_that_differ_are_part_of_the_choice(seed: int) -> None:
    """Choices whose edges cost differently are not taken for plain ones."""
    problem = random_problem(seed + 1000)
    arrays = choice_arrays(problem)
    for j, by_layer in enumerate(problem.choices):
        differ = any(
            len({tuple(own) for own in kinds}) > 1
            for choices in by_layer
            for kinds in (
                [[one.weight_ticks] for one in choices],
                [one.sync_in_ticks for one in choices],
                [one.sync_out_ticks for one in choices],
            )
        )
        assert bool(arrays.plain[j]) != differ
