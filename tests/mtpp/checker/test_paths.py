"""What leads where in merged graphs, against networkx."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from flow_proofs import apart_from, edges_of

from mtpp.checker import paths as verify_paths
from mtpp.checker.merged import MergedGraph
from mtpp.checker.paths import Paths


def random_merged(seed: int, size: int) -> MergedGraph:
    """Make a graph of groups whose numbers are no topological order, with weights of up to 80 bits."""
    pick = random.Random(seed)
    rank = pick.sample(range(size), size)
    tensors = []
    for u in range(size):
        later = [v for v in range(size) if rank[v] > rank[u]]
        for _ in range(pick.randint(0, 2)):
            readers = pick.sample(later, min(len(later), pick.randint(1, 3)))
            if readers:
                tensors.append((pick.randint(0, 9), u, tuple(sorted(readers))))
    work = [pick.choice([0, 1, pick.randint(0, 50), pick.randint(0, 2**80)]) for _ in range(size)]
    return MergedGraph(work, [0] * size, tensors, list(range(size)))


@pytest.mark.parametrize("block", [1, 3, 4096])
def test_sums_over_all_that_leads_to_a_group(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group counts once, however many paths there are; in blocks of any size."""
    monkeypatch.setattr(verify_paths, "_BLOCK", block)
    for seed in range(40):
        graph = random_merged(seed, 12)
        edges = edges_of(graph)
        before, after = Paths(graph).sums(graph.work)
        for v in range(12):
            assert before[v] == graph.work[v] + sum(graph.work[u] for u in nx.ancestors(edges, v))
            assert after[v] == graph.work[v] + sum(graph.work[u] for u in nx.descendants(edges, v))


def test_order_is_topological_or_none() -> None:
    """Groups that wait for each other have no order."""
    for seed in range(20):
        graph = random_merged(seed, 12)
        order = Paths(graph).order
        assert order is not None
        place = {group: i for i, group in enumerate(order)}
        assert all(place[u] < place[v] for u, v in edges_of(graph).edges)
    assert Paths(MergedGraph([1, 1], [0, 0], [(1, 0, (1,)), (1, 1, (0,))], [0, 1])).order is None


def test_groups_are_parted_by_what_lies_between() -> None:
    """Exactly those groups are parted that a path joins and whose paths weigh more than a stage may."""
    found = {True: 0, False: 0}
    for seed in range(60):
        graph = random_merged(seed, 10)
        paths, edges = Paths(graph), edges_of(graph)
        most = random.Random(seed).choice([3, 60, 2**78])
        for here in range(10):
            apart = set(apart_from(edges, graph.work, here, most))
            assert paths.parted(here, sorted(apart), graph.work, most) == apart
            for other in range(10):
                alone = paths.parted(here, [other], graph.work, most)
                assert alone == ({other} if other in apart else other)
                found[other in apart] += 1
    assert min(found.values()) > 100


def test_a_long_path_needs_no_recursion() -> None:
    """Paths of 20,000 groups are followed with stacks, and their sums in linear time."""
    count = 20_000
    graph = MergedGraph([1] * count, [0] * count, [(1, v, (v + 1,)) for v in range(count - 1)], list(range(count)))
    paths = Paths(graph)
    assert paths.sums(graph.work)[0] == list(range(1, count + 1))
    assert paths.parted(0, [count - 1], graph.work, count - 1) == {count - 1}
    assert paths.parted(0, [count - 1], graph.work, count) == count - 1
