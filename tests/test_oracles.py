"""Oracles of partitions and of training plans, against each other and against numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import oracles
import pytest
import training_oracles
from graph_strategies import ABSTRACT, LINK, chain, problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import on_machine
from training_models import random_problem
from training_oracles import OracleStage

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.problem import PlanningProblem, Schemes


def branches() -> CostGraph:
    """Make a → c and b → d, in the file order d c b a."""
    return CostGraph.build(
        name="branches",
        time_unit=ABSTRACT,
        ops=[Op(name, 1) for name in "dcba"],
        tensors=[Tensor("t", "a", ("c",), None, 5), Tensor("u", "b", ("d",), None, 5)],
    )


def test_kahn_order_follows_priorities_and_breaks_ties_by_file_order() -> None:
    """Of the ready ops the one of highest priority comes first, and of equal ones the first in the file."""
    assert oracles.kahn_order(branches(), [0, 0, 0, 1]) == [3, 1, 2, 0]
    assert oracles.kahn_order(branches(), [9, 0, 0.5, 0.5]) == [2, 0, 3, 1]
    assert oracles.kahn_order(branches(), [0, 0, 0, 0]) == [2, 0, 3, 1]


def test_chain_by_hand() -> None:
    """Works 4 1 1 4 with links 1 9 1: the cheap links are cut, k = 2 has to pay the dear one or a long stage."""
    graph = chain([4, 1, 1, 4], [1, 9, 1])
    order = [0, 1, 2, 3]
    assert oracles.stage_cost(graph, LINK, [1, 2]) == 1 + 2 + 1
    assert oracles.best_segmentation(graph, LINK, 1, order) == 10
    assert oracles.best_segmentation(graph, LINK, 2, order) == 7
    assert oracles.best_segmentation(graph, LINK, 3, order) == 5
    assert oracles.brute_force_optimum(graph, LINK, 3) == 5
    assert [oracles.fewest_stages(graph, LINK, order, cutoff) for cutoff in (5, 6, 8, 10, 11)] == [None, 3, 2, 2, 1]


def test_ops_kept_together_raise_the_optimum() -> None:
    """With both branches in one stage each way of cutting pays more."""
    assert oracles.brute_force_optimum(branches(), LINK, 2) == 2
    assert oracles.brute_force_optimum(branches(), LINK, 2, together=[[0, 3]]) == 4


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_ops=5, max_stages=3), data=st.data())
def test_slicing_the_best_order_is_optimal(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """No order does better than brute force, and the optimum's own order meets it (Archer et al. 2024, Theorem 4.3)."""
    graph, system, k = problem
    best = oracles.brute_force_optimum(graph, system, k)
    place = data.draw(st.permutations(range(graph.op_count)))
    order = oracles.kahn_order(graph, place)
    assert oracles.is_topological(graph, order)
    sliced = oracles.best_segmentation(graph, system, k, order)
    assert sliced >= best
    assert oracles.fewest_stages(graph, system, order, sliced + 1, k) in range(1, k + 1)
    fewest_below = oracles.fewest_stages(graph, system, order, sliced, k)
    assert fewest_below is None or fewest_below > k
    optimal = min(
        (oracles.bottleneck(graph, system, stages, k), stages) for stages in oracles.monotone_assignments(graph, k)
    )
    assert optimal[0] == best
    by_stage = oracles.kahn_order(graph, [-stage for stage in optimal[1]])
    assert oracles.best_segmentation(graph, system, k, by_stage) == best


def test_monotone_assignments_are_all_there() -> None:
    """Two ops without edges have 3 ways into at most two stages, a chain of three has 4 into at most three."""
    two = CostGraph.build(name="two", time_unit=ABSTRACT, ops=[Op("a", 1), Op("b", 1)], tensors=[])
    assert sorted(oracles.monotone_assignments(two, 2)) == [(0, 0), (0, 1), (1, 0)]
    three = chain([1, 1, 1], [1, 1])
    assert sorted(oracles.monotone_assignments(three, 5)) == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)]


@pytest.mark.parametrize("time_unit", ["ms", ABSTRACT])
def test_seeded_graphs_are_the_same_every_time(time_unit: str) -> None:
    """A seed gives one graph, another seed another, and the own order is topological."""
    first, again, other = (random_graph(seed, 30, time_unit=time_unit) for seed in (1, 1, 2))
    assert first.work == again.work
    assert first.transfer == again.transfer
    assert oracles.tensors_of(first) == oracles.tensors_of(again)
    assert oracles.tensors_of(first) != oracles.tensors_of(other)
    assert oracles.is_topological(first, oracles.own_order(first))
    assert list(oracles.own_order(first)) == first.order.tolist()


TICKS = 10**12


def chain_of_two() -> TrainingModel:
    """Return two layers of 10 and 14 ps; the second can also take 18 ps and less memory, or two devices."""
    plain = Configuration("plain", 10, 5, 3, 20)
    second = [Configuration("plain", 14, 2, 3, 20), Configuration("lean", 18, 2, 1, 20, recomputes=True)]
    split = Configuration("split", 8, 1, 2, 12, forward_sync_bytes={"a": 3})
    layers = [Layer("a", "a", {1: [plain]}), Layer("b", "b", {1: second, 2: [split]})]
    return TrainingModel("two", "ps", layers, [Edge("a", "b", 1)])


def problem(devices: int, memory: int, micro_batches: int, **rest: object) -> PlanningProblem:
    """Return what to plan; a byte takes half a tick."""
    limits = {"devices": devices, "memory_bytes": memory, "micro_batches": micro_batches}
    return PlanningProblem(chain_of_two(), **on_machine(bandwidth_bytes_per_s=2 * TICKS, **limits, **rest))


def test_plans_worked_out_by_hand() -> None:
    """Costs of each kind, on one device to three."""
    together = OracleStage((0, 1), 1, 1, (0, 0))
    assert training_oracles.best_plan(problem(1, 46, 1)) == (24, [together])
    lean = OracleStage((0, 1), 1, 1, (0, 1))
    assert training_oracles.best_plan(problem(1, 45, 1)) == (28, [lean])
    assert training_oracles.best_plan(problem(1, 43, 1)) is None
    assert training_oracles.least_memory(problem(1, 43, 1)) == 44
    # Two devices: d = 2 takes 24/2 + 1/4 · 14 = 15.5; two stages 14 + 1 for the edge, but keep 2 · 3 + 20 bytes.
    apart = [OracleStage((0,), 1, 1, (0,)), OracleStage((1,), 1, 1, (0,))]
    assert training_oracles.best_plan(problem(2, 46, 2)) == (15, apart)
    twice = OracleStage((0, 1), 2, 1, (0, 0))
    assert training_oracles.stage_parts(problem(2, 46, 2), twice, 2) == (12, 0, Fraction(7, 2), 46)
    assert training_oracles.stage_parts(problem(2, 46, 4, convention="program"), twice, 2).gradients == Fraction(7, 4)
    # Three: the second layer on two of them, 8 + 1 for the edge + 3 for bringing its input to both; the first 10 + 1.
    split = [OracleStage((0,), 1, 1, (0,)), OracleStage((1,), 1, 2, (0,))]
    assert training_oracles.best_plan(problem(3, 26, 2)) == (12, split)
    assert [parts.memory for parts in training_oracles.pipeline_parts(problem(3, 26, 2), split)] == [26, 14]


def test_rules_worked_out_by_hand() -> None:
    """Exact sums of degrees, divisors of N, and schemes left out."""
    assert training_oracles.best_plan(problem(1, 100, 2, exact_micro_batches=True)) is None
    assert training_oracles.least_memory(problem(1, 100, 2, exact_micro_batches=True)) is None
    assert training_oracles.data_degrees(problem(6, 100, 6, convention="program")) == [1, 2, 3, 6]
    assert training_oracles.data_degrees(problem(6, 100, 4)) == [1, 2, 3, 4]
    without = problem(3, 100, 3, schemes=Schemes(data_parallel=False, tensor_parallel=False, recompute=False))
    assert training_oracles.data_degrees(without) == [1]
    found = training_oracles.best_plan(without)
    assert found is not None
    assert found[0] == 15
    no_recompute = problem(1, 45, 1, schemes=Schemes(recompute=False))
    assert training_oracles.best_plan(no_recompute) is None
    assert training_oracles.least_memory(no_recompute) == 46


def test_random_problems_are_of_all_kinds() -> None:
    """Among the first ones every scheme decides some plan, and some have none."""
    found = [training_oracles.best_plan(random_problem(seed)) for seed in range(60)]
    stages = [stage for plan in found if plan is not None for stage in plan[1]]
    assert sum(plan is None for plan in found) > 5
    assert len({len(plan[1]) for plan in found if plan is not None}) >= 3
    assert any(stage.data_parallel > 1 for stage in stages)
    assert any(stage.tensor_parallel > 1 for stage in stages)
    assert any(any(stage.chosen) for stage in stages)
