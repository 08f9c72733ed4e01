"""Coarsening: every level is acyclic, keeps all stage costs, and its clusters stay within their share."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from graph_strategies import LINK, random_graph

from mtpp.datasets.layered import layered_network
from mtpp.datasets.regal_style import regal_style
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.working_memory import least_peaks
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.reduction.coarsening import coarsen, unite_parallel_tensors

REFERENCE = load_device()
GRAPHS = {
    "layered": layered_network(600, 1),
    "regal-ba": regal_style("ba", 300, 2),
    "regal-er": regal_style("er", 120, 2),
    "shuffled": random_graph(3, 150, consumers_per_tensor=2),
    "dense": random_graph(4, 60, consumers_per_tensor=12),
    "loose": random_graph(5, 200, consumers_per_tensor=0.2),
}


def _star(readers: int) -> CostGraph:
    """One op whose tensor everybody reads: no edge between the readers ever helps."""
    return CostGraph.build(
        name="star",
        time_unit="1",
        ops=[Op(f"op{v}", 1) for v in range(readers + 1)],
        tensors=[Tensor("t", "op0", tuple(f"op{v}" for v in range(1, readers + 1)), transfer=1)],
    )


def _random_partition(instance: Instance, seed: int) -> Partition:
    """Draw a stage for every op that its predecessors permit, most often the least."""
    pick = random.Random(seed)
    stage = [0] * instance.op_count
    readers: list[list[int]] = [[] for _ in stage]
    for u, v in zip(*(ends.tolist() for ends in instance.edges), strict=True):
        readers[u].append(v)
    for v in instance.order.tolist():
        if pick.random() < 0.05:
            stage[v] = min(instance.k - 1, stage[v] + 1)
        for reader in readers[v]:
            stage[reader] = max(stage[reader], stage[v])
    return Partition.from_stages(instance, stage)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_level_is_acyclic_and_smaller(name: str) -> None:
    """The ops of each level are numbered so that every edge goes forward, and there are fewer than before."""
    instance = Instance.build(GRAPHS[name], Machine.uniform(4, REFERENCE))
    levels = coarsen(instance, 20)
    assert levels
    for level in levels:
        assert level.original is instance
        sources, targets = level.instance.edges
        assert (sources < targets).all()
        assert level.instance.order.tolist() == list(range(level.instance.op_count))
        assert level.instance.op_count < instance.op_count
        assert np.unique(level.group_of).tolist() == list(range(level.instance.op_count))
        instance = level.instance


@pytest.mark.parametrize("name", GRAPHS)
def test_lifting_keeps_every_stage_cost(name: str) -> None:
    """Any partition of any level costs the same, stage by stage and part by part, on the ops below."""
    instance = Instance.build(GRAPHS[name], Machine.uniform(5, replace(REFERENCE, activation_reserve_bytes=5)))
    for level in coarsen(instance, 20):
        for seed in range(3):
            partition = _random_partition(level.instance, seed)
            coarse = stage_costs(level.instance, partition)
            fine = stage_costs(level.original, level.lift(partition))
            for part in ("work", "input", "output", "overflow", "cost", "param_bytes", "peak_bytes"):
                assert getattr(coarse, part).tolist() == getattr(fine, part).tolist()


@pytest.mark.parametrize("name", GRAPHS)
def test_clusters_stay_within_their_share(name: str) -> None:
    """No op that stands for several has more than twice its share of the work, nor of the parameters."""
    memory = None if GRAPHS[name].time_unit == "1" else 10**6
    instance = Instance.build(GRAPHS[name], Machine.uniform(4, replace(REFERENCE, fast_memory_bytes=memory)))
    target = 25
    for level in coarsen(instance, target):
        members = np.array([len(names) for names in level.instance.members or ()])
        several = level.instance.work[members > 1]
        assert int(several.max()) <= 2 * int(instance.work.sum()) // target + 1
        if memory is not None:
            heaviest = int(level.instance.param_bytes[members > 1].max())
            assert heaviest <= 2 * int(instance.param_bytes.sum()) // target + 1


@pytest.mark.parametrize("peak", ["reserve", "order"])
def test_no_cluster_is_too_large_for_a_stage(peak: str) -> None:
    """Where each op alone meets the hard limit on a stage's memory, each cluster does, whose peaks are the graph's."""
    graph = layered_network(400, 5)
    needs = Instance.build(graph, Machine.uniform(4, replace(REFERENCE, peak="order")))
    limit = int((needs.param_bytes + least_peaks(needs)).max())
    instance = Instance.build(graph, Machine.uniform(4, replace(REFERENCE, peak=peak, memory_bytes=limit)))
    levels = coarsen(instance, 20)
    assert levels[-1].instance.op_count < 200
    for level in levels:
        assert int((level.instance.param_bytes + least_peaks(level.instance)).max()) <= limit
        sources, targets = level.instance.edges
        assert (sources < targets).all()
        partition = _random_partition(level.instance, 1)
        fine = stage_costs(level.original, level.lift(partition))
        assert stage_costs(level.instance, partition).peak_bytes.tolist() == fine.peak_bytes.tolist()


def test_the_number_asked_for_is_reached() -> None:
    """A network of ops that are small beside their share comes down to the target, halving at every level."""
    levels = coarsen(Instance.build(layered_network(5000, 0), Machine.uniform(4, REFERENCE)), 100)
    sizes = [5000, *(level.instance.op_count for level in levels)]
    assert sizes[-1] <= 130
    assert all(after < 0.8 * before for before, after in pairwise(sizes[:-1]))


def test_ops_that_no_edge_can_merge_still_do() -> None:
    """The readers of one tensor and ops without any tensor merge with their neighbours in the order."""
    star = coarsen(Instance.build(_star(999), Machine.uniform(2, LINK)), 50)[-1].instance
    assert star.op_count <= 60
    assert star.tensor_count == 1
    loose = CostGraph.build(name="loose", time_unit="1", ops=[Op(f"op{v}", 1) for v in range(500)], tensors=[])
    assert coarsen(Instance.build(loose, Machine.uniform(2, LINK)), 50)[-1].instance.op_count <= 60


def test_small_and_heavy_instances_are_left_alone() -> None:
    """There is no level where few enough ops are there already, or each op has its share alone."""
    instance = Instance.build(GRAPHS["layered"], Machine.uniform(4, REFERENCE))
    assert coarsen(instance, 600) == []
    heavy = CostGraph.build(name="heavy", time_unit="1", ops=[Op("a", 1), Op("b", 1), Op("c", 1)], tensors=[])
    assert coarsen(Instance.build(heavy, Machine.uniform(2, LINK)), 2)[0].instance.op_count == 2
    assert coarsen(Instance.build(heavy, Machine.uniform(2, Device("s", 1, 1, Link(1)))), 3) == []


@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_instance_gives_the_same_levels(name: str) -> None:
    """Nothing is left to chance."""
    first, second = (coarsen(Instance.build(GRAPHS[name], Machine.uniform(4, REFERENCE)), 20) for _ in range(2))
    assert [level.group_of.tolist() for level in first] == [level.group_of.tolist() for level in second]


@pytest.mark.parametrize("seed", range(12))
def test_parallel_tensors_become_one(seed: int) -> None:
    """Tensors with one producer and the same readers add up; the first of them keeps its place."""
    graph = random_graph(seed, 6, consumers_per_tensor=1.5)
    copies = [
        Tensor(f"{name}-{i}", "op0", readers, transfer=10**i)
        for i, readers in enumerate((("op5", "op1"), ("op1",), ("op1", "op5"), ("op1",), ("op5", "op2")))
        for name in "xy"
    ]
    graph = CostGraph.build(
        name="copies",
        time_unit="1",
        ops=[Op(name, 1) for name in graph.op_names],
        tensors=random.Random(seed).sample(copies, 9),
    )
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    pins = np.split(instance.pins, instance.pin_offsets[1:-1])
    sets = [(int(touched[0]), frozenset(touched[1:].tolist())) for touched in pins]
    due: Counter[tuple[int, frozenset[int]]] = Counter()
    for key, cost in zip(sets, instance.transfer.tolist(), strict=True):
        due[key] += cost
    united = unite_parallel_tensors(instance)
    found = np.split(united.pins, united.pin_offsets[1:-1])
    assert [(int(touched[0]), frozenset(touched[1:].tolist())) for touched in found] == list(due)
    assert united.transfer.tolist() == list(due.values())
    assert united.tensor_bytes.sum() == instance.tensor_bytes.sum()
