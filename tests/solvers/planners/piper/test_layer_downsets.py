"""Downsets of layers: all of them, those along orders, and the sums over each."""

from __future__ import annotations

import pytest
from training_models import random_problem
from training_oracles import last_stages

from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.layer_downsets import every_downset, layer_bits, layer_downsets, prefixes
from mtpp.training.problem import PlanningProblem


@pytest.mark.parametrize("seed", range(20))
def test_every_downset_comes_up_once(seed: int) -> None:
    """As many as taking last stages away makes, all different; fewer are not enough space."""
    problem = random_problem(seed)
    n = len(problem.model.layers)
    expected = {frozenset(range(n))}
    for stage in last_stages(problem, frozenset(range(n))):
        expected.add(frozenset(stage))
    sets = every_downset(problem, 10**6)
    assert sets is not None
    rows = {row.tobytes() for row in sets}
    assert len(rows) == len(sets)
    assert rows == {layer_bits(one, n).tobytes() for one in expected | {frozenset()}}
    assert every_downset(problem, len(sets) - 1) is None


def test_bits_are_words_of_64_layers() -> None:
    """The 65th layer is in the second word."""
    assert layer_bits([0, 5, 64], 65).tolist() == [33, 1]
    assert layer_bits([], 64).tolist() == [0]


@pytest.mark.parametrize("seed", range(10))
def test_prefixes_are_what_cuts_leave_behind(seed: int) -> None:
    """For one order, the layers behind each place that it can be cut at, and nothing else."""
    problem = random_problem(seed)
    order = problem.model.order
    expected = {layer_bits(order[i:], len(order)).tobytes() for i in range(len(order) + 1)}
    assert {row.tobytes() for row in prefixes(problem, [order, order])} == expected


def _members(problem: PlanningProblem, bits: int) -> set[int]:
    return {v for v in range(len(problem.model.layers)) if bits >> v & 1}


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_those_of_the_layers(seed: int) -> None:
    """Each sum, written from its definition; smaller downsets come first."""
    problem = random_problem(seed)
    sets = every_downset(problem, 10**6)
    assert sets is not None
    arrays = choice_arrays(problem)
    found = layer_downsets(problem, arrays, sets, 3)
    assert found.sizes.tolist() == sorted(found.sizes.tolist())
    for i, row in enumerate(found.sets):
        inside = _members(problem, int(row[0]))
        assert found.sizes[i] == len(inside)
        every = {v: [(t, one) for t, by in zip(problem.degrees, problem.choices, strict=True) for one in by[v]]
                 for v in inside}  # fmt: skip
        assert found.degree_work[i] == sum(min(one.compute_ticks for _, one in here) for here in every.values())
        assert found.device_work[i] == sum(min(t * one.compute_ticks for t, one in here) for here in every.values())
        assert found.lightest[i] == sum(min(one.memory_a + one.memory_b for _, one in here) for here in every.values())
        into = [e for e, (u, v) in enumerate(problem.model.ends) if v in inside and u not in inside]
        assert found.crossing[found.crossing_start[i] : found.crossing_start[i + 1]].tolist() == into
        for j, by_layer in enumerate(problem.choices):
            here = [by_layer[v] for v in inside if by_layer[v]]
            assert found.missing[j, i] == len(inside) - len(here)
            assert found.compute[j, i] == sum(min(one.compute_ticks for one in ones) for ones in here)
            assert found.weights[j, i] == sum(min(one.weight_ticks for one in ones) for ones in here)
            assert found.entering[j, i] == sum(arrays.pays_in[j, e] for e in into)
            assert found.leaving[j, i] == sum(arrays.pays_out[j, e] for e in into)
            for y in range(4):
                least = [min(one.memory_a * y + one.memory_b for one in ones) for ones in here]
                fastest = [
                    min((one.compute_ticks, one.memory_a * y + one.memory_b) for one in ones)[1] for ones in here
                ]
                assert found.least_memory[j, y, i] == sum(least)
                assert found.fastest_memory[j, y, i] == sum(fastest)
