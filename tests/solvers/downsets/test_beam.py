"""Beams over downsets: partitions as good as brute force's where nothing is left out, and honest ones where much is."""

from __future__ import annotations

import random

import numpy as np
import oracles
import pytest
from graph_strategies import LINK, problems, random_graph
from hypothesis import given, settings

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import check_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.downsets.beam import BeamSearch
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.orders.slicing import slice_order

AMPLE = 2**24


def best_of(instance: Instance, beam: BeamSearch, steps: int, most: int = 10**9) -> Partition | None:
    """Return the best partition below all ticks, *steps* at a time; each one found is better than the one before."""
    best, upper = None, instance.most_ticks
    while upper > 0 and not beam.finished and beam.steps < most:
        before = beam.steps
        found = beam.improve(0, upper, steps)
        assert found is not None or beam.steps > before or beam.finished
        if found is not None:
            costs = stage_costs(instance, found)
            assert costs.bottleneck < upper
            check_stage_memory(instance, costs)
            best, upper = found, costs.bottleneck
    return best


@settings(max_examples=200)
@given(problems(max_ops=7, stage_memory=True))
@pytest.mark.slow
def test_a_beam_that_leaves_nothing_out_finds_the_optimum(problem: tuple[CostGraph, Device, int]) -> None:
    """Or nothing, where no partition keeps to the stage memory."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum = oracles.brute_force_optimum(graph, system, k)
    if optimum == instance.most_ticks:  # asked for less
        return
    found = best_of(instance, BeamSearch(downset_problem(instance), AMPLE, lambda: False), 10**9)
    if optimum == oracles.NEVER:
        assert found is None
    else:
        assert found is not None
        assert stage_costs(instance, found).bottleneck == optimum


def towers(seed: int, length: int) -> CostGraph:
    """Return two chains side by side, each op read by the next one and a small op that a late one reads."""
    pick = random.Random(seed)
    ops, tensors = [], []
    for tower in "ab":
        names = [f"{tower}{i}" for i in range(length)]
        side = [f"{name}.side" for name in names]
        ops += [Op(name, pick.randint(20, 200)) for name in names] + [Op(name, pick.randint(0, 3)) for name in side]
        for i in range(length):
            readers = (side[i], *names[i + 1 : i + 2])
            tensors.append(Tensor(names[i], names[i], readers, transfer=pick.randint(1, 9)))
            if i + 3 < length:
                late = names[pick.randint(i + 2, min(length - 1, i + 9))]
                tensors.append(Tensor(side[i], side[i], (late,), transfer=pick.randint(1, 9)))
    return CostGraph.build(name="towers", time_unit="1", ops=ops, tensors=tensors)


@pytest.mark.parametrize("seed", range(4))
def test_towers_are_cut_side_by_side(seed: int) -> None:
    """Nearer to what work alone asks for than the best cut of the order of the file by a good part."""
    instance = Instance.build(towers(seed, 40), Machine.uniform(8, LINK))
    cut = slice_order(instance, instance.order)
    found = best_of(instance, BeamSearch(downset_problem(instance), AMPLE, lambda: False), 10**5, 3 * 10**5)
    assert found is not None
    assert cut is not None
    least = simple_bound(instance).value
    assert stage_costs(instance, found).bottleneck - least < 0.85 * (cut.bottleneck - least)


@pytest.mark.parametrize("steps", [50, 1003, 20_000])
def test_interruptions_change_nothing(steps: int) -> None:
    """The same searches one after the other, however small their portions."""
    instance = Instance.build(random_graph(5, 14), Machine.uniform(4, LINK))
    whole = BeamSearch(downset_problem(instance), AMPLE, lambda: False)
    portions = BeamSearch(downset_problem(instance), AMPLE, lambda: False)
    expected = best_of(instance, whole, 10**9)
    found = best_of(instance, portions, steps)
    assert expected is not None
    assert found is not None
    assert np.array_equal(found.assignment, expected.assignment)
    assert portions.steps == whole.steps


def test_little_memory_and_an_early_end_leave_valid_partitions() -> None:
    """A search that has no room left is one that was narrowed; one that has to end returns at once."""
    instance = Instance.build(towers(0, 12), Machine.uniform(3, LINK))
    beam = BeamSearch(downset_problem(instance), 2**12, lambda: False)
    best_of(instance, beam, 10**4, 10**5)
    assert not beam.finished
    ended = BeamSearch(downset_problem(instance), AMPLE, lambda: True)
    assert ended.improve(0, instance.most_ticks, 10**9) is None
    assert ended.steps == 0
