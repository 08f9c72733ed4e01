"""The search for the highest limit that the configuration LP rules out."""

from __future__ import annotations

import random

import pytest
from flow_proofs import claim_of
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.configuration.bound import bound
from mtpp.solvers.bounds.configuration.search import ConfigurationSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.threads import Threads


@pytest.mark.parametrize("seed", range(6))
def test_the_search_comes_to_its_end(seed: int) -> None:
    """A limit that is out of reach of the present families is not tried again before some of them are split."""
    graph = random_graph(seed, 8, largest_cost=300)
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    optimum = brute_force_optimum(graph, LINK, 3)
    result = bound(instance, BoundLimits(int(instance.work.sum()), deadline=Deadline(60.0)))
    assert result.solved
    assert result.lower is not None
    assert 0.6 * optimum < result.lower.value <= optimum


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 60), marks=pytest.mark.slow)])
def test_a_search_goes_on_where_its_time_was_up(seeds: range) -> None:
    """Interrupted at random looks at the clock, put off or not: what it has proven holds, and the end is the same."""
    for seed in seeds:
        pick = random.Random(seed)
        graph = random_graph(seed, 8, time_unit="ps", largest_cost=300)
        instance = Instance.build(graph, Machine.uniform(3, LINK))
        optimum = brute_force_optimum(graph, LINK, 3)
        left = 0

        def looked() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        whole = BoundLimits(int(instance.work.sum()))
        limits = BoundLimits(int(instance.work.sum()), interrupted=looked)
        with Threads(1) as threads:
            at_once = ConfigurationSearch(instance, whole, threads)
            at_once.run(whole)
            in_slices = ConfigurationSearch(instance, limits, threads)
            for _ in range(40):
                left = pick.choice([0, 1, 3, 10, 30, 100, 300])
                in_slices.run(limits)
                assert in_slices.lower == in_slices.reached + 1 or in_slices.proven is None
                if in_slices.proven is not None:
                    claim = claim_of(graph, LINK, 3, [], in_slices.lower, in_slices.document())
                    assert CHECKERS["configuration"](claim)[0], seed
                if in_slices.solved:
                    assert in_slices.lower == at_once.lower
                if pick.random() < 0.5:
                    in_slices.put_off()
            left = 10**9
            in_slices.run(limits)
        assert in_slices.ended
        assert 0.98 * at_once.lower <= in_slices.lower <= optimum
