"""Kernels against their plain-Python twins."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from graph_strategies import graphs, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.graph import CostGraph
from mtpp.instance import Instance
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.kernels.overflow import ceil_scaled
from mtpp.solvers.kernels.random_orders import best_random_order
from mtpp.solvers.kernels.slicing import INFEASIBLE, best_segmentation, fewest_stages
from mtpp.solvers.kernels.topological import kahn_order
from mtpp.system import System

SYSTEM = System("s", 1, 1, 10**9)
PRIORITIES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75]), min_size=8, max_size=8)


def _order(instance: Instance, priorities: list[float]) -> np.ndarray:
    return kahn_order(order_arrays(instance), np.array(priorities[: instance.op_count]))


def _without_order_peak(problem: tuple[CostGraph, System, int]) -> bool:
    return problem[1].peak == "reserve"


@given(graphs(max_ops=8), PRIORITIES)
def test_kahn_order(graph: CostGraph, priorities: list[float]) -> None:
    """Kahn's order equals the textbook rule, ties included."""
    order = _order(Instance.build(graph, SYSTEM, 1), priorities)
    assert order.tolist() == oracles.kahn_order(graph, priorities[: graph.op_count])


@settings(max_examples=300)
@given(problems(max_ops=8).filter(_without_order_peak), PRIORITIES)
def test_best_segmentation(problem: tuple[CostGraph, System, int], priorities: list[float]) -> None:
    """The windowed programme finds the same bottleneck as the programme over all segments, with overflow."""
    graph, system, k = problem
    instance = Instance.build(graph, system, k)
    order = _order(instance, priorities)
    arrays = slicing_arrays(instance)
    best = oracles.best_segmentation(graph, system, k, order.tolist())
    assert best_segmentation(order, k, best + 1, arrays) == best
    assert best_segmentation(order, k, 2**61, arrays) == best
    if best > 0:
        assert best_segmentation(order, k, best, arrays) == INFEASIBLE


@settings(max_examples=300)
@given(problems(max_ops=8).filter(_without_order_peak), PRIORITIES, st.integers(0, 9))
def test_fewest_stages(problem: tuple[CostGraph, System, int], priorities: list[float], tenths: int) -> None:
    """The fewest segments below a cutoff, for cutoffs around those that matter; the chain of parents has as many."""
    graph, system, k = problem
    instance = Instance.build(graph, system, k)
    order = _order(instance, priorities)
    total = int(instance.work.sum()) + int(instance.transfer.sum())
    for cutoff in {max(1, total * tenths // 9), oracles.best_segmentation(graph, system, k, order.tolist()) + 1}:
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
    instance = Instance.build(graph, SYSTEM, k)
    priorities = np.random.default_rng(seed).random((6, graph.op_count))
    orders = [oracles.kahn_order(graph, row.tolist()) for row in priorities]
    values = [oracles.best_segmentation(graph, SYSTEM, k, order) for order in orders]
    kept = np.zeros(graph.op_count, dtype=np.int32)
    arguments = (order_arrays(instance), slicing_arrays(instance), kept)
    assert best_random_order(priorities, k, min(values) + 1, *arguments) == min(values)
    assert kept.tolist() == orders[values.index(min(values))]
    if min(values) > 0:
        assert best_random_order(priorities, k, min(values), *arguments) == INFEASIBLE


@given(st.integers(0, 2**44), st.integers(1, 10**12), st.integers(1, 2**40), st.integers(1, 20))
def test_ceil_scaled(count: int, numerator: int, denominator: int, chunk: int) -> None:
    """Long division in int64 equals big integers wherever the result fits."""
    expected = -(-count * numerator // denominator)
    if expected < 2**62 and count // denominator * numerator < 2**62:
        assert ceil_scaled(count, numerator, denominator, chunk) == expected


@pytest.mark.parametrize("bandwidth", [1, 7, 25 * 10**9, 25 * 2**30, 999_999_999_989, 2**41 - 1, 2039 * 10**9])
def test_overflow_of_real_bandwidths(bandwidth: int) -> None:
    """Overflow in the kernels equals the instance's, for bandwidths that share few factors with 10^12."""
    from mtpp.graph import Op
    from mtpp.solvers.kernels.overflow import overflow_ticks

    graph = CostGraph.build(name="g", time_unit="ps", ops=[Op("a", 1, "", 5 * 10**5)], tensors=[])
    instance = Instance.build(graph, System("s", 1, 1, bandwidth, 1000, 300), 1)
    memory = slicing_arrays(instance).memory
    for params in (0, 699, 700, 701, 12_345, 500_000):
        assert overflow_ticks(params, memory) == instance.overflow_ticks(params, 300)
