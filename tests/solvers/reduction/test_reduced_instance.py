"""A reduced instance: the way there, the way back, and the record."""

from __future__ import annotations

from graph_strategies import NO_MEMORY, chain, merging_graph, partitions

from mtpp.inference.contraction import contract
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.machine.machine import Machine
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance


def test_without_merges_it_is_the_instance_itself() -> None:
    """Nothing is carried anywhere, and the record is empty."""
    instance = Instance.build(chain([9, 9, 9], [1, 1]), Machine.uniform(2, NO_MEMORY))
    reduced = reduce_instance(instance)
    assert reduced.rounds == ()
    assert reduced.instance is reduced.original is instance
    assert reduced.record() == []
    for partition in partitions(chain([9, 9, 9], [1, 1]), instance):
        assert reduced.carry(partition) is partition
        assert reduced.lift(partition) is partition


def test_there_and_back_over_all_rounds() -> None:
    """A partition that is carried over is none worse, and costs the same when it is lifted."""
    several = 0
    for seed in range(30):
        graph = merging_graph(seed, 7)
        instance = Instance.build(graph, Machine.uniform(3, NO_MEMORY))
        reduced = reduce_instance(instance)
        several += len(reduced.rounds) > 1
        for partition in partitions(graph, instance):
            carried = reduced.carry(partition)
            assert bottleneck(reduced.instance, carried) <= bottleneck(instance, partition)
            assert bottleneck(instance, reduced.lift(carried)) == bottleneck(reduced.instance, carried)
    assert several > 3


def test_the_record_names_ops_of_the_graph() -> None:
    """After a contraction every op goes by the first of the graph's ops that it stands for."""
    instance = Instance.build(chain([9, 9, 0, 9], [1, 1, 5]), Machine.uniform(2, NO_MEMORY))
    inner = contract(instance, [[0, 1]]).instance
    assert inner.op_count == 3
    assert reduce_instance(inner).record() == [["pull-down", 2, 3]]
    assert ReducedInstance(inner).record() == []
