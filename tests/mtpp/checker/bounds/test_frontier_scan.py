"""Scans over a frontier of tensors: the most that labellings are worth, and the labels of the best of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import networkx as nx
import pytest
from flow_proofs import claim_of, edges_of, random_problem
from labelling_oracle import Labellings, Row
from seeds import sampled

from mtpp.checker.bounds import frontier_scan
from mtpp.checker.bounds.frontier_scan import Frontier, Scan, TooWide
from mtpp.checker.merged import MergedGraph


def some_graph(pick: random.Random, most: int) -> tuple[MergedGraph, list[int], list[int], set[int]]:
    """Return a small graph, its weights, one of its orders, and tensors to forget."""
    graph, system, k, together = random_problem(pick.randrange(10**9), op_count=pick.randint(2, most))
    merged = claim_of(graph, system, k, together, 0, {}).merged()
    assert not isinstance(merged, str)
    edges = edges_of(merged)
    draws = {v: pick.random() for v in edges.nodes}
    order = list(nx.lexicographical_topological_sort(edges, key=draws.__getitem__))
    forgotten = {t for t in range(len(merged.tensors)) if pick.random() < 0.15}
    weight = [pick.choice([work, 0, pick.randint(0, 9)]) for work in merged.work]
    return merged, weight, order, forgotten


def some_worths(pick: random.Random, count: int) -> list[Row]:
    """Return worths of labels, of which some are not allowed."""
    largest = pick.choice([1, 7, 10**6])
    rows = []
    for _ in range(count):
        row = [pick.randint(-largest, largest) if pick.random() < 0.8 else 0 for _ in range(3)]
        barred = set(pick.sample(range(3), pick.choice([0, 0, 0, 1, 2])))
        rows.append(tuple(None if label in barred else worth for label, worth in enumerate(row)))
    return rows


@pytest.mark.parametrize("seeds", [range(500), pytest.param(sampled(range(500, 10_500), 3000), marks=pytest.mark.slow)])
def test_scans_find_what_trying_all_finds(seeds: Sequence[int]) -> None:
    """Of any graph, order, room, slope and floor; what is below the floor is not told."""
    found = below = 0
    for seed in seeds:
        pick = random.Random(seed)
        graph, weight, order, forgotten = some_graph(pick, 8 if seed % 10 == 0 else 6)
        worths = some_worths(pick, len(weight))
        ways = Labellings.of(graph, weight, forgotten)
        room = pick.choice([0, *ways.cost.tolist(), int(ways.cost.max()) + 1])
        ways = ways.allowed(worths, room)
        worth = sorted(ways.worth(worths).tolist())
        best = worth[-1] if worth else 0
        floor = pick.choice([best, best, best + 1, *worth, -(10**9)])
        slope = [pick.choice([0, 1, 50, 10**9]), pick.choice([0, 3, 20])]
        frontier = Frontier(graph, weight, order, forgotten)
        scan = Scan(frontier, [worths[v] for v in order], room, slope, floor)
        most = scan.most()
        assert most == (best if worth and best >= floor else None), seed
        found += most is not None
        below += most is None
        least = pick.choice([floor, floor + 1, max(floor, best), *(each for each in worth if each >= floor)])
        labels = scan.labels(least)
        known = {v: {label for label in range(3) if bits >> label & 1} for v, bits in zip(order, labels, strict=True)}
        expected = ways.labels_worth(worths, least) if worth else [set() for _ in order]
        assert [known[v] for v in range(len(order))] == expected, seed
    assert min(found, below) > len(seeds) // 10


@pytest.mark.parametrize("seeds", [range(300), pytest.param(sampled(range(300, 5000), 1500), marks=pytest.mark.slow)])
def test_convex_sets_need_fewer_labellings(seeds: Sequence[int]) -> None:
    """If nothing but the inside has a worth, ops are after it only behind some of its ops."""
    fewer = 0
    for seed in seeds:
        pick = random.Random(seed)
        graph, weight, order, forgotten = some_graph(pick, 8 if seed % 10 == 0 else 6)
        worths: list[Row] = [(0, pick.choice([0, 1, pick.randint(0, 1000)]), 0) for _ in weight]
        ways = Labellings.of(graph, weight, forgotten)
        room = pick.choice(ways.cost.tolist())
        best = max(ways.allowed(worths, room).worth(worths).tolist())
        frontier = Frontier(graph, weight, order, forgotten)
        in_order = [worths[v] for v in order]
        floor = pick.choice([0, best, best + 1])
        slope = [pick.choice([0, 1, 50]), pick.choice([0, 3])]
        scans = [Scan(frontier, in_order, room, slope, floor, led=led) for led in (True, False)]
        assert [scan.most() for scan in scans] == [best if best >= floor else None] * 2, seed
        assert scans[0].size <= scans[1].size
        fewer += scans[0].size < scans[1].size
    assert fewer > len(seeds) // 3


def test_wide_scans_are_left() -> None:
    """No more memory is taken than for so many states and entries."""
    ops = 8
    graph = MergedGraph([1] * ops, [0] * ops, [(1, v, (ops - 1,)) for v in range(ops - 1)], list(range(ops)))
    frontier = Frontier(graph, graph.work, range(ops), set())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier_scan, "MOST_STATES", 100)
        with pytest.raises(TooWide, match="more than 100 states"):
            Scan(frontier, [(0, 1, 0)] * ops, 99, [0, 0], 0)
    scan = Scan(frontier, [(0, 1, 0)] * ops, 5, [0, 0], 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier_scan, "MOST_ENTRIES", 100)
        with pytest.raises(TooWide, match="more than 100 entries"):
            scan.most()
