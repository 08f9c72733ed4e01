"""Stages that ops can be in, against all partitions of small graphs."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import oracles
from graph_strategies import LINK, random_graph
from random_devices import NEVER, random_case

from mtpp.array_types import BoolArray
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.device_terms import DeviceTerms
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE
from mtpp.solvers.bounds.position_weights.windows import Precedence, Windows


def drawn(seed: int) -> tuple[CostGraph, Instance, nx.DiGraph, random.Random]:
    """Draw a graph of up to 6 ops, with its edges."""
    pick = random.Random(seed)
    graph = random_graph(
        seed, pick.randint(1, 6), largest_cost=pick.choice((0, 3, 30)), consumers_per_tensor=pick.choice((0.8, 2.0))
    )
    instance = Instance.build(graph, Machine.uniform(pick.randint(2, 4), LINK))
    edges = nx.DiGraph()
    edges.add_nodes_from(range(instance.op_count))
    for begin, end in itertools.pairwise(instance.pin_offsets.tolist()):
        maker, *readers = instance.pins[begin:end].tolist()
        edges.add_edges_from((maker, v) for v in readers if v != maker)
    return graph, instance, edges, pick


def placements(windows: Windows, k: int, edges: nx.DiGraph) -> set[tuple[int, ...]]:
    """Return all ways to put each op into a stage that its window has, stages never falling along an edge."""
    stages = [
        [j for j in range(1, k + 1) if first <= j <= last and not windows.without[j, v]]
        for v, (first, last) in enumerate(zip(windows.first.tolist(), windows.last.tolist(), strict=True))
    ]
    return {way for way in itertools.product(*stages) if all(way[u] <= way[v] for u, v in edges.edges)}


def test_work_of_what_leads_to_and_from_an_op() -> None:
    """Ahead and behind are the works of ancestors and descendants, the op's own with both."""
    for seed in range(100):
        _, instance, edges, _ = drawn(seed)
        precedence, work = Precedence.of(instance, [instance.work]), instance.work.tolist()
        for v in edges.nodes:
            assert precedence.ahead[0, v] == work[v] + sum(work[u] for u in nx.ancestors(edges, v))
            assert precedence.behind[0, v] == work[v] + sum(work[u] for u in nx.descendants(edges, v))


def test_every_partition_within_the_limit_keeps_to_the_windows() -> None:
    """Also at limits of 0, and where windows are empty."""
    kept = empty = 0
    for seed in range(60):
        graph, instance, _, pick = drawn(seed)
        optimum = oracles.brute_force_optimum(graph, LINK, instance.k)
        for limit in {0, max(0, optimum - 1), optimum, optimum + pick.randint(0, 20)}:
            windows = Windows.within(Precedence.of(instance, [instance.work]), [[limit] * instance.k])
            empty += windows.empty
            for stages in itertools.product(range(instance.k), repeat=instance.op_count):
                if _valid(instance, stages) and oracles.bottleneck(graph, LINK, stages, instance.k) <= limit:
                    assert all(windows.first[v] <= j + 1 <= windows.last[v] for v, j in enumerate(stages))
                    assert all(windows.allowed(j + 1)[v] >> INSIDE & 1 for v, j in enumerate(stages))
                    kept += 1
    assert kept > 400
    assert empty > 8


def _valid(instance: Instance, stages: tuple[int, ...]) -> bool:
    for begin, end in itertools.pairwise(instance.pin_offsets.tolist()):
        maker, *readers = instance.pins[begin:end].tolist()
        if any(stages[v] < stages[maker] for v in readers):
            return False
    return True


def test_removed_labels() -> None:
    """What removals and what follows from them leave are the placements that have none of the labels removed."""
    changed = 0
    for seed in range(200):
        _, instance, edges, pick = drawn(seed)
        n, k = instance.op_count, instance.k
        windows = Windows.within(Precedence.of(instance, [np.zeros(n, dtype=np.int64)]), [[1] * k])
        left = placements(windows, k, edges)
        for _ in range(pick.randint(1, 4)):
            j = pick.randint(1, k)
            gone: BoolArray = np.array([[pick.random() < 0.15 for _ in range(3)] for _ in range(n)])
            gone[:, BEFORE] &= j > 1
            gone[:, AFTER] &= j < k
            windows.remove(j, gone)
            label_at = {way: [BEFORE if s < j else INSIDE if s == j else AFTER for s in way] for way in left}
            left = {way for way in left if not any(gone[v, label] for v, label in enumerate(label_at[way]))}
        windows.close()
        if windows.empty:
            assert not left
            continue
        changed += int((windows.last - windows.first).sum()) < n * (k - 1)
        assert placements(windows, k, edges) == left
        assert all(windows.first[u] <= windows.first[v] and windows.last[u] <= windows.last[v] for u, v in edges.edges)
        ops = range(n)
        assert not windows.without[windows.first, ops].any()
        assert not windows.without[windows.last, ops].any()
    assert changed > 50


def test_labels_at_a_stage() -> None:
    """An op may be before a stage that its window begins ahead of, after one that it ends behind, inside in between."""
    for seed in range(60):
        _, instance, _, pick = drawn(seed)
        n, k = instance.op_count, instance.k
        windows = Windows.within(Precedence.of(instance, [np.zeros(n, dtype=np.int64)]), [[1] * k])
        windows.first[:] = [pick.randint(1, k) for _ in range(n)]
        windows.last[:] = [pick.randint(int(first), k) for first in windows.first]
        windows.without[1:] = [[pick.random() < 0.2 for _ in range(n)] for _ in range(k)]
        for j in range(1, k + 1):
            for v, labels in enumerate(windows.allowed(j).tolist()):
                window = range(int(windows.first[v]), int(windows.last[v]) + 1)
                assert labels >> BEFORE & 1 == any(stage < j for stage in window)
                assert labels >> AFTER & 1 == any(stage > j for stage in window)
                assert labels >> INSIDE & 1 == (j in window and not windows.without[j, v])


def test_devices_that_differ() -> None:
    """Every placement within the limit keeps to the windows, by the work of each class of devices."""
    kept = narrow = 0
    for seed in range(150):
        case = random_case(seed)
        instance = case.instance()
        if instance.uniform or case.ops > 5:
            continue
        ways = [way for way in itertools.product(range(instance.k), repeat=case.ops) if _valid(instance, way)]
        costs = [
            max(case.cost([v for v in range(case.ops) if way[v] == j], j) for j in range(instance.k)) for way in ways
        ]
        terms = DeviceTerms.of(instance, min(costs))
        precedence = Precedence.of(instance, terms.measures)
        for limit in {0, min(costs), min(costs) + random.Random(seed).randint(0, 20)}:
            windows = Windows.within(precedence, terms.rooms(limit))
            narrow += int((windows.last - windows.first).sum()) < case.ops * (instance.k - 1)
            for way, cost in zip(ways, costs, strict=True):
                if cost <= limit and cost < NEVER:
                    assert all(windows.first[v] <= j + 1 <= windows.last[v] for v, j in enumerate(way))
                    kept += 1
    assert kept > 200
    assert narrow > 60
