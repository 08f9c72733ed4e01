"""CSV of stages: a row per op that a spreadsheet shows as it is."""

from __future__ import annotations

import csv
import io
from fractions import Fraction

from mtpp.formats.results.stage_csv import write_stage_csv
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.simple import simple_bound


def _rows(graph: CostGraph, stages: list[int]) -> list[list[str]]:
    instance = Instance.build(graph, Machine.uniform(max(stages) + 1, load_device()))
    partition = Partition.from_stages(instance, stages)
    plan = Plan(graph, instance, partition, simple_bound(instance), "given", "given", 0, 1, "finished")
    return list(csv.reader(io.StringIO(write_stage_csv(plan))))


def test_a_row_per_op_in_the_order_of_the_pipeline() -> None:
    """Sizes are summed per op, what leaves the stage apart; costs keep all their digits."""
    graph = CostGraph.build(
        name="g",
        time_unit="ms",
        ops=[Op("last", 1), Op("first", Fraction(1, 8), "Conv", 7), Op("middle", 3, "Add")],
        tensors=[
            Tensor("t", "first", ("middle", "last"), bytes=10),
            Tensor("u", "first", ("middle",), bytes=5),
            Tensor("v", "middle", ("last",), transfer=1),
        ],
    )
    assert _rows(graph, [1, 0, 0]) == [
        ["stage", "op", "kind", "work_ms", "param_bytes", "output_bytes", "sent_bytes"],
        ["0", "first", "Conv", "0.125", "7", "15", "10"],
        ["0", "middle", "Add", "3", "0", "", ""],
        ["1", "last", "", "1", "0", "0", "0"],
    ]


def test_names_are_no_formulas() -> None:
    """What a spreadsheet would compute is text; commas, quotes and line ends stay in their cell."""
    names = ["=1+1", "@x", "-2", "+3", 'a,"b"\nc', "/layer/Conv"]
    graph = CostGraph.build(name="g", time_unit="1", ops=[Op(name, 1) for name in names], tensors=[])
    rows = _rows(graph, [0] * len(names))
    assert [row[1] for row in rows[1:]] == ["'=1+1", "'@x", "'-2", "'+3", 'a,"b"\nc', "/layer/Conv"]
    assert rows[0][3] == "work"
