"""``mtpp.simulate``: from a path, bytes, a document or a stage graph; training plans; charts, traces and documents."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from planning import line_of_ops, plan_with
from refusals import refusal

import mtpp
from mtpp.api.training.simulated import SimulatedSchedule
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.datasets.transformer_training import transformer_training
from mtpp.formats.training.models import read_training_model
from mtpp.formats.training.native import write_training_model
from mtpp.training.stage_graph import PipelineStage, StageGraph, interleaved_order

STAGE = {"micro_batch": 1, "forward": 1, "backward": 2}
PIPELINE: dict[str, Any] = {
    "format": "mtpp-stage-graph",
    "version": 1,
    "name": "two",
    "time_unit": "us",
    "mini_batch": 4,
    "stages": [{**STAGE, "in_flight": 2}, {**STAGE, "in_flight": 1}],
    "transfers": [{"source": 0, "target": 1, "forward": 0, "backward": 0}],
}


def test_every_kind_of_input_gives_the_same(tmp_path: Path) -> None:
    """A path, gzipped bytes or not, a parsed document, and the graph itself."""
    path = tmp_path / "two.json"
    path.write_text(json.dumps(PIPELINE))
    for given in (path, str(path), path.read_bytes(), PIPELINE):
        simulated = mtpp.simulate(given)
        assert (simulated.iteration_ticks, simulated.iteration_s) == (15_000_000, 15e-6)
    stage = PipelineStage("only", 2, 3, 4, 5, interleaved_order(2, 1))
    assert mtpp.simulate(StageGraph("x", "ps", 4, [stage], [])).iteration_ticks == 2 * 7 + 5


def test_results_are_saved_and_drawn(tmp_path: Path) -> None:
    """The document reads as it is documented; charts by their endings, traces as JSON."""
    simulated = mtpp.simulate(PIPELINE)
    document = simulated.document()
    assert (document["format"], document["version"], document["iteration_ticks"]) == ("mtpp-simulation", 1, 15_000_000)
    assert document["warm_up_ticks"] + document["steady_ticks"] + document["cool_down_ticks"] == 15_000_000
    simulated.save(tmp_path / "simulation.json")
    simulated.save(tmp_path / "simulation.json")  # over an earlier result
    assert json.loads((tmp_path / "simulation.json").read_text()) == document
    for name, begins in (("a.svg", "<svg "), ("a.html", "<!DOCTYPE html>"), ("a.txt", "stage 0 |")):
        simulated.gantt(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begins)
    drawn, reported = (
        json.loads(html.split('id="mtpp-data">')[1].split("</script>")[0])
        for html in ((tmp_path / "a.html").read_text(), mtpp.report(PIPELINE).html)
    )
    assert drawn == reported
    simulated.trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "iteration" in repr(simulated)
    assert simulated._repr_html_().startswith("<svg ")


def test_bad_calls(tmp_path: Path) -> None:
    """The message names the parameter, or the place in the file."""
    with pytest.raises(mtpp.InputError, match="pipeline: 7 is no pipeline"):
        mtpp.simulate(7)  # type: ignore[arg-type]
    with pytest.raises(mtpp.InputError, match=r"path: .*has none of the endings"):
        mtpp.simulate(PIPELINE).gantt(tmp_path / "a.png")
    with pytest.raises(mtpp.InputError, match="<dict>: /stages/0/micro_batch"):
        mtpp.simulate({**PIPELINE, "mini_batch": 4, "stages": [{**STAGE, "micro_batch": 3, "in_flight": 1}]})
    with pytest.raises(mtpp.InputError, match="not a stage graph"):
        mtpp.simulate(b"\x08\x07onnx")
    with pytest.raises(mtpp.Deadlock, match="<dict>: passes wait for each other"):
        mtpp.simulate({**PIPELINE, "stages": [{**STAGE, "in_flight": 1, "k": 2}] * 2})


def test_training_plans_run_in_a_line(tmp_path: Path) -> None:
    """A plan in memory, as a document with its model, and as files, take the same: the costs of the size asked for."""
    paths = tmp_path / "plan.json", tmp_path / "model.json"
    paths[1].write_text(write_training_model(multi_branch_model("mmt", branches=1, layers=3, micro_batch_sizes=(2, 4))))
    model, _ = read_training_model(str(paths[1]))
    system = {"devices": 2, "memory": "16GiB", "bandwidth": "1000GB/s", "max_micro_batches": 8}
    plan = plan_with(model, data_parallel=False, tensor_parallel=False, **system)  # type: ignore[arg-type]
    sizes = {"batch_size": 16, "micro_batch_size": 4}
    simulated = mtpp.simulate(plan, **sizes)
    plan.save(paths[0])
    assert mtpp.simulate(plan.document(), model=model, **sizes).document() == simulated.document()
    of_files = mtpp.simulate(paths[0], model=paths[1], **sizes).document()
    recorded = {name: of_files.pop(name) for name in ("pipeline", "model")}
    assert of_files == simulated.document()
    assert [Path(one["path"]) for one in recorded.values()] == list(paths)
    assert recorded["pipeline"]["sha256"] == hashlib.sha256(paths[0].read_bytes()).hexdigest()
    graph = simulated.record.graph
    assert [stage.micro_batch for stage in graph.stages] == [4] * len(plan.stages)
    layers = {layer.name: layer.configurations[1][0].micro_batches[4] for layer in model.layers}
    for stage, planned in zip(graph.stages, plan.stages, strict=True):
        assert stage.forward_ticks == sum(layers[name].forward for name in planned.layers)
        assert stage.backward_ticks == sum(layers[name].backward for name in planned.layers)
    assert [one.peak_in_flight for one in simulated.stages] == [min(4, one.in_flight) for one in plan.stages]


def test_replicas_make_larger_micro_batches() -> None:
    """A stage of d replicas takes d times the samples at once, in the time of one device."""
    model = transformer_training(4, hidden=64, heads=4)
    system = {"devices": 8, "memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 8}
    plan = plan_with(model, tensor_parallel=False, **system)  # type: ignore[arg-type]
    simulated = mtpp.simulate(plan, batch_size=840, micro_batch_size=1)
    sizes = [stage.micro_batch for stage in simulated.record.graph.stages]
    assert sizes == [stage.data_parallel for stage in plan.stages]
    assert max(sizes) > 1
    assert simulated.iteration_ticks >= max(one.busy + one.synchronisation for one in simulated.stages)
    sized = {key: value for key, value in system.items() if key != "max_micro_batches"}
    sized |= {"batch_size": 840, "micro_batch_size": 1, "gradient_accumulation": 105}
    recorded = plan_with(model, tensor_parallel=False, **sized)  # type: ignore[arg-type]
    assert mtpp.simulate(recorded).document() == simulated.document()
    assert mtpp.simulate(recorded, batch_size=1680).record.graph.mini_batch == 1680


def test_bad_calls_with_plans() -> None:
    """What is missing, what does not divide, what belongs to another model, what is of no effect."""
    model = multi_branch_model("mmt", branches=2, layers=1, micro_batch_sizes=(2,))
    other = multi_branch_model("candle-uno", branches=2, layers=1, micro_batch_sizes=(2,))
    system = {"devices": 2, "memory": "16GiB", "bandwidth": "25GB/s", "max_micro_batches": 8}
    plan = plan_with(model, **system)  # type: ignore[arg-type]
    document = plan.document()
    sizes = {"batch_size": 8, "micro_batch_size": 2}
    for call, said in (
        (lambda: mtpp.simulate(document, **sizes), "model: must be given with a training plan"),
        (lambda: mtpp.simulate(plan, micro_batch_size=2), "batch_size: must be given with a training plan"),
        (lambda: mtpp.simulate(plan, batch_size=2), "micro_batch_size: must be given with a training plan"),
        (lambda: mtpp.simulate(plan, batch_size=7, micro_batch_size=2), "batch_size: micro-batches of"),
        (lambda: mtpp.simulate(plan, batch_size=0, micro_batch_size=2), "batch_size: "),
        (
            lambda: mtpp.simulate(document, model=other, **sizes),
            "<dict>: /stages: layer 'top 0' of the model is in no stage",
        ),
        (lambda: mtpp.simulate({**document, "version": 7}, model=model, **sizes), "<dict>: /version: "),
        (lambda: mtpp.simulate(PIPELINE, batch_size=8), "batch_size: has no effect on a stage graph"),
    ):
        assert said in str(refusal(call))
    stages = document["stages"]
    twice = {**document, "stages": [*stages, stages[0]]}
    with pytest.raises(mtpp.InputError, match=r"/stages/\d+/layers: layer '.*' is in stage 0 as well"):
        mtpp.simulate(twice, model=model, **sizes)
    fewer = {**stages[0], "layers": stages[0]["layers"][1:]}
    with pytest.raises(mtpp.InputError, match="of the model is in no stage"):
        mtpp.simulate({**document, "stages": [fewer, *stages[1:]]}, model=model, **sizes)
    unknown = {**stages[0], "configurations": dict.fromkeys(stages[0]["configurations"], "none")}
    with pytest.raises(mtpp.InputError, match=r"/stages/0/configurations: .* has no configuration 'none'"):
        mtpp.simulate({**document, "stages": [unknown, *stages[1:]]}, model=model, **sizes)


def test_inputs_are_not_written_over(tmp_path: Path) -> None:
    """Neither the pipeline nor the model of a plan, through a link as well."""
    path, link = tmp_path / "two.txt", tmp_path / "link.svg"
    path.write_text(json.dumps(PIPELINE))
    link.symlink_to(path)
    simulated = mtpp.simulate(path)
    for write in (lambda: simulated.gantt(path), lambda: simulated.gantt(link), lambda: simulated.trace(path)):
        with pytest.raises(mtpp.InputError, match="is the pipeline too"):
            write()
    with pytest.raises(mtpp.InputError, match="path: goes to a file"):
        simulated.trace("-")
    assert json.loads(path.read_text()) == PIPELINE


def test_another_model_than_the_plans_is_told_of(tmp_path: Path) -> None:
    """The same layers with other costs: their costs are taken, and a warning says so; its file is not written over."""
    texts = [write_training_model(multi_branch_model("mmt", branches=2, layers=1, seed=seed)) for seed in (1, 2)]
    paths = [tmp_path / f"{number}.json" for number in range(2)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    plan = plan_with(paths[0], devices=2, memory="16GiB", bandwidth="25GB/s", max_micro_batches=8)
    sizes = {"batch_size": 8, "micro_batch_size": 2}
    with pytest.warns(mtpp.MtppWarning, match="not the file that the plan was made for"):
        other = mtpp.simulate(plan.document(), model=paths[1], **sizes)
    assert other.iteration_ticks != mtpp.simulate(plan, **sizes).iteration_ticks
    with pytest.raises(mtpp.InputError, match="is its model too"):
        other.trace(paths[1])


def test_batches_that_no_simulation_takes() -> None:
    """Millions of passes are refused before they are made."""
    model = multi_branch_model("mmt", branches=1, layers=1, micro_batch_sizes=(2,))
    plan = plan_with(model, devices=1, memory="16GiB", bandwidth="25GB/s", max_micro_batches=8)
    for size in (10**9, 10**24):
        with pytest.raises(mtpp.InputError, match="batch_size: "):
            mtpp.simulate(plan, batch_size=size, micro_batch_size=1)


@pytest.mark.parametrize("transport", ["neighbours", "direct"])
def test_plans_of_split_points(tmp_path: Path, transport: Any) -> None:
    """From the result, its document and its file: every figure agrees with the plan, to the tick."""
    plan = plan_with(line_of_ops(15), planner="pfeife", devices=3, micro_batches=3, transport=transport)
    plan.save(tmp_path / "plan.json")
    for given in (plan, plan.document(), tmp_path / "plan.json", (tmp_path / "plan.json").read_bytes()):
        simulated = mtpp.simulate(given)
        assert isinstance(simulated, SimulatedSchedule)
        assert (simulated.iteration_ticks, simulated.iteration_s) == (plan.iteration_ticks, None)
        assert [one.busy for one in simulated.devices] == list(plan.plan.busy_ticks)
        assert [one.peak_in_flight for one in simulated.devices] == [one.in_flight for one in plan.devices]
        assert set(simulated.starts) == {one.name for row in plan.schedule.rows for one in row}
        assert simulated.critical_path[0] == "0F0"
    assert "critical path" in repr(simulated)
    assert simulated._repr_html_().startswith("<svg")
    simulated.gantt(tmp_path / "g.txt")
    assert "critical path" in (tmp_path / "g.txt").read_text()


def test_hand_overs_may_be_listed_in_any_order() -> None:
    """Messages of one pass take turns by the stages that they go to, however a plan lists them."""
    graph = line_of_ops(12)
    for v, tensor in enumerate(graph["tensors"]):
        tensor.update(consumers=[f"v{w}" for w in range(v + 1, 12)], transfer=3)
    plan = plan_with(graph, planner="pfeife", devices=2, micro_batches=2, loops=[3], transport="direct")
    document = plan.document()
    assert max(len(row["handovers"]) for row in document["stages"]) > 1
    for row in document["stages"]:
        row["handovers"].reverse()
    assert mtpp.simulate(document).iteration_ticks == plan.iteration_ticks


def _changed(plan: dict[str, Any], keys: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a plan with another value at a place; None takes the key away."""
    changed = json.loads(json.dumps(plan))
    at = changed
    for key in keys[:-1]:
        at = at[key]
    if value is None:
        del at[keys[-1]]
    else:
        at[keys[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("transport", "keys", "value", "where"),
    [
        ("neighbours", ("schedule", "order", 0, 0), "0F9", "/schedule/order"),
        ("neighbours", ("schedule", "order", 0, 0), "1F0", "/schedule/order/0/0"),
        ("neighbours", ("schedule", "order", 0, 0), "zero", "/schedule/order/0/0"),
        ("neighbours", ("schedule", "micro_batches"), 7, "/schedule/micro_batches"),
        ("neighbours", ("schedule",), None, "/schedule"),
        ("neighbours", ("stages", 1, "device"), 0, "/stages/1/device"),
        ("neighbours", ("stages", 2), None, "/stages"),
        ("neighbours", ("stages", 0, "forward_ticks"), -1, "/stages/0/forward_ticks"),
        ("neighbours", ("stages", 0, "forward_ticks"), 2**61, "2^61 ticks"),
        ("neighbours", ("stages", 0, "handover_ticks"), None, "/stages/0/handover_ticks"),
        ("direct", ("stages", 0, "handovers"), None, "/stages/0"),
        ("direct", ("stages", 1, "handovers"), [[0, 1]], "/stages/1/handovers/0/0"),
        ("direct", ("stages", 0, "handovers"), [[1, 0], [1, 0]], "/stages/0/handovers/1/0"),
        ("direct", ("stages", 0, "handovers"), [[1]], "/stages/0/handovers/0"),
        ("neighbours", ("model", "name"), 5, "/model/name"),
        ("neighbours", ("feasible",), False, "/"),
        ("neighbours", ("iteration_ticks",), 1, "/iteration_ticks"),
    ],
)
def test_broken_plans_of_split_points(transport: Any, keys: tuple[Any, ...], value: Any, where: str) -> None:
    """Whatever is wrong is said with its place."""
    sizes: dict[str, Any] = {"devices": 3, "micro_batches": 3, "loops": [1]}
    plan = plan_with(line_of_ops(15), planner="pfeife", transport=transport, **sizes).document()
    assert where in str(refusal(mtpp.simulate, _changed(plan, keys, value)))


@pytest.mark.parametrize("given", [{"model": {}}, {"batch_size": 1}, {"micro_batch_size": 1}, {"time_unit": "ms"}])
def test_plans_of_split_points_say_all_themselves(given: dict[str, Any]) -> None:
    """Whatever is said besides is refused by its name."""
    plan = plan_with(line_of_ops(6), planner="pfeife", devices=2, micro_batches=2).document()
    assert refusal(mtpp.simulate, plan, **given).parameter == next(iter(given))
