"""Merges of the reduction leave the optimum as it is."""

from __future__ import annotations

import numpy as np
import oracles
from graph_strategies import chain, graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.graph import CostGraph, Op, Tensor
from mtpp.instance import Instance
from mtpp.objective import bottleneck
from mtpp.partition import Partition
from mtpp.solvers.reduction import mergeable_ops, reduce_instance
from mtpp.system import System

SYSTEM = System("s", 1, 1, 10**9)


@settings(max_examples=200)
@given(graphs(min_ops=2, max_ops=7), st.integers(1, 4))
def test_the_optimum_stays(graph: CostGraph, k: int) -> None:
    """The best partition that keeps every merged group together is as good as any."""
    instance = Instance.build(graph, SYSTEM, k)
    merges = reduce_instance(instance)
    groups: dict[int, list[int]] = {}
    for v in range(graph.op_count):
        place = v
        for merge in merges:
            place = int(merge.contraction.group_of[place])
        groups.setdefault(place, []).append(v)
    kept = oracles.brute_force_optimum(graph, SYSTEM, k, [ops for ops in groups.values() if len(ops) > 1])
    assert kept == oracles.brute_force_optimum(graph, SYSTEM, k)
    if merges:
        reduced = merges[-1].contraction.instance
        whole = Partition.from_stages(reduced, [0] * reduced.op_count)
        lifted = whole
        for merge in reversed(merges):
            lifted = merge.contraction.lift(lifted)
        assert bottleneck(reduced, whole) == bottleneck(instance, lifted)


def test_pairs_are_disjoint() -> None:
    """An op that others move to stays where it is, and only one moves there."""
    instance = Instance.build(random_graph(1, 60, largest_cost=9), SYSTEM, 4)
    leader_of = mergeable_ops(instance).tolist()
    leaders = [leader for v, leader in enumerate(leader_of) if leader != v]
    assert leaders
    assert len(set(leaders)) == len(leaders)
    assert all(leader_of[leader] == leader for leader in leaders)


@settings(max_examples=100)
@given(graphs(min_ops=2, max_ops=7), st.data())
def test_any_partition_carries_over_none_the_worse(graph: CostGraph, data: st.DataObject) -> None:
    """The smaller op of each pair moves to the other, and no stage becomes the slowest for it."""
    instance = Instance.build(graph, SYSTEM, 3)
    cuts = sorted(data.draw(st.lists(st.integers(0, graph.op_count), min_size=2, max_size=2)))
    stage = np.searchsorted(cuts, np.arange(graph.op_count), side="right")
    labels = np.empty(graph.op_count, dtype=np.int32)
    labels[instance.order] = stage
    partition = Partition.from_stages(instance, labels)
    worst = bottleneck(instance, partition)
    for merges in reduce_instance(instance):
        partition = merges.carry(partition)
        assert bottleneck(merges.contraction.instance, partition) <= worst


def test_a_chain_of_cheap_ops_becomes_one() -> None:
    """Every link costs more than the ops beside it: nothing should ever be cut."""
    instance = Instance.build(chain([1] * 9, [5] * 8), SYSTEM, 3)
    assert reduce_instance(instance)[-1].contraction.instance.op_count == 1


def test_both_rules() -> None:
    """A cheap op goes down to its only reader, and a cheap reader up to its only producer."""
    ops = [Op("a", 10), Op("u", 1), Op("v", 10), Op("w", 2)]
    tensors = [
        Tensor("t", "a", ("u",), transfer=3),
        Tensor("s", "u", ("v",), transfer=4),
        Tensor("r", "v", ("w",), transfer=2),
    ]
    graph = CostGraph.build(name="both", time_unit="1", ops=ops, tensors=tensors)
    reduced = reduce_instance(Instance.build(graph, SYSTEM, 2))[-1].contraction.instance
    assert reduced.members is not None
    assert tuple(reduced.members) == (("a",), ("u", "v", "w"))


def test_nothing_is_merged_where_memory_matters() -> None:
    """An op that moves takes its parameters along."""
    graph = chain([1] * 5, [5] * 4, time_unit="us")
    assert len(reduce_instance(Instance.build(graph, System("s", 1, 1, 10**9, 10**9), 2))) > 0
    heavy = CostGraph.build(
        name="heavy",
        time_unit="us",
        ops=[Op(f"op{i}", 1, param_bytes=100) for i in range(5)],
        tensors=[Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), transfer=5) for i in range(4)],
    )
    assert reduce_instance(Instance.build(heavy, System("s", 1, 1, 10**9, 10), 2)) == []
