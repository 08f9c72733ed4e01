"""Contraction: the smaller instance has exactly the partitions that keep the groups together."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from graph_strategies import problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.errors import InputError
from mtpp.inference.contraction import contract, contract_named, merge
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.working_memory import least_peaks
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine

SYSTEM = Device("s", 1, 1, Link(10**9))


@settings(max_examples=200)
@given(problems(max_ops=7).filter(lambda problem: problem[0].op_count > 1), st.data())
def test_groups_cost_what_the_definition_says(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """Every partition of the merged instance lifts to one of the same costs that keeps the group together."""
    graph, system, _ = problem
    group = data.draw(st.lists(st.integers(0, graph.op_count - 1), min_size=2, max_size=3, unique=True))
    instance = Instance.build(graph, Machine.uniform(3, system))
    contraction = contract(instance, [group])
    inner = contraction.instance
    cuts = sorted(data.draw(st.lists(st.integers(0, inner.op_count), min_size=2, max_size=2)))
    stage = [0] * inner.op_count
    for position, v in enumerate(inner.order.tolist()):
        stage[v] = sum(cut <= position for cut in cuts)
    partition = Partition.from_stages(inner, stage)
    lifted = contraction.lift(partition)
    assert len({int(lifted.assignment[v]) for v in group}) == 1
    for part in ("cost", "param_bytes", "peak_bytes"):
        assert (
            getattr(stage_costs(inner, partition), part).tolist()
            == getattr(stage_costs(instance, lifted), part).tolist()
        )
    assert oracles.bottleneck(graph, system, lifted.assignment.tolist(), 3) == stage_costs(inner, partition).bottleneck


def test_merging_merged_ops() -> None:
    """Contractions compose: members are the graph's own ops, and peaks in order are those of the graph."""
    graph = CostGraph.build(
        name="chain",
        time_unit="1",
        ops=[Op(name, 1, param_bytes=1) for name in "abcd"],
        tensors=[Tensor(f"t{u}", u, (v,), size, 1) for u, v, size in (("a", "b", 5), ("b", "c", 7), ("c", "d", 11))],
    )
    instance = Instance.build(graph, Machine.uniform(2, Device("s", 1, 1, Link(1), peak="order")))
    first = contract_named(instance, [["a", "b"]]).instance
    second = contract(first, [[0, 1]]).instance
    assert second.members is not None
    assert tuple(second.members) == (("a", "b", "c"), ("d",))
    assert second.ground is not None
    assert second.ground.instance is instance
    assert second.ground.op_of.tolist() == [0, 0, 0, 1]
    costs = stage_costs(second, Partition.from_stages(second, [0, 1]))
    assert costs.peak_bytes.tolist() == [18, 11]
    assert second.most_ticks == 4 + 1
    assert least_peaks(second).tolist() == [18, 11]


def test_ops_on_a_path_between_members_belong_to_the_group() -> None:
    """In a → b → c, keeping a and c together keeps b with them."""
    graph = CostGraph.build(
        name="path",
        time_unit="1",
        ops=[Op(name, 1) for name in "abcd"],
        tensors=[Tensor(f"t{u}", u, (v,), transfer=1) for u, v in ("ab", "bc", "cd")],
    )
    contraction = contract_named(Instance.build(graph, Machine.uniform(2, SYSTEM)), [["c", "a"]])
    assert contraction.group_of.tolist() == [0, 0, 0, 1]
    assert tuple(contraction.instance.members or ()) == (("a", "b", "c"), ("d",))
    with pytest.raises(InputError, match="no op is called 'x'"):
        contract_named(Instance.build(graph, Machine.uniform(2, SYSTEM)), [["c", "x"]])


def _merged_plainly(
    instance: Instance, group_of: list[int], count: int
) -> tuple[list[list[int]], dict[str, list[int]]]:
    """Return pins and figures of the merged instance, op by op and tensor by tensor."""
    figures: dict[str, list[int]] = {
        "work": [0] * count,
        "param_bytes": [0] * count,
        "transfer": [],
        "tensor_bytes": [],
    }
    for v, group in enumerate(group_of):
        figures["work"][group] += int(instance.work[v])
        figures["param_bytes"][group] += int(instance.param_bytes[v])
    pins = []
    for t in range(instance.tensor_count):
        touched = [group_of[v] for v in instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]]]
        distinct = list(dict.fromkeys(touched))
        if len(distinct) > 1:
            pins.append(distinct)
            figures["transfer"].append(int(instance.transfer[t]))
            figures["tensor_bytes"].append(int(instance.tensor_bytes[t]))
    return pins, figures


@pytest.mark.parametrize("seed", range(20))
def test_merging_equals_its_plain_twin(seed: int) -> None:
    """Work and parameters add up; a tensor keeps its producer's group and then each reading group once."""
    graph = random_graph(seed, 30, consumers_per_tensor=3)
    instance = Instance.build(graph, Machine.uniform(3, SYSTEM))
    width = 1 + seed % 4
    group_of = np.empty(30, dtype=np.int32)
    group_of[instance.order] = np.arange(30) // width
    count = int(group_of.max()) + 1
    inner = merge(instance, group_of, count).instance
    pins, figures = _merged_plainly(instance, group_of.tolist(), count)
    assert [inner.pins[i:j].tolist() for i, j in zip(inner.pin_offsets, inner.pin_offsets[1:], strict=False)] == pins
    for name, values in figures.items():
        assert getattr(inner, name).tolist() == values
    assert inner.order.tolist() == list(range(count))


def test_names_of_merged_ops_are_those_of_the_graph() -> None:
    """Merging merged ops lists their members one by one; what messages call a large group leaves out its middle."""
    names = "abcdefghi"
    graph = CostGraph.build(name="g", time_unit="1", ops=[Op(name, 1) for name in names], tensors=[])
    once = merge(
        Instance.build(graph, Machine.uniform(2, SYSTEM)), np.array([0, 0, 1, 1, 2, 2, 3, 3, 3], dtype=np.int32), 4
    ).instance
    assert list(once.op_names) == ["a + b", "c + d", "e + f", "g + h + i"]
    twice = merge(once, np.array([0, 1, 0, 0], dtype=np.int32), 2).instance
    assert twice.members_of(0) == tuple("abefghi")
    assert list(twice.op_names) == ["a + b + e + … 2 more … + h + i", "c + d"]
    assert twice.op_names[-1] == "c + d"
    with pytest.raises(IndexError):
        _ = twice.op_names[2]


def test_groups_that_wait_for_each_other_are_refused() -> None:
    """In a → b → c, a and c cannot be merged without b."""
    graph = CostGraph.build(
        name="path",
        time_unit="1",
        ops=[Op(name, 1) for name in "abc"],
        tensors=[Tensor(f"t{u}", u, (v,), transfer=1) for u, v in ("ab", "bc")],
    )
    with pytest.raises(ValueError, match="wait for each other"):
        merge(Instance.build(graph, Machine.uniform(2, SYSTEM)), np.array([0, 1, 0], dtype=np.int32), 2)


@pytest.mark.parametrize("seed", range(10))
def test_the_same_groups_of_another_instance(seed: int) -> None:
    """For another k the groups merge to what a contraction from the beginning gives."""
    graph = random_graph(seed, 12)
    groups = [[1, 7], [2, 3, 9]]
    first, other = Instance.build(graph, Machine.uniform(2, SYSTEM)), Instance.build(graph, Machine.uniform(5, SYSTEM))
    contraction = contract(first, groups)
    assert contraction.of(first) is contraction
    again, anew = contraction.of(other), contract(other, groups)
    assert again.original is other
    assert again.instance.k == 5
    assert again.group_of.tolist() == anew.group_of.tolist()
    for part in ("work", "param_bytes", "transfer", "tensor_bytes", "pin_offsets", "pins", "order"):
        assert getattr(again.instance, part).tolist() == getattr(anew.instance, part).tolist()
    assert list(again.instance.op_names) == list(anew.instance.op_names)
