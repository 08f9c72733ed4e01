"""Proofs that a stage memory cannot be met: against brute force, and what they say."""

from __future__ import annotations

from dataclasses import replace

import oracles
import pytest
from graph_strategies import chain, graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.errors import Infeasible
from mtpp.inference.contraction import contract, contract_named
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.working_memory import least_peaks
from mtpp.machine.device import Device, DeviceGroup
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.feasibility import (
    least_stages,
    none_found,
    proven_infeasible,
    refuse_infeasible,
    refuse_oversized_op,
)
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.orders.fewest import find_fewest_stages
from mtpp.solvers.solve import solve

LINK = Device("s", 1, 1, Link(10**9))


def _limited(peak: str, limit: int, reserve: int = 0) -> Device:
    return replace(LINK, peak=peak, activation_reserve_bytes=reserve, memory_bytes=limit)


@settings(max_examples=300)
@given(
    graphs(max_ops=6), st.sampled_from(["reserve", "order"]), st.integers(0, 200), st.integers(1, 4), st.integers(0, 20)
)
def test_what_is_proven_is_true(graph: CostGraph, peak: str, limit: int, k: int, reserve: int) -> None:
    """Where infeasibility is proven no partition keeps to the limit; a plan is made only where one does."""
    system = _limited(peak, limit + reserve, reserve)
    instance = Instance.build(graph, Machine.uniform(k, system))
    feasible = oracles.brute_force_optimum(graph, system, k) < oracles.NEVER
    try:
        plan = solve(instance, graph, SearchLimits(20))
    except Infeasible as error:
        refusal = error
    else:
        assert feasible
        assert (plan.costs.param_bytes + plan.costs.peak_bytes).max() <= limit + reserve
        return
    assert refusal.parameter == "stage_memory"
    assert refusal.problem.startswith(("proven infeasible: ", "none found: "))
    assert not (feasible and refusal.problem.startswith("proven"))


@settings(max_examples=200)
@given(graphs(max_ops=6), st.data())
def test_least_peaks_and_stages(graph: CostGraph, data: st.DataObject) -> None:
    """No set that holds a merged op has a lower peak, single ops meet theirs, and fewer stages never do."""
    instance = Instance.build(graph, Machine.uniform(3, _limited("order", data.draw(st.integers(0, 300)))))
    group = data.draw(st.lists(st.integers(0, graph.op_count - 1), min_size=1, max_size=3, unique=True))
    merged = contract(instance, [group]).instance
    number = {name: v for v, name in enumerate(graph.op_names)}
    others = data.draw(st.sets(st.integers(0, graph.op_count - 1)))
    for op, least in enumerate(least_peaks(merged).tolist()):
        members = [number[name] for name in merged.members_of(op)]
        assert oracles.peak_in_order(graph, others.union(members)) >= least
        if len(members) == 1:
            assert oracles.peak_in_order(graph, members) == least
    fewest = least_stages(instance)
    if 1 < fewest <= graph.op_count:
        assert oracles.brute_force_optimum(graph, instance.device, fewest - 1) == oracles.NEVER


def test_an_op_that_fits_nowhere_is_named() -> None:
    """The op that needs most is named with its figures: its parameters, and the tensors that it touches at once."""
    ops = [Op("a", 1, param_bytes=1000), Op("b", 1, param_bytes=900), Op("c", 1)]
    tensors = [Tensor("t", "a", ("b",), 50, 1), Tensor("u", "b", ("c",), 200, 1)]
    graph = CostGraph.build(name="g", time_unit="1", ops=ops, tensors=tensors)
    with pytest.raises(Infeasible) as caught:
        refuse_infeasible(Instance.build(graph, Machine.uniform(3, _limited("order", 1149))))
    assert str(caught.value) == (
        "stage_memory: proven infeasible: op 'b' needs 1,150 bytes (900 for parameters, 250 for activations), more "
        "than the 1,149 (1.122 KiB) that a stage may hold"
    )
    with pytest.raises(Infeasible, match="op 'a' needs 1,010 bytes"):
        refuse_infeasible(Instance.build(graph, Machine.uniform(3, _limited("reserve", 1009, 10))))
    refuse_infeasible(Instance.build(graph, Machine.uniform(3, _limited("reserve", 1010, 10))))
    refuse_infeasible(Instance.build(graph, Machine.uniform(3, _limited("order", 1150))))
    merged = contract_named(Instance.build(graph, Machine.uniform(3, _limited("order", 2000))), [["a", "c"]])
    with pytest.raises(Infeasible, match="ops 'a', 'b', 'c', which must share a stage, need 2,150 bytes"):
        refuse_oversized_op(merged.instance)


def test_a_total_that_does_not_fit_is_named() -> None:
    """The parameters, and the least activations of k stages, against k times the limit."""
    ops = [Op(name, 1, param_bytes=100) for name in "abcd"]
    tensors = [Tensor("t", "a", ("b",), 20, 1), Tensor("u", "c", ("d",), 60, 1)]
    graph = CostGraph.build(name="g", time_unit="1", ops=ops, tensors=tensors)
    with pytest.raises(Infeasible) as caught:
        refuse_infeasible(Instance.build(graph, Machine.uniform(2, _limited("order", 239))))
    assert caught.value.problem == (
        "proven infeasible: the parameters (400 bytes) and the activations of 2 stages (at least 80 bytes) exceed "
        "2 × 239 bytes (239 B)"
    )
    refuse_infeasible(Instance.build(graph, Machine.uniform(2, _limited("order", 240))))
    with pytest.raises(Infeasible, match=r"activations of one stage \(at least 7 bytes\) exceed 1 × 406 bytes"):
        refuse_infeasible(Instance.build(graph, Machine.uniform(1, _limited("reserve", 406, 7))))
    refuse_infeasible(Instance.build(graph, Machine.uniform(1, _limited("reserve", 407, 7))))


def test_without_a_limit_everything_is_feasible() -> None:
    """No stage memory, no proof."""
    instance = Instance.build(random_graph(0, 9), Machine.uniform(1, LINK))
    refuse_infeasible(instance)
    assert least_stages(instance) == 1


def test_fewest_stages_keep_to_the_memory() -> None:
    """A chain of equal ops, two to a stage by memory; no time limit can make up for an op that does not fit."""
    graph = chain([1] * 6, [0] * 5)
    heavy = CostGraph.build(
        name="heavy",
        time_unit="1",
        ops=[Op(name, 1, param_bytes=10) for name in graph.op_names],
        tensors=[Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), None, 0) for i in range(5)],
    )
    limits = SearchLimits(5)
    assert (
        find_fewest_stages(Instance.build(heavy, Machine.uniform(6, _limited("reserve", 25, 5))), 100, limits)[0] == 3
    )
    assert find_fewest_stages(Instance.build(heavy, Machine.uniform(6, _limited("order", 39))), 100, limits)[0] == 2
    with pytest.raises(Infeasible, match="proven infeasible: op 'op0' needs 15 bytes"):
        find_fewest_stages(Instance.build(heavy, Machine.uniform(6, _limited("reserve", 14, 5))), 100, limits)


@pytest.mark.parametrize("text", ["proven infeasible: the param", "proven infeasible: no part", "none found"])
def test_memories_of_described_machines_are_named(text: str) -> None:
    """The limit of equal devices that a file describes is the machine's, not an option that nobody gave."""
    ops = [Op("a", 1, param_bytes=60), Op("b", 1, param_bytes=60)]
    graph = CostGraph.build(name="g", time_unit="1", ops=ops, tensors=[])
    device = _limited("order", 60)
    machine = Machine((DeviceGroup(device, 1, "gpu"),), (Level(1, device.link),))
    instance = Instance.build(graph, machine)
    if text.startswith("proven infeasible: the"):
        with pytest.raises(Infeasible) as caught:
            refuse_infeasible(instance)
        error = caught.value
    else:
        error = proven_infeasible(instance) if text.startswith("proven") else none_found(instance, "an order")
    assert error.problem.startswith(text)
    assert error.parameter == "machine"
    assert "stages, or" not in str(error)
