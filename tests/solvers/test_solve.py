"""From a graph to a plan, groups and a limit on the bottleneck included."""

from __future__ import annotations

import time

import oracles
import pytest
from graph_strategies import graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.errors import Infeasible, InputError
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.fewest import find_fewest_stages
from mtpp.solvers.registry import partitioner
from mtpp.solvers.solve import solve
from mtpp.solvers.timed_search import search_in_time

SYSTEM = Device("s", 1, 1, Link(10**9))


@settings(max_examples=60)
@given(graphs(min_ops=3, max_ops=6), st.integers(1, 3), st.data())
def test_groups_are_kept_and_their_bound_holds(graph: CostGraph, k: int, data: st.DataObject) -> None:
    """The plan keeps the group in one stage; its bound is at most the best that does so."""
    group = data.draw(st.lists(st.integers(0, graph.op_count - 1), min_size=2, max_size=3, unique=True))
    names = [graph.op_names[v] for v in group]
    plan = solve(Instance.build(graph, Machine.uniform(k, SYSTEM)), graph, SearchLimits(10), together=[names])
    assert len({int(plan.partition.assignment[v]) for v in group}) == 1
    optimum = oracles.brute_force_optimum(graph, SYSTEM, k, [group])
    assert plan.lower.value <= optimum <= plan.costs.bottleneck


@settings(max_examples=60)
@given(graphs(max_ops=5), st.integers(1, 6))
def test_fewest_stages_is_between_the_minimum_and_its_own_cut(graph: CostGraph, divisor: int) -> None:
    """The number found is enough for the order that comes with it, and not below the true minimum."""
    instance = Instance.build(graph, Machine.uniform(graph.op_count, SYSTEM))
    limit = int(instance.work.sum()) // divisor
    least = _fewest_by_brute_force(graph, limit)
    try:
        count, order = find_fewest_stages(instance, limit, SearchLimits(20))
    except Infeasible as error:
        infeasible = error
    else:
        assert least is not None
        assert count >= least
        assert oracles.fewest_stages(graph, SYSTEM, order.tolist(), limit + 1, graph.op_count) == count
        return
    if infeasible.problem.startswith("proven"):
        assert least is None


def _fewest_by_brute_force(graph: CostGraph, limit: int) -> int | None:
    n = graph.op_count
    for k in range(1, n + 1):
        if any(oracles.bottleneck(graph, SYSTEM, a, n) <= limit for a in oracles.monotone_assignments(graph, k)):
            return k
    return None


def test_unknown_algorithm_is_named() -> None:
    """The message lists the algorithms there are."""
    graph = random_graph(0, 5)
    with pytest.raises(
        InputError, match="auto, downset, anneal, brkga, mla, mla-weighted, random, series-parallel, slice"
    ):
        solve(Instance.build(graph, Machine.uniform(2, SYSTEM)), graph, SearchLimits(1), algorithm="magic")


def test_a_partition_at_hand_is_not_lost() -> None:
    """Where an algorithm finds nothing within the stage memory, the plan is the partition that was given."""
    graph = random_graph(3, 24, time_unit="us", shuffled=False)
    system = load_device().overriding(peak="order", memory_bytes=300)
    instance = Instance.build(graph, Machine.uniform(5, system))
    with pytest.raises(Infeasible, match="none found"):
        solve(instance, graph, SearchLimits(1), algorithm="slice")
    start = partitioner("random").load()(instance, SearchLimits(200))
    plan = solve(instance, graph, SearchLimits(1), algorithm="slice", start=start)
    assert plan.costs.bottleneck == start.bottleneck
    assert plan.found_by == "random"


@pytest.mark.parametrize(
    ("limits", "stopped"), [(SearchLimits(3), "budget"), (SearchLimits(3, interrupted=lambda: True), "interrupted")]
)
def test_a_search_without_a_result_says_why_it_ended(limits: SearchLimits, stopped: str) -> None:
    """The partition at hand is returned, and what ended the search, not that it was finished."""
    graph = CostGraph.build(name="g", time_unit="1", ops=[Op(name, 1, "op", 10) for name in "abc"], tensors=[])
    system = SYSTEM.overriding(memory_bytes=10)
    instance = Instance.build(graph, Machine.uniform(3, system))
    start = SearchResult(Partition.from_labels(instance, [0, 1, 2]), 1, "given", 1, "finished")

    def fails(instance: Instance, limits: SearchLimits) -> SearchResult:
        raise Infeasible("none was found")

    entry = partitioner("random")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(entry), "load", lambda self: fails)
        plan = solve(instance, graph, limits, algorithm="random", start=start)
    assert (plan.stopped, plan.found_by, plan.costs.bottleneck) == (stopped, "given", instance.ticks_per_unit)


class _Late:
    """An observer that does not come back for a while once a search has told of so many candidates."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.best: list[int] = []
        self.evaluated_so_far = 0

    def phase(self, name: str) -> None:
        """Ignore it."""

    def incumbent(self, bottleneck: int) -> None:
        """Take note of it."""
        self.best.append(bottleneck)

    def bound(self, value: int) -> None:
        """Ignore it."""

    def evaluated(self, count: int) -> None:
        """Count them, and be late."""
        self.evaluated_so_far += count
        if self.evaluated_so_far >= self.after:
            time.sleep(2.0)


@pytest.mark.parametrize("name", ["brkga", "random"])
def test_a_search_given_up_keeps_what_it_told_of(name: str) -> None:
    """The best partition and the number of candidates, not the first cut and 1."""
    instance = Instance.build(random_graph(3, 60), Machine.uniform(4, SYSTEM))
    late = _Late(500)
    found = search_in_time(
        partitioner(name).load(), instance, SearchLimits(10**6, deadline=Deadline(0.6), observer=late)
    )
    assert found.bottleneck == late.best[-1] == bottleneck(instance, found.partition)
    assert found.found_by == name
    assert found.evaluations >= 500
