"""The oracles agree with each other and with numbers worked out by hand."""

from __future__ import annotations

import oracles
import pytest
from graph_strategies import ABSTRACT, LINK, chain, problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device


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
