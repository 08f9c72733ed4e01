"""Bounds by flows and by downsets against brute force, on small graphs of every kind."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import oracles
import pytest
from graph_strategies import LINK, chain, problems, random_graph
from hypothesis import given, settings

from mtpp.inference.contraction import contract_named
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.downset import bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.registry import bound_entry
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.cell_work import certify
from mtpp.solvers.reduction.reduction import reduce_instance

NAMES = ["node", "fraction", "crossings"]


def bounds_of(name: str, instance: Instance, upper: int) -> BoundResult:
    """Return what a bound comes to when nothing is known but a bottleneck."""
    return bound_entry(name).load()(instance, BoundLimits(upper))


def assert_below(name: str, instance: Instance, optimum: int) -> int:
    """Hold a bound of the instance, reduced or not, against the optimum; return it, 0 if nothing was proven."""
    best = 0
    for one in dict.fromkeys([instance, reduce_instance(instance).instance]):
        for upper in {min(bottleneck, instance.most_ticks) for bottleneck in (optimum, 2 * optimum + 1, oracles.NEVER)}:
            result = bounds_of(name, one, upper)
            assert result.solved
            if result.lower is not None:
                assert result.lower.method == name
                assert result.lower.tier == "exact"
                assert result.lower.value <= optimum
                best = max(best, result.lower.value)
    return best


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(problems(max_ops=6, max_stages=7, stage_memory=True))
def test_never_above_the_optimum(name: str, problem: tuple[CostGraph, Device, int]) -> None:
    """With and without memories, reduced or not, whatever is known beside."""
    graph, system, k = problem
    assert_below(name, Instance.build(graph, Machine.uniform(k, system)), oracles.brute_force_optimum(graph, system, k))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", range(3))
@pytest.mark.slow
def test_hundreds_of_small_graphs(name: str, part: int) -> None:
    """Hyperedges, ops without work, ops that stay together; now and then the bound meets the optimum."""
    tight = 0
    for seed in range(100 * part, 100 * part + 100):
        pick = random.Random(seed)
        graph = random_graph(
            seed,
            pick.randint(2, 8),
            largest_cost=pick.choice([3, 30, 10**6]),
            consumers_per_tensor=pick.choice([1.0, 2.0, 4.0]),
        )
        k = pick.randint(1, graph.op_count + 1)
        together = [pick.sample(list(graph.op_names), 2)] if pick.random() < 0.3 else []
        groups = [[int(name[2:]) for name in group] for group in together]
        optimum = oracles.brute_force_optimum(graph, LINK, k, groups)
        instance = contract_named(Instance.build(graph, Machine.uniform(k, LINK)), together).instance
        tight += assert_below(name, instance, optimum) == optimum
    assert tight > (30 if name == "node" else 3)


@pytest.mark.parametrize("name", NAMES)
def test_no_sum_wraps_on_the_largest_costs(name: str) -> None:
    """Costs up to 2^62 in all give bounds below the optimum as well."""
    for seed in range(30):
        pick = random.Random(seed)
        graph = random_graph(seed, pick.randint(2, 6), largest_cost=7, consumers_per_tensor=2.0)
        k = pick.randint(1, 4)
        ticks = oracles.to_ticks(graph, LINK, k)
        scale = (2**62 - 1) // (k * max(1, sum(ticks.work) + sum(ticks.transfer)))
        ops = [Op(op, int(work) * scale) for op, work in zip(graph.op_names, graph.work, strict=True)]
        tensors = [
            Tensor(f"t{t}", f"op{u}", tuple(f"op{v}" for v in sorted(readers)), None, ticks.transfer[t] * scale)
            for t, (u, readers) in enumerate(oracles.tensors_of(graph))
        ]
        large = CostGraph.build(name="large", time_unit="1", ops=ops, tensors=tensors)
        assert_below(name, Instance.build(large, Machine.uniform(k, LINK)), oracles.brute_force_optimum(large, LINK, k))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_streamed_counts(name: str) -> None:
    """Parameters that the fast memory does not hold raise the bound; a tick a byte is the link."""
    graph = CostGraph.build(
        name="streamed",
        time_unit="ps",
        ops=[Op(f"op{v}", 5, param_bytes=100) for v in range(4)],
        tensors=[Tensor(f"t{v}", f"op{v}", (f"op{v + 1}",), None, 1) for v in range(3)],
    )
    roomy = Device("link", 1, 1, Link(10**12), 400, 0)
    values = []
    for system in (roomy, replace(roomy, fast_memory_bytes=20)):
        instance = Instance.build(graph, Machine.uniform(2, system))
        values.append(assert_below(name, instance, oracles.brute_force_optimum(graph, system, 2)))
    assert values[1] > values[0] + 70


def test_node_is_exact_where_every_op_stands_alone() -> None:
    """With a stage for each op and expensive ops beside cheap links the most expensive op is the answer."""
    graph = chain([10, 40, 10], [3, 4])
    result = bounds_of("node", Instance.build(graph, Machine.uniform(3, LINK)), 47)
    assert result.lower is not None
    assert result.lower.value == 47


def test_drawn_ops_raise_the_node_bound() -> None:
    """A long way round cannot be left out of a stage that holds both ends."""
    ops = [Op("a", 10), Op("b", 50), Op("c", 10)]
    tensors = [
        Tensor("ab", "a", ("b",), None, 1),
        Tensor("bc", "b", ("c",), None, 1),
        Tensor("ac", "a", ("c",), None, 45),
    ]
    instance = Instance.build(
        CostGraph.build(name="way", time_unit="1", ops=ops, tensors=tensors), Machine.uniform(3, LINK)
    )
    result = bounds_of("node", instance, 70)
    assert result.lower is not None
    assert result.lower.value == oracles.brute_force_optimum(
        CostGraph.build(name="way", time_unit="1", ops=ops, tensors=tensors), LINK, 3
    )


def test_fraction_is_above_the_average() -> None:
    """Where all cuts cost, what each stage pays at least counts beside the average work."""
    graph = chain([100] * 8, [20] * 7)
    instance = Instance.build(graph, Machine.uniform(4, LINK))
    result = bounds_of("fraction", instance, 240)
    assert result.lower is not None
    assert 200 < result.lower.value <= oracles.brute_force_optimum(graph, LINK, 4)


@pytest.mark.parametrize("seed", range(8))
def test_meets_the_optimum(seed: int) -> None:
    """From a bottleneck that is too large it comes to the best partition and the proof of it."""
    graph = random_graph(seed, 8)
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    optimum = oracles.brute_force_optimum(graph, LINK, 3)
    result = bound(instance, BoundLimits(optimum + 5))
    assert result.solved
    assert result.partition is not None
    if result.lower is not None:  # else the simple bound is as good
        assert (result.lower.value, result.lower.tier) == (optimum, "enumerated")


def test_ends_at_what_is_enough() -> None:
    """A bound that is known already is not proven again."""
    instance = Instance.build(random_graph(3, 8), Machine.uniform(3, LINK))
    result = bound(instance, BoundLimits(10**6, enough=1, lower=1))
    assert (result.lower, result.partition) == (None, None)


def test_alone_in_a_cell_it_says_what_was_merged() -> None:
    """The search runs on the reduced graph, and the proof speaks of the one that is given."""
    seeds = [seed for seed in range(12) if _merged(seed)]
    assert len(seeds) > 2


def _merged(seed: int) -> bool:
    graph = random_graph(seed, 12)
    limits = CellLimits(20.0, Fraction(1), ("simple", "downset"), "slice", each=True)
    cell = certify(Instance.build(graph, Machine.uniform(3, LINK)), limits)
    return cell.lower.method == "downset" and bool(cell.lower.proof["merges"])
