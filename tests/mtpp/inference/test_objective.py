"""Stage costs against an evaluation written literally from the definitions."""

from __future__ import annotations

import oracles
from graph_strategies import problems
from hypothesis import given
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import crossing_tensors, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine

PARTS = ("work", "input", "output", "overflow", "cost", "param_bytes", "peak_bytes")


@given(problems(), st.data())
def test_every_part_of_every_stage(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """Work, input, output, overflow, cost, parameters and peak of each stage equal the definitions."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    cuts = sorted(data.draw(st.lists(st.integers(0, graph.op_count), min_size=k - 1, max_size=k - 1)))
    stage = [0] * graph.op_count
    for position, v in enumerate(graph.order.tolist()):
        stage[v] = sum(cut <= position for cut in cuts)
    costs = stage_costs(instance, Partition.from_stages(instance, stage))
    for b in range(k):
        members = [v for v in range(graph.op_count) if stage[v] == b]
        expected = oracles.stage_figures(graph, system, members, k)
        assert {part: int(getattr(costs, part)[b]) for part in PARTS} == {part: expected[part] for part in PARTS}
        assert costs.ops[b] == len(members)


def test_a_tensor_is_paid_once_by_each_stage_that_cuts_it() -> None:
    """Two consumers in one stage share one transfer (Archer et al. 2024, Figure 2, left)."""
    graph = CostGraph.build(
        name="figure 2",
        time_unit="1",
        ops=[Op("u", 1), Op("v", 1), Op("w", 1), Op("x", 1)],
        tensors=[Tensor("t", "u", ("v", "w", "x"), transfer=10)],
    )
    instance = Instance.build(graph, Machine.uniform(3, Device("s", 1, 1, Link(1))))
    partition = Partition.from_stages(instance, [0, 1, 1, 2])
    costs = stage_costs(instance, partition)
    assert costs.output.tolist() == [10, 0, 0]
    assert costs.input.tolist() == [0, 10, 10]
    assert costs.cost.tolist() == [11, 12, 11]
    assert crossing_tensors(instance, partition).tolist() == [0]
