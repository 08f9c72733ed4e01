"""Clustering kernels against plain-Python twins."""

from __future__ import annotations

import numpy as np
import pytest
from graph_strategies import LINK, random_graph

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.orders.kernels.edge_weights import reversed_edges, weighted_edges
from mtpp.solvers.reduction.coarsening import singletons
from mtpp.solvers.reduction.kernels.clustering import (
    ClusterLimits,
    Clusters,
    Edges,
    contract_edges,
    contract_neighbours,
    number_clusters,
)

ENOUGH_STEPS = 10_000
NO_LIMITS = ClusterLimits(size=2**62, work=2**62, param_bytes=2**62, goal=1, steps=ENOUGH_STEPS)


def _instance(seed: int, ops: int) -> Instance:
    return Instance.build(random_graph(seed, ops, consumers_per_tensor=2), Machine.uniform(3, LINK))


def _edges(instance: Instance) -> tuple[np.ndarray, ...]:
    return weighted_edges(
        instance.op_count, instance.pin_offsets.copy(), instance.pins.copy(), instance.transfer.copy()
    )


def _groups(clusters: Clusters) -> list[int]:
    group_of = np.empty(len(clusters.root), dtype=np.int32)
    number_clusters(clusters, group_of)
    return group_of.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_edges_weigh_what_flows_along_them(seed: int) -> None:
    """Each pair of producer and reader is one edge; every tensor spreads its transfer evenly over its readers."""
    instance = _instance(seed, 20)
    offsets, tails, heads, weight = _edges(instance)
    due: dict[tuple[int, int], float] = {}
    for t in range(instance.tensor_count):
        producer, *readers = instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]].tolist()
        for reader in readers:
            edge = producer, reader
            due[edge] = due.get(edge, 0.0) + int(instance.transfer[t]) / len(readers)
    assert dict(zip(zip(tails.tolist(), heads.tolist(), strict=True), weight.tolist(), strict=True)) == pytest.approx(
        due
    )
    assert tails.tolist() == np.repeat(np.arange(20), np.diff(offsets)).tolist()
    back_offsets, back_ends = reversed_edges(20, tails, heads)
    for v in range(20):
        assert sorted(back_ends[back_offsets[v] : back_offsets[v + 1]]) == sorted(u for u, head in due if head == v)


class _PlainClusters:
    """The greedy rule as it is stated: contract an edge if that makes no cycle, found by looking at all paths."""

    def __init__(self, ops: int, edges: list[tuple[int, int]]) -> None:
        self.edges = edges
        self.cluster = list(range(ops))

    def successors(self, cluster: int) -> set[int]:
        return {self.cluster[v] for u, v in self.edges if self.cluster[u] == cluster} - {cluster}

    def has_another_path(self, tail: int, head: int) -> bool:
        reached = self.successors(tail) - {head}
        new = set(reached)
        while new:
            new = set().union(*(self.successors(c) for c in new)) - reached
            reached |= new
        return head in reached

    def contract(self, edge: tuple[int, int], most: int) -> None:
        tail, head = self.cluster[edge[0]], self.cluster[edge[1]]
        size = sum(c in (tail, head) for c in self.cluster)
        if tail != head and size <= most and not self.has_another_path(tail, head):
            self.cluster = [tail if c == head else c for c in self.cluster]


@pytest.mark.parametrize("seed", range(30))
def test_contraction_equals_its_plain_twin(seed: int) -> None:
    """With enough steps the kernel contracts exactly the edges that make no cycle and stay within the size."""
    instance = _instance(seed, 24)
    offsets, tails, heads, _ = _edges(instance)
    ranking = np.random.default_rng(seed).permutation(len(tails))
    most = (2, 4, 24)[seed % 3]
    clusters = singletons(instance)
    backward = Edges(*reversed_edges(24, tails, heads))
    limits = NO_LIMITS._replace(size=most)
    left = contract_edges(clusters, tails[ranking], heads[ranking], Edges(offsets, heads), backward, limits)
    twin = _PlainClusters(24, list(zip(tails.tolist(), heads.tolist(), strict=True)))
    for e in ranking.tolist():
        twin.contract((int(tails[e]), int(heads[e])), most)
    groups = _groups(clusters)
    assert left == len(set(twin.cluster)) == max(groups) + 1
    assert len(set(zip(groups, twin.cluster, strict=True))) == left
    assert all(groups[u] <= groups[v] for u, v in twin.edges)


@pytest.mark.parametrize("steps", [0, 1, 3, 8])
def test_a_search_that_gives_up_never_makes_a_cycle(steps: int) -> None:
    """Whatever the steps, every edge goes forward among the numbered clusters."""
    for seed in range(20):
        instance = _instance(seed, 40)
        offsets, tails, heads, _ = _edges(instance)
        clusters = singletons(instance)
        backward = Edges(*reversed_edges(40, tails, heads))
        contract_edges(clusters, tails, heads, Edges(offsets, heads), backward, NO_LIMITS._replace(steps=steps))
        groups = np.array(_groups(clusters))
        assert (groups[tails] <= groups[heads]).all()


def test_neighbours_merge_where_no_edge_joins_them() -> None:
    """Five ops without tensors make three clusters along the order, two if that few are wanted and limits permit."""
    ops = [Op(name, work) for name, work in zip("abcde", (1, 1, 5, 1, 1), strict=True)]
    graph = CostGraph.build(name="loose", time_unit="1", ops=ops, tensors=[])
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    clusters = singletons(instance)
    assert contract_neighbours(clusters, 5, NO_LIMITS) == 3
    assert _groups(clusters) == [0, 0, 1, 1, 2]
    clusters = singletons(instance)
    assert contract_neighbours(clusters, 5, NO_LIMITS._replace(work=5)) == 3
    assert _groups(clusters) == [0, 0, 1, 2, 2]
    clusters = singletons(instance)
    assert contract_neighbours(clusters, 5, NO_LIMITS._replace(goal=4)) == 4
    assert _groups(clusters) == [0, 0, 1, 2, 3]


def test_nothing_is_moved_where_labels_leave_no_room() -> None:
    """Contracting a → c in a, b, x, c moves b behind c, or x before a; without room for either the edge is left."""
    graph = CostGraph.build(
        name="crossing",
        time_unit="1",
        ops=[Op(name, 1) for name in "abxc"],
        tensors=[Tensor(u + v, u, (v,), transfer=1) for u, v in ("ab", "ac", "xc")],
    )
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    offsets, tails, heads, _ = _edges(instance)
    forward, backward = Edges(offsets, heads), Edges(*reversed_edges(4, tails, heads))
    for room, groups in ((2, [1, 2, 0, 1]), (1, [0, 1, 2, 3])):
        clusters = singletons(instance)
        clusters.label[[4, 0, 1, 2, 3, 5]] = room * np.arange(6)
        contract_edges(clusters, tails[1:2].copy(), heads[1:2].copy(), forward, backward, NO_LIMITS)
        assert _groups(clusters) == groups
