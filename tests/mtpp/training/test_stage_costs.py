"""Costs of stages and transfers: pipelines of the reference to the tick, and proportions where no sizes are listed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.machine.link import Link
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.model import Configuration, Edge, Layer, SampleCosts, TrainingModel
from mtpp.training.stage_costs import PipelineCosts, ScheduledStage


def _model(document: Any) -> TrainingModel:
    return training_model_from_document(parse_json(json.dumps(document).encode(), "m"), "m")


def _stages(
    model: TrainingModel, groups: list[list[str]], degrees: list[int], sizes: list[int], in_flight: list[int]
) -> list[ScheduledStage]:
    by_name = {layer.name: number for number, layer in enumerate(model.layers)}
    return [
        ScheduledStage({by_name[name]: model.layers[by_name[name]].configurations[1][0] for name in group}, d, b, count)
        for group, d, b, count in zip(groups, degrees, sizes, in_flight, strict=True)
    ]


def test_two_branches_of_section_7_5(shared_reference: Path) -> None:
    """In a line and side by side, for three mini-batches and three sizes of micro-batches: times and memory."""
    case = json.loads((shared_reference / "graphpipe.json").read_text())["section_7_5"]
    model = _model(case["model"])
    names = [layer.name for layer in model.layers]
    groups = [[name] for name in names[:7]] + [names[7:]]
    compared = 0
    for row in case["rows"]:
        costs = PipelineCosts(
            model, row.pop("mini_batch"), Link(case["bandwidth_bytes_per_s"]), model.micro_batch_size or 0
        )
        for key, expected in row.items():
            size = int(key.split()[-1])
            stages = _stages(model, groups, [1] * 8, [size] * 8, expected["in_flight"])
            graph = costs.stage_graph(stages, [f"stage {s}" for s in range(8)], line=key.startswith("line"))
            assert simulate(graph).iteration == expected["ticks"]
            assert max(map(costs.memory_bytes, stages)) == expected["most_memory_bytes"]
            compared += 1
    assert compared == 18


def test_plans_of_small_models(shared_reference: Path) -> None:
    """The best plans of the reference, with replicas, transfers and synchronisation, take what it says."""
    cases = json.loads((shared_reference / "graphpipe.json").read_text())["models"]
    for case in cases:
        model, plan = _model(case["model"]), case["a_plan"]
        costs = PipelineCosts(
            model, case["mini_batch"], Link(case["bandwidth_bytes_per_s"]), case["model"]["micro_batch_size"]
        )
        stages = _stages(model, plan["groups"], plan["d"], plan["b"], plan["in_flight"])
        graph = costs.stage_graph(stages, [f"stage {s}" for s in range(len(stages))])
        assert simulate(graph).iteration == case["optimum_ticks"]
        assert max(map(costs.memory_bytes, stages)) <= case["memory_bytes"]


def _pair(**changes: Any) -> TrainingModel:
    one = Configuration("plain", Fraction(1, 3), 600, 7, 11, **changes)
    layers = [Layer(name, name, {1: [one], 2: [one]}) for name in ("a", "b")]
    return TrainingModel("pair", "ns", layers, [Edge("a", "b", 1000)], micro_batch_size=2)


def test_costs_without_sizes_are_in_proportion() -> None:
    """A third of the time forward, two thirds backward, each rounded up; listed sizes come first."""
    model = _pair()
    costs = PipelineCosts(model, 8, Link(10**12), 2)
    one = model.layers[0].configurations[1][0]
    passes = costs.passes(one, 4)  # 2/3 ns forward and backward: 222.2 and 444.4 ps
    assert (passes.forward_ticks, passes.backward_ticks, passes.memory_bytes) == (223, 445, 14)
    assert costs.passes(one, 1).memory_bytes == 4
    listed = Configuration("plain", 3, 1, 1, 1, micro_batches={4: SampleCosts(1, 5, 9)})
    assert costs.passes(listed, 4).backward_ticks == 5000
    assert costs.passes(listed, 4).memory_bytes == 9


def test_transfers_and_synchronisation() -> None:
    """Bytes are those of the sender's micro-batch, over the fewer links; gradients go around a ring."""
    model = _pair()
    costs = PipelineCosts(model, 8, Link(10**12, 5), 2)
    one = model.layers[0].configurations[1][0]
    stages = [ScheduledStage({0: one}, 2, 4, 2), ScheduledStage({1: one}, 4, 8, 1)]
    graph = costs.stage_graph(stages, ["a", "b"])
    (transfer,) = graph.transfers
    assert transfer.forward_ticks == 5 + 2000 // 2
    assert transfer.backward_ticks == 5 + 4000 // 2
    assert [stage.synchronisation_ticks for stage in graph.stages] == [2 * 1 * 600 // 2, 2 * 3 * 600 // 4]
    assert costs.memory_bytes(stages[0]) == 11 + 2 * 7
    lone = costs.stage_graph([ScheduledStage({1: one}, 1, 4, 1), ScheduledStage({0: one}, 1, 4, 2)][::-1], ["a", "b"])
    assert lone.depth == 2


def test_a_line_waits_where_nothing_passes() -> None:
    """Stages without an edge are side by side, or in a line with a transfer of no bytes."""
    one = Configuration("plain", 3, 0, 0, 0)
    model = TrainingModel("two", "ns", [Layer(n, n, {1: [one]}) for n in "ab"], [], micro_batch_size=1)
    costs = PipelineCosts(model, 2, Link(10**9, 7), 1)
    stages = [ScheduledStage({s: one}, 1, 1, 2 - s) for s in range(2)]
    assert costs.stage_graph(stages, ["a", "b"]).transfers == ()
    (transfer,) = costs.stage_graph(stages, ["a", "b"], line=True).transfers
    assert (transfer.forward_ticks, transfer.backward_ticks) == (7, 7)


def test_sharing_devices_goes_over_the_link_too() -> None:
    """What handing a tensor to t devices takes is added to its bytes, for each direction by itself."""
    ends = {"forward_sync_bytes": {"a": 200}, "backward_sync_bytes": {"b": 300}}
    both = [
        Configuration("plain", 3, 0, 0, 0, **{key: ends[key]})  # type: ignore[arg-type]
        for key in ("backward_sync_bytes", "forward_sync_bytes")
    ]
    layers = [Layer(name, name, {2: [one]}) for name, one in zip("ab", both, strict=True)]
    model = TrainingModel("pair", "ns", layers, [Edge("a", "b", 1000)], micro_batch_size=1)
    costs = PipelineCosts(model, 2, Link(10**12), 1)
    (transfer,) = costs.stage_graph(
        [ScheduledStage({s: one}, 1, 1, 2 - s) for s, one in enumerate(both)], ["a", "b"]
    ).transfers
    assert (transfer.forward_ticks, transfer.backward_ticks) == (1200, 1300)


def test_sizes_that_do_not_divide_the_mini_batch() -> None:
    """The message names the stage."""
    model = _pair()
    one = model.layers[0].configurations[1][0]
    with pytest.raises(InputError, match=r"micro-batches of 3 samples \(a\) do not divide 8"):
        PipelineCosts(model, 8, Link(10**9), 2).stage_graph([ScheduledStage({0: one, 1: one}, 1, 3, 1)], ["a"])
