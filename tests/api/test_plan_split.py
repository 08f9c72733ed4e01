"""Plans of ``mtpp.Pfeife``: results in Python, against the reference, and what is refused by name."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from piper_documents import configuration, edge, layer
from planning import line_of_ops, plan_with
from refusals import refusal

import mtpp
from mtpp.api.training.plan_results import SplitPlanResult
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.training.pfeife.looped import LoopedSchedule

SIZES: dict[str, Any] = {"planner": "pfeife", "devices": 3, "micro_batches": 3}


GRAPH = line_of_ops(15)


def test_small_cases_of_the_reference(shared_reference: Path) -> None:
    """Best over splits, loops and prefetch by brute force, memory included; every plan verifies."""
    for case in json.loads((shared_reference / "pfeife.json").read_text())["small"]:
        sizes = {"devices": case["devices"], "micro_batches": case["micro_batches"], "memory": case.get("memory")}
        asked = {"planner": "pfeife", "loops": case["loops"], **sizes}
        if case["optimum"] is None:
            with pytest.raises(mtpp.Infeasible, match="no plan fits"):
                plan_with(case["graph"], **asked)
            continue
        plan = plan_with(case["graph"], **asked)
        assert isinstance(plan, SplitPlanResult)
        assert plan.iteration_ticks == case["optimum"]
        assert mtpp.verify(plan, case["graph"]).passed


def test_figure_4_of_the_reference(shared_reference: Path) -> None:
    """Best split of 1F1B at 2 to 6 micro-batches, and with one prefetched pass: 72 and 69 at three."""
    figure = json.loads((shared_reference / "pfeife.json").read_text())["figure4"]
    for count, (_, _, uneven, prefetched) in figure["other_micro_batches"].items():
        sizes: dict[str, Any] = {"devices": 3, "micro_batches": int(count), "planner": "pfeife", "loops": [1]}
        assert plan_with(GRAPH, **sizes, prefetch=[0, 0, 0]).iteration_ticks <= uneven
        assert plan_with(GRAPH, **sizes).iteration_ticks <= prefetched
    plan = plan_with(GRAPH, **SIZES, loops=[1])
    assert plan.iteration_ticks == figure["best_over_all_splits_and_prefetch"] == 69
    fixed = plan_with(GRAPH, **SIZES, loops=[1], prefetch=[0, 0, 0])
    assert (fixed.iteration_ticks, [len(stage.layers) for stage in fixed.stages]) == (72, [6, 5, 4])


def test_result_in_python(tmp_path: Path) -> None:
    """Attributes agree with each other and with the saved document, which verifies."""
    graph = line_of_ops(15, "ms", param_bytes=100)
    plan = plan_with(graph, **SIZES)
    assert [name for stage in plan.stages for name in stage.layers] == [f"v{v}" for v in range(15)]
    assert [stage.device for stage in plan.stages] == [s % 3 for s in range(len(plan.stages))]
    busy = [0.0] * 3
    for stage in plan.stages:
        busy[stage.device] += 3 * (stage.forward_ticks + stage.backward_ticks) / plan.iteration_ticks
    assert [device.busy for device in plan.devices] == pytest.approx(busy)
    assert plan.iteration_s == plan.iteration_ticks / 10**12
    assert min(plan.gains.values()) >= 1
    assert {"gpipe", "1f1b", "interleaved-2", "prefetch-2", "interleaved-3", "prefetch-3"} <= set(plan.gains)
    assert plan.family_ratio is not None
    assert plan.ratio is not None
    assert 1 <= plan.ratio <= plan.family_ratio
    assert plan.optimal == (plan.family_ratio == 1)
    assert "planned by pfeife" in repr(plan)
    assert plan._repr_html_().startswith("<div>")
    plan.save(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["schedule"]["order"] == [[one.name for one in row] for row in plan.schedule.rows]
    assert [one["peak_bytes"] for one in document["devices"]] == [one.peak_bytes for one in plan.devices]
    assert mtpp.verify(tmp_path / "plan.json", graph).passed


def test_partition_of_a_plan(tmp_path: Path) -> None:
    """Stages are scored as a partition: of ops, or of layers that the model numbers; other layers are no graph."""
    plan = plan_with(GRAPH, **SIZES, loops=[1])
    plan.save(tmp_path / "plan.json")
    due = {name: s for s, stage in enumerate(plan.stages) for name in stage.layers}
    for given in (plan, plan.document(), tmp_path / "plan.json"):
        assert mtpp.evaluate(GRAPH, given).assignment == due
    layers = plan_with(multi_branch_model("mmt", branches=2, layers=3), **SIZES)
    with pytest.raises(mtpp.InputError, match="is for layers"):
        mtpp.evaluate(GRAPH, layers)
    workload = tmp_path / "workload.json"
    chain = [layer(7, configuration(), name="first"), layer(3, configuration(), name="second")]
    rows = [*chain, layer(5, configuration(), name="third")]
    workload.write_text(json.dumps({"maxDevices": 4, "nodes": rows, "edges": [edge(7, 3), edge(3, 5)]}))
    plan = plan_with(workload, **SIZES, loops=[1], time_unit="ms")
    op_of = {7: "first", 3: "second", 5: "third"}
    due = {op_of[layer]: s for s, stage in enumerate(plan.stages) for layer in stage.layers}
    assert mtpp.evaluate(mtpp.read(workload, time_unit="ms"), plan).assignment == due
    plan = plan_with(GRAPH, **SIZES, loops=[1])
    for changed in ({"version": 3}, {"version": 1}, {"planner": "graphpipe"}, {"planner": None}):
        with pytest.raises(mtpp.InputError, match="a training plan that does not cut a graph"):
            mtpp.evaluate(GRAPH, {**plan.document(), **changed})


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        {"transport": "direct"},
        {"order": "search"},
        {"search": "beam"},
        {"schedule": "gpipe"},
        {"schedule": "zero-bubble"},
        {"schedule": "interleaved", "loops": [2]},
        {"loop_batch": "any"},
        {"speed": [1, 0.5, Fraction(1, 3)]},
        {"latency": "10us", "bandwidth": "1GB/s"},
        {"memory": ["16GiB", "16GiB", "8GiB"]},
        {"backward_ratio": 1.5},
    ],
)
def test_layers(rules: dict[str, Any]) -> None:
    """A model of layers under every rule, verified; no baseline under the same costs is faster."""
    model = multi_branch_model("mmt", branches=2, layers=3)
    plan = plan_with(model, **SIZES, **rules)
    assert mtpp.verify(plan, model).passed
    assert "layers run as the fastest configurations for one device" in repr(plan)
    if "schedule" not in rules and "search" not in rules:
        assert min(plan.gains.values()) >= 1


def test_schedule_of_passes() -> None:
    """One made in Python is kept to; one whose passes wait for each other is said to."""
    looped = LoopedSchedule(3, 3, 1, 3, (0, 1, 0))
    plan = plan_with(GRAPH, **SIZES, schedule=looped.schedule)
    assert plan.iteration_ticks == 69
    assert plan.schedule.rows == looped.schedule.rows
    with pytest.raises(mtpp.InputError, match="prefetch: "):
        plan_with(GRAPH, **SIZES, schedule="1f1b", prefetch=[0, 0, 0])


def test_models_that_were_read_before() -> None:
    """A model of ``mtpp.read`` has its system and sizes; saying them again is refused."""
    model = mtpp.read(line_of_ops(15, "ms"))
    due = plan_with(line_of_ops(15, "ms"), **SIZES).iteration_ticks
    assert plan_with(model, **SIZES).iteration_ticks == due
    for name, value in (("bandwidth", "1GB/s"), ("dims", {"batch": 1}), ("time_unit", "ms")):
        with pytest.raises(mtpp.InputError, match=f"{name}: was said when the model was read"):
            plan_with(model, **SIZES, **{name: value})


WRONG = (0.5, [1.5], -1, True, Decimal("NaN"), float("nan"), object(), print, "nonsense")
RIGHT = {("backward_ratio", 0), ("state", 0), ("speed", 0), ("speed", 1)}
"""Parameters that may have the value at this place."""


@pytest.mark.parametrize("place", range(len(WRONG)))
@pytest.mark.parametrize(
    "name",
    [
        *("micro_batches", "loops", "loop_batch", "prefetch", "backward_ratio", "state", "transport", "order"),
        *("search", "speed", "schedule", "dims", "latency", "memory", "devices", "bandwidth"),
    ],
)
def test_wrong_values_are_refused_by_name(name: str, place: int) -> None:
    """Every parameter of this planner with values of other kinds."""
    if (name, place) in RIGHT:
        pytest.skip("allowed")
    assert refusal(plan_with, line_of_ops(15, "ms"), **{**SIZES, name: WRONG[place]}).parameter == name


@pytest.mark.parametrize("size", [0, "0B", "", []])
def test_memory_of_nothing(size: Any) -> None:
    """No device has none."""
    with pytest.raises(mtpp.InputError, match=r"^memory: "):
        plan_with(GRAPH, **SIZES, memory=size)


def test_least_memory_would_do() -> None:
    """What the message names is enough; a bound proves that a byte less than its value is not."""
    graph = line_of_ops(15, param_bytes=1000)
    asked: dict[str, Any] = {**SIZES, "loops": [1]}
    with pytest.raises(mtpp.Infeasible, match=r"memory (\d+)B would do") as caught:
        plan_with(graph, **asked, memory=1000)
    least = int(str(caught.value).split("memory ")[-1].split("B would")[0])
    plan = plan_with(graph, **asked, memory=least)
    assert max(one.peak_bytes or 0 for one in plan.devices) <= least


def test_results_do_not_depend_on_threads() -> None:
    """Nor on how often one asks."""
    graph = line_of_ops(60, "ms", param_bytes=10)
    documents = [plan_with(graph, **SIZES, jobs=jobs).document() for jobs in (1, 2, 2)]
    assert len({json.dumps({**one, "elapsed_s": 0}) for one in documents}) == 1
