"""The search for the highest limit that the configuration LP rules out."""

from __future__ import annotations

import pytest
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

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


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.slow
def test_a_search_goes_on_where_its_time_was_up(jobs: int) -> None:
    """Interrupted after ever more looks at the clock, it comes as far as at once, and never above the optimum."""
    for seed in range(4):
        graph = random_graph(seed, 8, largest_cost=300)
        instance = Instance.build(graph, Machine.uniform(3, LINK))
        left = 0

        def looked() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        with Threads(jobs) as threads:
            whole = BoundLimits(int(instance.work.sum()))
            at_once = ConfigurationSearch(instance, whole, threads)
            at_once.run(whole)
            limits = BoundLimits(int(instance.work.sum()), interrupted=looked)
            in_slices = ConfigurationSearch(instance, limits, threads)
            for number in range(12):
                left = int(4 * 1.7**number)
                in_slices.run(limits)
                in_slices.put_off()
            left = 10**9
            in_slices.run(limits)
        assert in_slices.ended
        assert 0.98 * at_once.lower <= in_slices.lower <= brute_force_optimum(graph, LINK, 3)
