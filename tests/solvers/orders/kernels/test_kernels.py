"""Kernels against their plain-Python twins."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from graph_strategies import graphs, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.orders.kernels.random_orders import best_random_order
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE, best_segmentation, fewest_stages
from mtpp.solvers.orders.kernels.topological import kahn_order

SYSTEM = Device("s", 1, 1, Link(10**9))
PRIORITIES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75]), min_size=8, max_size=8)


def _order(instance: Instance, priorities: list[float]) -> np.ndarray:
    return kahn_order(order_arrays(instance), np.array(priorities[: instance.op_count]))


@given(graphs(max_ops=8), PRIORITIES)
def test_kahn_order(graph: CostGraph, priorities: list[float]) -> None:
    """Kahn's order equals the textbook rule, ties included."""
    order = _order(Instance.build(graph, Machine.uniform(1, SYSTEM)), priorities)
    assert order.tolist() == oracles.kahn_order(graph, priorities[: graph.op_count])


@settings(max_examples=300)
@given(problems(max_ops=8, stage_memory=True), PRIORITIES)
@pytest.mark.slow
def test_best_segmentation(problem: tuple[CostGraph, Device, int], priorities: list[float]) -> None:
    """The windowed programme finds the same bottleneck as the programme over all segments, memory included."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    order = _order(instance, priorities)
    arrays = slicing_arrays(instance)
    best = oracles.best_segmentation(graph, system, k, order.tolist())
    if best == oracles.NEVER:
        assert best_segmentation(order, k, 2**61, arrays) == INFEASIBLE
        return
    assert best_segmentation(order, k, best + 1, arrays) == best
    assert best_segmentation(order, k, 2**61, arrays) == best
    if best > 0:
        assert best_segmentation(order, k, best, arrays) == INFEASIBLE


@settings(max_examples=300)
@given(problems(max_ops=8, stage_memory=True), PRIORITIES, st.integers(0, 9))
def test_fewest_stages(problem: tuple[CostGraph, Device, int], priorities: list[float], tenths: int) -> None:
    """The fewest segments below a cutoff, for cutoffs around those that matter; the chain of parents has as many."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    order = _order(instance, priorities)
    total = int(instance.work.sum()) + int(instance.transfer.sum())
    best = oracles.best_segmentation(graph, system, k, order.tolist())
    for cutoff in {max(1, total * tenths // 9), min(best + 1, 2**61)}:
        expected = oracles.fewest_stages(graph, system, order.tolist(), cutoff, k)
        parent = np.full(graph.op_count + 1, -1, dtype=np.int32)
        most = graph.op_count
        found = fewest_stages(order, cutoff, most, slicing_arrays(instance), parent)
        assert found == (most + 1 if expected is None else expected)
        if expected is not None:
            end, steps = graph.op_count, 0
            while end > 0:
                end, steps = int(parent[end]), steps + 1
            assert steps == expected
            assert fewest_stages(order, cutoff, expected - 1, slicing_arrays(instance), parent) == expected


@given(graphs(max_ops=8), st.integers(0, 2**32), st.integers(1, 4))
def test_best_random_order(graph: CostGraph, seed: int, k: int) -> None:
    """A batch keeps the first of the best orders, and knows when none is below the cutoff."""
    instance = Instance.build(graph, Machine.uniform(k, SYSTEM))
    priorities = np.random.default_rng(seed).random((6, graph.op_count))
    orders = [oracles.kahn_order(graph, row.tolist()) for row in priorities]
    values = [oracles.best_segmentation(graph, SYSTEM, k, order) for order in orders]
    kept = np.zeros(graph.op_count, dtype=np.int32)
    arguments = (order_arrays(instance), slicing_arrays(instance), kept)
    assert best_random_order(priorities, k, min(values) + 1, *arguments) == min(values)
    assert kept.tolist() == orders[values.index(min(values))]
    if min(values) > 0:
        assert best_random_order(priorities, k, min(values), *arguments) == INFEASIBLE
