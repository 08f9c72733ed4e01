"""Peaks in order: kernels against the definition, for any set of ops, any order that is cut, and merged ops."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from graph_strategies import graphs, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE, best_segmentation
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.stage_cost.cost_arrays import ground_arrays
from mtpp.solvers.stage_cost.kernels.working_memory import NO_PEAK, peak_of_ops, peak_scratch, window_peaks

IN_ORDER = Device("s", 1, 1, Link(10**9), peak="order", memory_bytes=0)
PRIORITIES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75]), min_size=8, max_size=8)


@settings(max_examples=200)
@given(graphs(max_ops=8), st.data())
def test_any_set_of_ops(graph: CostGraph, data: st.DataObject) -> None:
    """The peak of any set, convex or not, is that of the definition, and the scratch is left as it was."""
    ground = ground_arrays(Instance.build(graph, Machine.uniform(2, IN_ORDER)))
    ops = data.draw(st.sets(st.integers(0, graph.op_count - 1)))
    place = {v: i for i, v in enumerate(oracles.own_order(graph))}
    places = np.array([*sorted(place[v] for v in ops), 0], dtype=np.int32)  # what follows the count is not looked at
    scratch = np.zeros(len(ground.sizes), dtype=np.int32)
    for _ in range(2):
        assert peak_of_ops(places, len(ops), ground, scratch) == oracles.peak_in_order(graph, ops)
        assert not scratch.any()


def _merged(graph: CostGraph, system: Device, k: int, data: st.DataObject) -> Instance:
    """Return an instance of *graph* after up to three contractions, one upon the other."""
    instance = Instance.build(graph, Machine.uniform(k, system))
    for _ in range(data.draw(st.integers(0, 3))):
        group = data.draw(st.lists(st.integers(0, instance.op_count - 1), min_size=1, max_size=3, unique=True))
        instance = contract(instance, [group]).instance
    return instance


def _blocks(graph: CostGraph, instance: Instance) -> list[list[int]]:
    number = {name: v for v, name in enumerate(graph.op_names)}
    return [[number[name] for name in instance.members_of(v)] for v in range(instance.op_count)]


@settings(max_examples=200)
@given(graphs(max_ops=8), PRIORITIES, st.data())
@pytest.mark.slow
def test_all_windows_of_any_order(graph: CostGraph, priorities: list[float], data: st.DataObject) -> None:
    """Every window of an order, in any sequence of right ends, merged ops or not, has the peak of the definition."""
    instance = _merged(graph, IN_ORDER, 2, data)
    blocks = _blocks(graph, instance)
    order = kahn_order(order_arrays(instance), np.array(priorities[: instance.op_count]))
    slicing = slicing_arrays(instance)._replace(ground=ground_arrays(instance))
    scratch = peak_scratch(len(slicing.costs.param_bytes), slicing.ground)
    for right in data.draw(st.permutations(range(instance.op_count))):
        left = data.draw(st.integers(0, right + 1))
        window_peaks(order, left, right, 2**41, slicing, slicing.ground, scratch)
        for begin in range(left, right + 1):
            ops = [v for op in order[begin : right + 1] for v in blocks[op]]
            assert scratch.peaks[begin] == oracles.peak_in_order(graph, ops)


@given(graphs(max_ops=8), st.integers(0, 200))
def test_windows_that_hold_too_much(graph: CostGraph, most: int) -> None:
    """A window's peak is left out only if the window, and every longer one, needs more than is of interest."""
    instance = Instance.build(graph, Machine.uniform(2, IN_ORDER))
    slicing = slicing_arrays(instance)._replace(ground=ground_arrays(instance))
    scratch = peak_scratch(len(slicing.costs.param_bytes), slicing.ground)
    order = oracles.own_order(graph)
    for right in range(graph.op_count):
        window_peaks(np.array(order, dtype=np.int32), 0, right, most, slicing, slicing.ground, scratch)
        for begin in range(right + 1):
            figures = oracles.stage_figures(graph, IN_ORDER, order[begin : right + 1], 2)
            if scratch.peaks[begin] == NO_PEAK:
                assert figures["param_bytes"] + figures["peak_bytes"] > most
            else:
                assert scratch.peaks[begin] == figures["peak_bytes"]


@settings(max_examples=200)
@given(problems(max_ops=8, stage_memory=True), PRIORITIES, st.data())
@pytest.mark.slow
def test_cutting_merged_ops(
    problem: tuple[CostGraph, Device, int], priorities: list[float], data: st.DataObject
) -> None:
    """The best cut of an order of merged ops is that of the definition, with every kind of memory."""
    graph, system, k = problem
    instance = _merged(graph, system, k, data)
    order = kahn_order(order_arrays(instance), np.array(priorities[: instance.op_count]))
    blocks = _blocks(graph, instance)
    best = oracles.best_cut_of_blocks(graph, system, k, [blocks[v] for v in order])
    found = best_segmentation(order, k, 2**61, slicing_arrays(instance))
    assert found == (INFEASIBLE if best == oracles.NEVER else best)
