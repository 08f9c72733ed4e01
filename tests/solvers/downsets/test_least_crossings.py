"""What has to cross between stages: never more than what crosses in any partition within the limit."""

from __future__ import annotations

import random

import oracles
from graph_strategies import LINK, chain, random_graph

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import crossing_network, least_crossings


def found(graph: CostGraph, k: int, limit: int) -> list[int] | None:
    """Return what is known to cross from each of *k* stages to later ones."""
    arrays = downset_arrays(Instance.build(graph, Machine.uniform(k, LINK)))
    return least_crossings(arrays, crossing_network(arrays), k, limit)


def made_for_later(graph: CostGraph, stages: tuple[int, ...], k: int) -> list[int]:
    """Return the transfers of the tensors that each stage but the last makes for later ones."""
    transfer = oracles.to_ticks(graph, LINK).transfer
    sums = [0] * k
    for t, (producer, consumers) in enumerate(oracles.tensors_of(graph)):
        if any(stages[v] > stages[producer] for v in consumers):
            sums[stages[producer]] += transfer[t]
    return sums[:-1]


def test_no_partition_crosses_less() -> None:
    """All partitions of small graphs within limits around the optimum; "none" only where there is none."""
    raised = refused = 0
    for seed in range(500):
        pick = random.Random(seed)
        graph = random_graph(seed, pick.randint(2, 7), largest_cost=pick.choice([3, 20]), consumers_per_tensor=2.0)
        k = pick.randint(2, 4)
        costs = {
            stages: oracles.bottleneck(graph, LINK, stages, k) for stages in oracles.monotone_assignments(graph, k)
        }
        optimum = min(costs.values())
        for limit in {max(0, optimum - 1), optimum, optimum + 2, optimum * 2 // 3}:
            least = found(graph, k, limit)
            if least is None:
                assert limit < optimum
                refused += 1
                continue
            assert len(least) == k - 1
            raised += any(least)
            for stages, cost in costs.items():
                if cost <= limit:
                    crossing = made_for_later(graph, stages, k)
                    assert all(a <= b for a, b in zip(least, crossing, strict=True))
    assert raised > 20
    assert refused > 50


def test_a_chain_is_cut_where_it_has_to_be() -> None:
    """Ten equal ops in two stages of at most six: the link between is one of the three in the middle."""
    links = [9, 9, 9, 2, 4, 3, 9, 9, 9]
    graph = chain([10] * 10, links)
    assert found(graph, 2, 65) == [2]
    assert found(graph, 2, 54) == [4]
    assert found(graph, 2, 53) is None
