"""Cost steps of stages say the least cost for every number of micro-batches in flight, as trying all choices does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from training_models import random_problem

from mtpp.solvers.planners.nested.segments import nested_downsets
from mtpp.solvers.planners.piper.arrays import ChoiceArrays, choice_arrays
from mtpp.solvers.planners.piper.kernels.cost_steps import (
    Nested,
    StageKinds,
    cost_steps,
    fit_until,
    tolerated_in_flight,
)
from mtpp.solvers.planners.piper.kernels.stage_options import knapsack_scratch
from mtpp.solvers.planners.piper.layer_downsets import every_downset
from mtpp.training.plan import LayerStage, stage_figures
from mtpp.training.problem import PlanningProblem

MOST = 4
"""Micro-batches in flight, from a stage on, that are looked at."""


def _kinds(problem: PlanningProblem) -> list[tuple[int, int, int]]:
    return [(j, d, problem.spread(d)) for j in range(len(problem.degrees)) for d in problem.data_degrees[:2]]


def _least(problem: PlanningProblem, layers: list[int], j: int, d: int, y: int) -> int | None:
    """Return the least cost of the stage with *y* micro-batches in flight; None if nothing fits."""
    by_layer = problem.choices[j]
    times = []
    for chosen in product(*(range(len(by_layer[v])) for v in layers)):
        (figures,) = stage_figures(problem, [LayerStage(layers, d, problem.degrees[j], chosen)], y * d)
        if figures.memory_bytes <= problem.memory_bytes:
            times.append(figures.time * d * problem.spread(d))
    return min(map(int, times), default=None)


def _setting(seed: int) -> tuple[PlanningProblem, ChoiceArrays, Nested]:
    problem = random_problem(seed, most_layers=4)
    sets = every_downset(problem, 10**6)
    assert sets is not None
    return problem, choice_arrays(problem), nested_downsets(sets)


@pytest.mark.parametrize("seed", range(12))
def test_steps_are_the_least_costs(seed: int) -> None:
    """At every number in flight the step that reaches it costs the least there is; beyond the last nothing fits."""
    problem, arrays, nested = _setting(seed)
    kinds = _kinds(problem)
    degree, data, spread = (np.array(column, dtype=np.int64) for column in zip(*kinds, strict=True))
    kind_arrays = StageKinds(degree, data, degree, spread)
    scratch = knapsack_scratch(len(problem.model.layers), len(arrays.compute))
    question = (nested, arrays, kind_arrays, MOST, problem.memory_bytes, scratch)
    count = len(nested.outer)
    starts, in_flight, cost, undecided = cost_steps(0, count, *question)
    until = fit_until(*question)
    assert undecided == 0
    budgets = np.array([int(cost.max(initial=0)) // 2] * len(kinds), dtype=np.int64)
    most = tolerated_in_flight(starts, in_flight, cost, data, budgets, MOST)
    for pair in range(count):
        bits = int(nested.sets[nested.outer[pair]][0]) & ~int(nested.sets[nested.inner[pair]][0])
        layers = [v for v in range(len(problem.model.layers)) if bits >> v & 1]
        for i, (j, d, _) in enumerate(kinds):
            first, last = starts[pair * len(kinds) + i], starts[pair * len(kinds) + i + 1]
            steps = list(zip(in_flight[first:last].tolist(), cost[first:last].tolist(), strict=True))
            expected = [_least(problem, layers, j, d, y) for y in range(1, -(-MOST // d) + 1)]
            assert [
                next((c for reach, c in steps if reach >= y), None) for y in range(1, len(expected) + 1)
            ] == expected
            fitting = [y for y, least in enumerate(expected, 1) if least is not None]
            assert until[pair, i] == len(fitting)
            within = [y for y in fitting if expected[y - 1] <= budgets[i]]  # type: ignore[operator]
            assert most[pair, i] == min(MOST, d * max(within, default=0))
