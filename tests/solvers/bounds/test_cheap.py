"""Cheap bounds beside searches for partitions: what ``auto`` proves is never below them, and the same every time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graph_strategies import LINK, random_graph

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.cheap import CHEAP, cheap_bound
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.local_search.multilevel import LARGE
from mtpp.solvers.partitioners.auto import partition
from mtpp.solvers.reduction.reduction import reduce_instance


def wide_graph(branches: int, length: int) -> CostGraph:
    """Return an op that feeds many branches, and one that gathers all of them."""
    ops, tensors = [Op("in", 5)], [Tensor("t", "in", tuple(f"b{b}.0" for b in range(branches)), transfer=3)]
    for b in range(branches):
        for i in range(length):
            ops.append(Op(f"b{b}.{i}", 1))
            reader = f"b{b}.{i + 1}" if i + 1 < length else "out"
            tensors.append(Tensor(f"t{b}.{i}", f"b{b}.{i}", (reader,), transfer=2))
    return CostGraph.build(name="wide", time_unit="1", ops=[*ops, Op("out", 6)], tensors=tensors)


@pytest.mark.parametrize("k", [2, 4, 7])
@pytest.mark.parametrize("seed", range(6))
def test_auto_proves_no_less_than_cheap_bounds(seed: int, k: int) -> None:
    """What node and fraction prove within their steps, auto has proven in the end."""
    instance = Instance.build(random_graph(seed, 60), Machine.uniform(k, LINK))
    limits = SearchLimits(50, jobs=1)
    found = partition(instance, limits)
    reduced = reduce_instance(instance)
    least = 0 if found.lower is None else found.lower.value
    for name in CHEAP:
        bound = cheap_bound(name, reduced, reduced.carry(found.partition), found.bottleneck, 0, limits)
        assert bound is None or bound.value <= found.bottleneck
        assert bound is None or bound.value <= least
    again = partition(instance, limits)
    assert again.lower == found.lower
    assert again.bottleneck == found.bottleneck


def test_large_graphs_have_the_bound_of_an_op() -> None:
    """Graphs that are contracted before a search have a bound as well: here that of the op that gathers all."""
    graph = wide_graph(1500, 6)
    instance = Instance.build(replace(graph, work=[1 + v % 7 for v in range(graph.op_count)]), Machine.uniform(4, LINK))
    assert reduce_instance(instance).instance.op_count > LARGE
    found = partition(instance, SearchLimits(2, jobs=1))
    assert found.lower is not None
    assert (found.lower.method, found.lower.tier) == ("node", "exact")
    assert 3000 < found.lower.value <= found.bottleneck


def test_callers_who_try_bounds_themselves_get_none() -> None:
    """A cell of certificates, whose ladder begins with these, has them tried once."""
    instance = Instance.build(wide_graph(30, 6), Machine.uniform(4, LINK))
    found = partition(instance, SearchLimits(5, jobs=1, cheap_bounds=False))
    assert found.lower is None or found.lower.method not in CHEAP
