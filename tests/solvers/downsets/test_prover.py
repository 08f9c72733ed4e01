"""The prover closes the gap from both sides, and what it proves is true."""

from __future__ import annotations

import oracles
import pytest
from graph_strategies import LINK, problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.partitioners import anneal, downset
from mtpp.solvers.reduction.reduction import reduce_instance


def prover_of(instance: Instance, **limits: object) -> Prover:
    """Return a prover with all merges and the simple bound."""
    lower = simple_bound(instance).value
    return Prover(reduce_instance(instance), SearchLimits(UNLIMITED, lower_bound=lower, **limits))  # type: ignore[arg-type]


@settings(max_examples=150)
@given(problems(max_ops=7, stage_memory=True), st.sampled_from([5, 10**9]))
def test_the_gap_closes_at_the_optimum(problem: tuple[CostGraph, Device, int], steps: int) -> None:
    """From one stage down to the optimum, in one go or in many short ones; the bound is never above it."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum = oracles.brute_force_optimum(graph, system, k)
    prover = prover_of(instance)
    if optimum == oracles.NEVER:
        with pytest.raises(Infeasible, match="proven infeasible"):
            prover.any_partition(10**9)
        return
    first = prover.any_partition(10**9)
    assert first is not None
    upper = bottleneck(prover.inner, first)
    for _ in range(10_000):
        if prover.exhausted(upper):
            break
        upper = prover.close(upper, steps)
        assert prover.lower <= optimum <= upper
    assert prover.lower == optimum == upper
    if prover.found is not None:
        assert bottleneck(prover.inner, prover.found) == upper
    if prover.bound is not None:
        assert prover.bound.value == optimum
        assert prover.bound.tier == "enumerated"


def test_a_bound_from_elsewhere_is_never_lowered() -> None:
    """Searches that were open when it came show no less than it, and the gap closes nevertheless."""
    accepted = 0
    for seed in range(60):
        graph = random_graph(seed, 8, largest_cost=200)
        instance = Instance.build(graph, Machine.uniform(3, LINK))
        optimum = oracles.brute_force_optimum(graph, LINK, 3)
        prover = prover_of(instance, memory_bytes=2**20)
        upper = sum(instance.work.tolist())
        for turn in range(200):
            if prover.exhausted(upper):
                break
            before = prover.lower
            upper = prover.close(upper, 3)
            assert before <= prover.lower <= optimum <= upper
            if turn % 3 == 1 and prover.lower < optimum:
                known = (prover.lower + optimum + 1) // 2
                prover.accept(LowerBound(known, "relaxation", Tier.ENUMERATED, {}))
                assert prover.lower == known
                accepted += 1
        assert prover.lower == optimum == upper, seed
    assert accepted > 30


def test_the_bound_rises_where_the_gap_does_not_close() -> None:
    """A graph that is too wide gives a bound above the simple one and below what is found otherwise."""
    instance = Instance.build(random_graph(7, 60, shuffled=False), Machine.uniform(4, LINK))
    best = anneal.partition(instance, SearchLimits(3000))
    prover = prover_of(instance, memory_bytes=2**20)
    assert prover.close(best.bottleneck, 2_000_000) == best.bottleneck
    assert simple_bound(instance).value < prover.lower < best.bottleneck
    assert prover.bound is not None
    assert prover.bound.value == prover.lower == prover.bound.proof["cutoff"]


def test_a_deadline_ends_it_at_once() -> None:
    """Nothing is proven, and the bottleneck is what it was."""
    instance = Instance.build(random_graph(7, 120, shuffled=False), Machine.uniform(8, LINK))
    prover = prover_of(instance, deadline=Deadline(0.0))
    assert prover.close(10**6, 10**9) == 10**6
    assert prover.bound is None
    assert prover.steps == 0


def test_a_found_partition_is_not_searched_for_again() -> None:
    """A search that is open at a limit goes on when it is called again, and is dropped where a better one is known."""
    instance = Instance.build(random_graph(3, 60, shuffled=False), Machine.uniform(3, LINK))
    in_pieces, at_once = prover_of(instance), prover_of(instance)
    upper = bottleneck(in_pieces.inner, Partition.from_stages(in_pieces.inner, [0] * in_pieces.inner.op_count))
    best = at_once.close(upper, 3_000_000)
    while in_pieces.steps < 3_000_000 and not in_pieces.exhausted(upper):
        upper = in_pieces.close(upper, 100_000)
    assert in_pieces.lower <= best
    assert at_once.lower <= upper


@pytest.mark.slow
def test_the_last_steps_of_a_budget_are_no_loop() -> None:
    """Whatever is left over, the search over downsets ends, with what it may have spent at most."""
    instance = Instance.build(random_graph(7, 60, shuffled=False), Machine.uniform(4, LINK))
    for budget in (*range(1, 60), 500):
        found = downset.partition(instance, SearchLimits(budget))
        assert found.evaluations <= budget
        assert found.stopped == "budget"


@pytest.mark.parametrize("stages", [4, 12, 40])
def test_a_budget_is_never_exceeded(stages: int) -> None:
    """The more stages, the more a look at what crosses between them takes: it has to fit, too."""
    for seed in range(3):
        instance = Instance.build(random_graph(seed, 60, shuffled=False), Machine.uniform(stages, LINK))
        for budget in (1, 2, 3, 5, 9, 14, 30, 59, 120):
            assert downset.partition(instance, SearchLimits(budget, memory_bytes=2**24)).evaluations <= budget


def test_a_search_that_is_strict_is_not_begun_in_vain() -> None:
    """One step less than a look at crossings takes, and none is made."""
    instance = Instance.build(random_graph(7, 60, shuffled=False), Machine.uniform(12, LINK))
    reduced = reduce_instance(instance)
    first = downset_problem(reduced.instance).first_steps
    limits = SearchLimits(UNLIMITED, lower_bound=simple_bound(instance).value)
    prover = Prover(reduced, limits, strictly=True)
    assert first > 1
    assert prover.close(10**6, first - 1) == 10**6
    assert prover.any_partition(first - 1) is None
    assert prover.steps == 0
    prover.close(10**6, first)
    assert prover.steps == first
