"""The search for the highest limit that the configuration LP rules out."""

from __future__ import annotations

import pytest
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.bound import bound
from mtpp.solvers.bounds.limits import BoundLimits


@pytest.mark.parametrize("seed", range(6))
def test_the_search_comes_to_its_end(seed: int) -> None:
    """A limit that is out of reach of the present families is not tried again before some of them are split."""
    graph = random_graph(seed, 8, largest_cost=300)
    instance = Instance.build(graph, LINK, 3)
    optimum = brute_force_optimum(graph, LINK, 3)
    result = bound(instance, BoundLimits(int(instance.work.sum()), deadline=Deadline(60.0)))
    assert result.solved
    assert result.lower is not None
    assert 0.6 * optimum < result.lower.value <= optimum
