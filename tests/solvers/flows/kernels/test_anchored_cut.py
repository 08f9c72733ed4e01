"""Minimum cuts around an op against all sets that hold it."""

from __future__ import annotations

import itertools

import numpy as np
import oracles
import pytest
from graph_strategies import LINK, random_graph

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.kernels.largest_node_bound import largest_node_bound
from mtpp.solvers.bounds.kernels.largest_parts import Parts, largest_parts
from mtpp.solvers.flows.anchored_network import anchored_network
from mtpp.solvers.flows.kernels.anchored_cut import AFTER, APART, BEFORE, cut_around, cut_scratch, relate


class AllSets:
    """Every set of ops of a small graph, and what leads where; ops by number in the file."""

    def __init__(self, graph: CostGraph) -> None:
        self.ops = range(graph.op_count)
        self.before = oracles.predecessors(graph)
        self.ancestors: list[set[int]] = [set() for _ in self.ops]
        for v in oracles.own_order(graph):
            self.ancestors[v] = self.before[v].union(*(self.ancestors[u] for u in self.before[v]))
        self.sets = [frozenset(v for v in self.ops if bits >> v & 1) for bits in range(1, 1 << graph.op_count)]

    def between(self, u: int, v: int) -> set[int]:
        """Return the ops on all paths between two ops, both included; nothing if there is no path."""
        if v in self.ancestors[u]:
            u, v = v, u
        if u not in self.ancestors[v]:
            return set()
        return {u, v} | {x for x in self.ancestors[v] if u in self.ancestors[x]}

    def around(self, v: int) -> list[frozenset[int]]:
        """Return the sets that hold v and, with any op that it is connected with, all that is between."""
        return [s for s in self.sets if v in s and all(self.between(u, v) <= s for u in s)]


def cut_of(graph: CostGraph, inside: frozenset[int]) -> int:
    """Return the transfers of the tensors that a set cuts."""
    transfer = oracles.to_ticks(graph, LINK, 2).transfer
    touching = [{u, *readers} for u, readers in oracles.tensors_of(graph)]
    return sum(transfer[t] for t, ops in enumerate(touching) if ops & inside and ops - inside)


@pytest.mark.parametrize("seed", range(25))
def test_relations_are_those_of_paths(seed: int) -> None:
    """What leads to an op or follows from it, and what is too heavy together with what is between."""
    graph = random_graph(seed, 8, consumers_per_tensor=2.0)
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    sets, order = AllSets(graph), instance.order.tolist()
    network, _ = anchored_network(instance)
    scratch = cut_scratch(network, 8)
    weight = instance.work[instance.order]
    for place, v in enumerate(order):
        for limit in (-1, 0, 60, 200):
            relate(network, weight, place, limit, scratch)
            for u, relation in zip(order, scratch.relation.tolist(), strict=True):
                assert bool(relation & BEFORE) == (u in sets.ancestors[v])
                assert bool(relation & AFTER) == (v in sets.ancestors[u])
                together = sum(int(instance.work[x]) for x in sets.between(u, v))
                assert bool(relation & APART) == (u != v and limit >= 0 and together > limit)


@pytest.mark.parametrize("seed", range(25))
def test_a_cut_is_the_least_over_all_sets(seed: int) -> None:
    """For any multipliers and values, with ops that are apart and without; the set that it tells has that sum."""
    graph = random_graph(seed, 7, consumers_per_tensor=(1.0, 2.0, 4.0)[seed % 3])
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    sets, order = AllSets(graph), instance.order.tolist()
    network, _ = anchored_network(instance)
    scratch = cut_scratch(network, 7)
    weight = instance.work[instance.order]
    random = np.random.default_rng(seed)
    for place, v in enumerate(order):
        p, q, limit = int(random.integers(1, 5)), int(random.integers(0, 5)), int(random.choice([-1, 150]))
        value = random.integers(0, 100, 7)
        relate(network, weight, place, limit, scratch)
        apart = {u for u, relation in zip(order, scratch.relation.tolist(), strict=True) if relation & APART}
        worth = {u: p * int(weight[i]) - q * int(value[i]) for i, u in enumerate(order)}
        sums = {s: sum(worth[u] for u in s) + p * cut_of(graph, s) for s in sets.around(v) if not s & apart}
        least = cut_around(network, weight, value, place, p, q, 2**62, scratch)
        assert least == min(sums.values())
        told = frozenset(u for u, level in zip(order, scratch.flow.level.tolist(), strict=False) if level >= 0)
        assert sums[told] == least
        enough = least - int(random.integers(1, 50))
        assert enough <= cut_around(network, weight, value, place, p, q, enough, scratch) <= least


@pytest.mark.parametrize("seed", range(10))
def test_the_dearest_op_is_found(seed: int) -> None:
    """The largest of all least costs, unless more is known already."""
    graph = random_graph(seed, 7, consumers_per_tensor=2.0)
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    sets = AllSets(graph)
    network, _ = anchored_network(instance)
    scratch = cut_scratch(network, 7)
    weight = instance.work[instance.order]
    costs = [sum(int(instance.work[u]) for u in s) + cut_of(graph, s) for s in sets.sets]
    least = [min(c for s, c in zip(sets.sets, costs, strict=True) if s in sets.around(v)) for v in sets.ops]
    alone = np.array([costs[sets.sets.index(frozenset([v]))] for v in instance.order.tolist()])
    ops = np.arange(7)
    value, place = largest_node_bound(network, weight, alone, ops, 0, 2**62, scratch)
    assert value == max(least)
    assert least[instance.order[place]] == value
    assert largest_node_bound(network, weight, alone, ops, value, 2**62, scratch) == (value, -1)


@pytest.mark.parametrize("seed", range(15))
def test_parts_hold_every_set_within_the_limit(seed: int) -> None:
    """No convex set around an op within the limit has more value than its part; the multipliers say why."""
    graph = random_graph(seed, 7, consumers_per_tensor=2.0)
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    sets, order = AllSets(graph), instance.order.tolist()
    network, _ = anchored_network(instance)
    scratch = cut_scratch(network, 7)
    weight = instance.work[instance.order]
    most_cost = int(weight.sum() + 2 * instance.transfer.sum())
    parts = Parts(*(np.zeros(7, dtype=np.int64) for _ in Parts._fields))
    convex = [s for s in sets.sets if all(sets.between(u, v) <= s for u, v in itertools.combinations(s, 2))]
    for limit in (50, 150, 300, 500):
        largest_parts(network, weight, weight, most_cost, limit, np.arange(7), parts, scratch)
        for place, v in enumerate(order):
            held = [
                work
                for s in convex
                if v in s and (work := sum(int(instance.work[u]) for u in s)) + cut_of(graph, s) <= limit
            ]
            largest = int(parts.largest[place])
            assert max(held, default=-1) <= largest
            if parts.q[place] > 0:
                p, q, least = int(parts.p[place]), int(parts.q[place]), int(parts.least[place])
                assert largest == (p * limit - least) // q
