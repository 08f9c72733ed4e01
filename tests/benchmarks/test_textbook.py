"""The baseline of the benchmarks computes what the definitions say."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from benchmarks import textbook
from mtpp.datasets.layered import layered_network
from mtpp.datasets.regal_style import regal_style
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.orders.slicing import slice_order


def arrays(instance: Instance) -> tuple[Any, ...]:
    """Return writable copies of what the baseline takes besides an order and k."""
    parts = (instance.work, instance.transfer, instance.pin_offsets, instance.pins)
    return tuple(part.copy() for part in parts)


def segment_cost(instance: Instance, ops: set[int]) -> int:
    """Return f(S) straight from the definition."""
    cost = sum(int(instance.work[v]) for v in ops)
    for t in range(instance.tensor_count):
        pins = {int(v) for v in instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]]}
        if pins & ops and pins - ops:
            cost += int(instance.transfer[t])
    return cost


GRAPHS = [regal_style("er", 12, 1), regal_style("ba", 11, 2), regal_style("ws", 13, 3), layered_network(40, 4)]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph.name))
def test_table_of_segment_costs(graph: CostGraph) -> None:
    """Every entry of the table is the cost of its segment, in file order and in another topological order."""
    instance = Instance.build(graph, Machine.uniform(2, load_device()))
    n = instance.op_count
    for order in (np.arange(n, dtype=np.int32), last_first_order(instance)):
        table = textbook.segment_costs(order, *arrays(instance))
        for left in range(n):
            for right in range(left + 1, n + 1):
                assert table[left + 1, right] == segment_cost(instance, set(order[left:right].tolist()))


@pytest.mark.parametrize("graph", GRAPHS[:3], ids=lambda graph: str(graph.name))
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_best_slicing(graph: CostGraph, k: int) -> None:
    """The bottleneck is the least over all ways to place k - 1 separators, empty stages included."""
    instance = Instance.build(graph, Machine.uniform(k, load_device()))
    order = last_first_order(instance)
    n = len(order)
    expected = min(
        max(segment_cost(instance, set(order[a:b].tolist())) for a, b in zip((0, *cuts), (*cuts, n), strict=True))
        for cuts in combinations_with_replacement(range(n + 1), k - 1)
    )
    assert textbook.textbook_slice(order, k, *arrays(instance)) == expected


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph.name))
@pytest.mark.parametrize("k", [2, 9, 100])
def test_baseline_and_window_agree(graph: CostGraph, k: int) -> None:
    """The baseline and the windowed slicing give the same ticks, more stages than ops included."""
    instance = Instance.build(graph, Machine.uniform(k, load_device()))
    order = last_first_order(instance)
    found = slice_order(instance, order)
    assert found is not None
    assert textbook.textbook_slice(order, k, *arrays(instance)) == found.bottleneck


def last_first_order(instance: Instance) -> Any:
    """Return the topological order that always takes the last ready op of the file."""
    sources, targets = instance.edges
    waiting = {v: set(sources[targets == v].tolist()) for v in range(instance.op_count)}
    order = []
    while waiting:
        v = max(v for v, inputs in waiting.items() if not inputs & waiting.keys())
        del waiting[v]
        order.append(v)
    return np.array(order, dtype=np.int32)
