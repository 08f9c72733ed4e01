"""The search over downsets decides every limit as brute force does."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import oracles
import pytest
from graph_strategies import LINK, chain, problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import check_stage_memory, stage_costs
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.solvers.arrays import order_arrays
from mtpp.solvers.downsets.enumeration import DownsetSearch, downset_problem
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.reduction.reduced_instance import ALL_RULES
from mtpp.solvers.reduction.reduction import reduce_instance

AMPLE = 2**24


def decided(instance: Instance, limit: int, steps: int = 10**9) -> DownsetSearch:
    """Run a search to its end, *steps* at a time."""
    search = DownsetSearch(downset_problem(instance), limit, AMPLE)
    while search.state == "open":
        search.run(steps)
    return search


def assert_decides(instance: Instance, optimum: int, steps: int) -> None:
    """Below the optimum there is nothing, from there on a partition that keeps to limit and memory."""
    if optimum == oracles.NEVER:
        assert decided(instance, instance.most_ticks, steps).state == "ended"
        return
    if optimum > 0:
        assert decided(instance, optimum - 1, steps).state == "ended"
    for limit in (optimum, optimum + 3):
        search = decided(instance, limit, steps)
        assert search.state == "found"
        costs = stage_costs(instance, search.partition())
        assert costs.bottleneck <= limit
        check_stage_memory(instance, costs)


@settings(max_examples=300)
@given(problems(max_ops=7, stage_memory=True), st.sampled_from([1, 7, 10**9]))
def test_every_limit_is_decided_rightly(problem: tuple[CostGraph, Device, int], steps: int) -> None:
    """With either kind of peak, fast and stage memories, and however often the search is interrupted."""
    graph, system, k = problem
    assert_decides(
        Instance.build(graph, Machine.uniform(k, system)), oracles.brute_force_optimum(graph, system, k), steps
    )


def small_problem(seed: int) -> tuple[CostGraph, int]:
    """Return a graph of up to 8 ops, often with free ops and tensors and many ties, and a number of stages."""
    pick = random.Random(seed)
    graph = random_graph(
        seed,
        pick.randint(2, 8),
        largest_cost=pick.choice([0, 1, 2, 3, 20, 100]),
        consumers_per_tensor=pick.choice([0.7, 1.5, 3.0]),
    )
    return graph, pick.randint(2, 4)


def near_the_largest(seed: int, k: int) -> CostGraph:
    """Return a graph of 8 ops with tensors that many read, whose costs just stay below 2^62 / k together."""
    pick = random.Random(seed)
    wide = [(maker, pick.sample(range(maker + 1, 8), pick.randint(2, 7 - maker))) for maker in (0, pick.randint(0, 2))]
    work = [pick.random() for _ in range(8)]
    transfer = [pick.random() * pick.choice([1, 4, 10]) for _ in wide]
    scale = 0.99 * 2**62 / k / (sum(work) + sum(transfer))
    return CostGraph.build(
        name="large",
        time_unit="1",
        ops=[Op(f"op{i}", int(cost * scale)) for i, cost in enumerate(work)],
        tensors=[
            Tensor(f"t{i}", f"op{maker}", tuple(f"op{v}" for v in readers), None, int(cost * scale))
            for i, ((maker, readers), cost) in enumerate(zip(wide, transfer, strict=True))
        ],
    )


def test_no_sum_wraps_on_the_largest_costs() -> None:
    """A tensor that many ops read counts for each of them in what open ops may add: more than all costs together."""
    for seed in range(100):
        k = 2 + seed % 2
        graph = near_the_largest(seed, k)
        assert_decides(
            Instance.build(graph, Machine.uniform(k, LINK)), oracles.brute_force_optimum(graph, LINK, k), 10**9
        )


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
def test_hundreds_of_small_graphs_reduced_or_not(part: int) -> None:
    """The optimum of brute force, on the instance as it is and on what the merges leave of it."""
    for seed in range(200 * part, 200 * (part + 1)):
        graph, k = small_problem(seed)
        optimum = oracles.brute_force_optimum(graph, LINK, k)
        instance = Instance.build(graph, Machine.uniform(k, LINK))
        for one in (instance, reduce_instance(instance).instance):
            assert_decides(one, optimum, 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hundreds_of_small_graphs_with_and_without_each_rule(part: int) -> None:
    """Each merging rule by itself, and all of them but it, leave the optimum where brute force finds it."""
    for seed in range(10_000 + 200 * part, 10_000 + 200 * (part + 1)):
        graph, k = small_problem(seed)
        optimum = oracles.brute_force_optimum(graph, LINK, k)
        instance = Instance.build(graph, Machine.uniform(k, LINK))
        reduced = [
            reduce_instance(instance, rules)
            for rule in ALL_RULES
            for rules in ([rule], [other for other in ALL_RULES if other != rule])
        ]
        for one in {str(result.record()): result.instance for result in reduced if result.rounds}.values():
            assert_decides(one, optimum, 10**9)


def wide(branches: int, length: int) -> CostGraph:
    """Return equal chains between a source and a sink."""
    ops = [Op("source", 1), Op("sink", 1)]
    tensors = [Tensor("fork", "source", tuple(f"b{i}.0" for i in range(branches)), transfer=1)]
    for i in range(branches):
        for j in range(length):
            ops.append(Op(f"b{i}.{j}", 10))
            reader = f"b{i}.{j + 1}" if j + 1 < length else "sink"
            tensors.append(Tensor(f"t{i}.{j}", f"b{i}.{j}", (reader,), transfer=2))
    return CostGraph.build(name="wide", time_unit="1", ops=ops, tensors=tensors)


def test_a_search_that_outgrows_its_memory_says_so() -> None:
    """It proves nothing then; with enough memory it does."""
    instance = Instance.build(wide(6, 4), Machine.uniform(5, LINK))
    search = DownsetSearch(downset_problem(instance), 60, 20_000)
    search.run(10**9)
    assert search.state == "full"
    assert decided(instance, 50).state == "ended"


def test_growing_changes_nothing() -> None:
    """Thousands of downsets are kept in a store that begins small; the digest is that of one that is large at once."""
    instance = Instance.build(wide(5, 4), Machine.uniform(9, LINK))
    search = decided(instance, 30)
    assert search.state == "ended"
    record = search.record()
    assert record["downsets"] > 600
    assert decided(instance, 30, steps=100).record() == record


def test_the_digest_does_not_depend_on_the_order_of_search() -> None:
    """With its ops in another topological order an instance reaches the same downsets."""
    compared = 0
    for seed in range(40):
        instance = Instance.build(random_graph(seed, 14), Machine.uniform(4, LINK))
        other = replace(instance, order=kahn_order(order_arrays(instance), np.random.default_rng(seed).random(14)))
        limit = int(instance.work.sum()) // 4 + 60
        one, two = decided(instance, limit), decided(other, limit)
        assert one.state == two.state
        if one.state == "ended":
            compared += one.record()["downsets"] > 5
            assert one.record() == two.record()
    assert compared > 3


def test_a_chain_needs_one_downset_a_stage() -> None:
    """Every op gives way to the stage before, so only the longest stages are tried."""
    instance = Instance.build(chain([10] * 12, [1] * 11), Machine.uniform(4, LINK))
    assert decided(instance, 32).state == "found"
    search = decided(instance, 31)
    assert search.state == "ended"
    assert search.record()["downsets"] <= 4
