"""Assignments annealed on contractions: partitions of the graph, at the cost that is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graph_strategies import LINK, random_graph

from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.solvers.compilation import search_clock
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.local_search.coarse_start import coarse_start
from mtpp.solvers.local_search.portfolio import Portfolio
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.partitioners import slice as slicing
from mtpp.solvers.threads import Threads


def instance_of(ops: int, k: int, device: Device = LINK) -> Instance:
    """Return a random graph on equal devices."""
    graph = random_graph(3, ops, time_unit="ps", largest_cost=1000, consumers_per_tensor=1.4)
    return Instance.build(graph, Machine.uniform(k, device))


def limits_of_looks(looks: int) -> SearchLimits:
    """Return limits that end after so many looks."""
    left = iter(range(looks))
    return SearchLimits(UNLIMITED, interrupted=lambda: next(left, None) is None)


@pytest.mark.parametrize("k", [5, 9, 15])
def test_assignments_are_partitions_of_the_graph(k: int) -> None:
    """Each has the bottleneck that is said of it, the best comes first, and is better than the cut of the order."""
    instance = instance_of(300, k)
    with Threads(2) as threads:
        rounds = list(coarse_start(instance, k, limits_of_looks(400), threads))
    assert rounds
    assert all(moves > 0 for _, moves in rounds)
    found = [one for assignments, _ in rounds for one in assignments]
    for one in found:
        assert bottleneck(instance, Partition.from_stages(instance, one.stage)) == one.bottleneck
    for assignments, _ in rounds:
        costs = [one.bottleneck for one in assignments]
        assert costs == sorted(costs)
    cut = slice_order(instance, instance.order)
    assert cut is not None
    assert costs[0] < cut.bottleneck


def test_small_graphs_and_large_stages_are_left_alone() -> None:
    """Where a contraction would be more than half as large, or stages have more than 64 ops, there is none."""
    with Threads(1) as threads:
        for ops, k in ((79, 4), (300, 16), (300, 4)):
            assert list(coarse_start(instance_of(ops, k), k, limits_of_looks(100), threads)) == []


def test_stages_keep_to_their_memory() -> None:
    """With a hard limit on it, assignments keep to the limit, or there are none."""
    free = instance_of(200, 4)
    fullest = max(1, int(free.param_bytes.sum()) // 3)
    instance = instance_of(200, 4, replace(LINK, memory_bytes=fullest))
    with Threads(1) as threads:
        rounds = list(coarse_start(instance, 4, limits_of_looks(300), threads))
    for one in (one for assignments, _ in rounds for one in assignments):
        partition = Partition.from_stages(instance, one.stage)
        costs = stage_costs(instance, partition)
        assert keeps_stage_memory(instance, costs)
        assert costs.bottleneck == one.bottleneck


def test_they_are_taken_up_where_a_clock_ends_the_search() -> None:
    """The search begins with them; without a clock it does not, for its result is to be the same each time."""
    instance = instance_of(200, 4)
    start = slicing.partition(instance, SearchLimits(1))
    for limits, taken in (
        (SearchLimits(UNLIMITED, deadline=Deadline(2.0, clock=search_clock)), True),
        (SearchLimits(50), False),
    ):
        with Threads(1) as threads:
            portfolio = Portfolio(instance, start, limits, threads, order_share=0.0)
            result = portfolio.improve()
        assert portfolio._coarse is taken
        assert bottleneck(instance, result.partition) == result.bottleneck <= start.bottleneck
