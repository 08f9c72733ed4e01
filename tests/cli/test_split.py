"""``mtpp split`` as a process: what it writes, prints and refuses."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper
from onnx_text import built
from processes import MTPP, environment, printed, refused, run
from random_onnx_models import random_model

from mtpp.api.inputs.stage_plan import PlanFiles, PlannedModel, read_planned_model
from mtpp.cli.flags import flag_of
from mtpp.cli.split import command
from mtpp.cli.terminal.console import Console
from mtpp.errors import InputError, InvalidPartition, MtppError
from mtpp.formats.onnx import read_onnx
from mtpp.formats.results.split import SplitCheck
from mtpp.formats.results.stage_manifest import read_manifest
from mtpp.machine.presets import load_device

pytest.importorskip("onnxruntime")

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_MODELS = sorted(path.stem for path in LIGHT.glob("*.onnx"))
RUNS_ALL = """
import json, sys, numpy as np, onnxruntime
folder = sys.argv[1]
stages = json.load(open(folder + "/manifest.json"))["stages"]
live = {}
for stage in stages:
    session = onnxruntime.InferenceSession(folder + "/" + stage["file"])
    assert [i.name for i in session.get_inputs()] == [i["name"] for i in stage["inputs"]]
    assert [i.shape for i in session.get_inputs()] == [i["shape"] for i in stage["inputs"]]
    for i in stage["inputs"]:
        live.setdefault(i["name"], np.ones(i["shape"], i["dtype"]))
    names = [o["name"] for o in stage["outputs"]]
    live.update(zip(names, session.run(names, {i["name"]: live[i["name"]] for i in stage["inputs"]})))
assert all(np.isfinite(live[o["name"]]).all() for o in stages[-1]["outputs"])
print(len(stages))
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small model that has a symbolic dimension, and a plan for two rows."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "model.onnx").write_bytes(random_model(1).SerializeToString())
    printed("partition", "model.onnx", "-k", "3", "--dim", "rows=2", "-o", "plan.json", cwd=folder)
    return folder


def _split(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run ``mtpp split ARGUMENTS`` in this process."""
    return CliRunner().invoke(command, [str(argument) for argument in arguments], input=stdin)


def _assign(model: Path, k: int, target: Path) -> None:
    """Write an assignment of a model's ops to k stages, in the order of the file."""
    graph = read_onnx(model, model.read_bytes(), source=model.name, system=load_device())
    names = [graph.op_names[v] for v in graph.order.tolist()]
    target.write_text(json.dumps({name: i * k // len(names) for i, name in enumerate(names)}))


@pytest.fixture
def model(planned: Path, tmp_path: Path) -> Path:
    """Return a copy of the model, with the plan beside it."""
    shutil.copytree(planned, tmp_path, dirs_exist_ok=True)
    return tmp_path / "model.onnx"


def _read(model: Path, **dims: int) -> PlannedModel:
    """Read the model and the plan beside it, warnings being errors."""
    console = Console(quiet=False, verbose=False)
    console.warn = pytest.fail  # type: ignore[method-assign]
    return read_planned_model(PlanFiles(str(model), str(model.with_name("plan.json")), dims), console)


def _told(failed: Result) -> str:
    """Return what the command line says of a failure."""
    assert isinstance(failed.exception, MtppError)
    return failed.exception.told(flag_of)


def _edit(plan: Path, key: str, value: object) -> None:
    document = json.loads(plan.read_text())
    *parents, last = key.split("/")
    place = document
    for part in parents:
        place = place[int(part) if isinstance(place, list) else part]
    place[last] = value
    plan.write_text(json.dumps(document))


def test_a_stage_that_fails_is_a_failed_check(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, in text and JSON, and the exit code is that of a comparison that failed."""
    failure = "stage-1.onnx: ONNX Runtime cannot run it: so it says"
    found = SplitCheck((), (), 0, 0, 2, (), failure)
    monkeypatch.setattr("mtpp.runtime.guarded.guarded", lambda *arguments, **others: found)
    done = _split(model, model.with_name("plan.json"), "--check")
    assert done.exit_code == 1
    assert f"FAILED: {failure}" in " ".join(done.stdout.split())
    assert done.stderr.endswith(f"error: {failure}\n")
    done = _split(model, model.with_name("plan.json"), "--check", "--format", "json")
    check = json.loads(done.stdout)["check"]
    assert (done.exit_code, check["passed"], check["failure"]) == (1, False, failure)


def test_stages_and_what_is_said_of_them(model: Path, tmp_path: Path) -> None:
    """The folder, the table and the JSON tell of the same stages, and the check says that they are right."""
    done = run("split", model, "plan.json", "-o", "stages", "--check", cwd=tmp_path)
    unreached = r"warning: the else_branch of If 'a/b\\t26' ran for none of 16 inputs: it was not compared"
    assert (done.returncode, done.stderr) == (0, unreached + "\n")
    manifest = read_manifest(tmp_path / "stages")
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (manifest.sha256, manifest.k, manifest.bottleneck) == (plan["model"]["sha256"], 3, plan["bottleneck"])
    assert manifest.work == sum(stage["work"] for stage in plan["stages"])
    for stage in manifest.stages:
        row = plan["stages"][stage.index]
        assert (stage.ops, stage.cost, stage.work) == (row["ops"], row["cost"], row["work"])
        assert stage.file in done.stdout
    assert f"all {len(manifest.outputs)} outputs are the same bit for bit" in done.stdout
    document = json.loads(_split(model, tmp_path / "plan.json", "--check", "--format", "json").stdout)
    assert (document["format"], document["version"], document["folder"]) == ("mtpp-split", 1, None)
    assert document["check"]["passed"]
    assert [row["file"] for row in document["stages"]] == [stage.file for stage in manifest.stages]
    table = _split(model, tmp_path / "plan.json", "-o", tmp_path / "stages", "--force", "--format", "csv")
    assert [row["cost"] for row in csv.DictReader(table.stdout.splitlines())] == [
        str(stage.cost) for stage in manifest.stages
    ]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.onnx", "plan.json", "stages"]


def test_an_assignment_and_standard_input(model: Path, tmp_path: Path) -> None:
    """A plan may come through a pipe; a bare assignment needs the sizes that a plan brings."""
    plan = tmp_path / "plan.json"
    done = _split(model, "-", "-o", tmp_path / "a", stdin=plan.read_bytes())
    assert done.exit_code == 0, done.output
    (tmp_path / "hand.json").write_text(json.dumps(json.loads(plan.read_text())["assignment"]))
    assert isinstance(_split(model, tmp_path / "hand.json", "-o", tmp_path / "b").exception, InputError)
    done = _split(model, tmp_path / "hand.json", "-o", tmp_path / "b", "--dim", "rows=2")
    assert done.exit_code == 0, done.output
    for name in ("stage-0.onnx", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model/sha256", "0" * 64, None),  # another graph of the same ops
        ("model/ops", 3, "/model/ops: the plan is about a graph with 3 ops"),
        ("model/dims", {"rows": 2, "more": 1}, "/model/dims: names dimensions that the model has not"),
        ("model/dims", {"rows": 0}, "/model/dims/rows: 0 is no size"),
        ("stages/0/ops", 1000, "/stages/0: contradicts the assignment"),
        ("stages/0/cost", -1, "/stages/0/cost: -1 is below zero"),
        ("stages", [], "/stages: 0 stages, but k is 3"),
        ("bottleneck", 1, "/bottleneck: contradicts the stages"),
        ("assignment", {}, "ops have no stage"),
        ("k", 10**9, "/k: 1000000000 is no number of stages"),
        ("version", 2, "/version"),
    ],
)
def test_plans_that_do_not_fit_are_refused(key: str, value: object, message: str | None, model: Path) -> None:
    """One line that names the place; a graph of the same ops with other costs is taken."""
    _edit(model.with_name("plan.json"), key, value)
    if message is None:
        assert _read(model).plan.k == 3
    else:
        with pytest.raises((InputError, InvalidPartition)) as caught:
            _read(model)
        assert message in str(caught.value)


def test_a_plan_for_another_model(model: Path) -> None:
    """It is refused; so are a model that is none and sizes that are not the plan's."""
    other = model.with_name("other.onnx")
    other.write_bytes(random_model(2).SerializeToString())
    assert refused("split", "other.onnx", "plan.json", "-o", "stages", cwd=model.parent) == (
        "error: plan.json: /model/sha256: the plan belongs to another model than other.onnx; "
        "give the model that it was made from, or plan anew\n"
    )
    assert sorted(entry.name for entry in model.parent.iterdir()) == ["model.onnx", "other.onnx", "plan.json"]
    with pytest.raises(InputError, match="neither an ONNX model nor an exported PyTorch program"):
        _read(model.with_name("plan.json"))
    with pytest.raises(InputError, match="the plan was made for rows = 2"):
        _read(model, rows=3)


def _chain(*kinds: str) -> onnx.ModelProto:
    """Return a model of unary ops from x to y, 64 floats."""
    names = ["x", *(f"t{i}" for i in range(len(kinds) - 1)), "y"]
    nodes = " ".join(f"[n{i}] {names[i + 1]} = {kind}({names[i]})" for i, kind in enumerate(kinds))
    return built(nodes, {"x": [64]}, {"y": [64]}, opset=20, ir_version=10)


def test_stages_that_compute_something_else_fail_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, and how far off they are; the stages are there to be looked at."""
    from mtpp.runtime import guarded

    onnx.save(_chain("Tanh", "Neg"), tmp_path / "m.onnx")
    (tmp_path / "a.json").write_text(json.dumps({"n0": 0, "n1": 1}))
    compare = guarded.guarded

    def sabotaged(function: str, arguments: dict[str, Any], *others: Any) -> Any:
        manifest, stages = arguments["manifest"], arguments["stages"]
        onnx.save(_chain("Tanh"), stages / "stage-1.onnx")
        stage = onnx.load(stages / "stage-1.onnx")
        stage.graph.node[0].input[0] = stage.graph.input[0].name = manifest.stages[1].inputs[0].name
        onnx.save(stage, stages / "stage-1.onnx")
        return compare(function, arguments, *others)

    monkeypatch.setattr(guarded, "guarded", sabotaged)
    done = _split(tmp_path / "m.onnx", tmp_path / "a.json", "-o", tmp_path / "stages", "--check")
    assert done.exit_code == 1
    assert "error: the outputs of the stages are not those of the whole model" in done.output
    assert "FAILED: 0 of 1 output the same bit for bit; largest difference 1." in done.output
    assert (tmp_path / "stages" / "manifest.json").exists()


def test_a_check_without_room_for_the_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages that are checked only lie in a temporary folder: one line says that it is full."""
    from mtpp.formats.onnx.stages.splitting import DataFiles

    def full(self: DataFiles, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DataFiles, "copy", full)
    onnx.save(_chain("Tanh", "Neg"), tmp_path / "m.onnx")
    (tmp_path / "a.json").write_text(json.dumps({"n0": 0, "n1": 1}))
    done = _split(tmp_path / "m.onnx", tmp_path / "a.json", "--check")
    assert isinstance(done.exception, InputError)
    assert "cannot be written: No space left on device; set TMPDIR to a folder with room" in str(done.exception)


def test_random_numbers_cannot_be_compared(tmp_path: Path) -> None:
    """The check says so, and compares types and shapes."""
    onnx.save(_chain("RandomNormalLike", "Relu"), tmp_path / "m.onnx")
    (tmp_path / "a.json").write_text(json.dumps({"n0": 0, "n1": 1}))
    done = _split(tmp_path / "m.onnx", tmp_path / "a.json", "--check")
    assert done.exit_code == 0, done.output
    assert "draws random numbers: only types and shapes" in done.stderr
    assert "the values are random" in done.stdout


def test_a_model_that_gives_others_every_time_cannot_be_compared(tmp_path: Path) -> None:
    """A Dropout that trains draws random numbers though most do not: running the model twice tells."""
    model = _chain("Relu", "Dropout")
    model.graph.initializer.append(helper.make_tensor("ratio", TensorProto.FLOAT, [], [0.5]))
    model.graph.initializer.append(helper.make_tensor("training", TensorProto.BOOL, [], [True]))
    model.graph.node[1].input.extend(["ratio", "training"])
    onnx.save(model, tmp_path / "m.onnx")
    (tmp_path / "a.json").write_text(json.dumps({"n0": 0, "n1": 1}))
    done = _split(tmp_path / "m.onnx", tmp_path / "a.json", "--check")
    assert done.exit_code == 0, done.output
    assert "the model draws random numbers: only types and shapes" in done.stderr


def test_an_interruption_leaves_nothing_behind(tmp_path: Path) -> None:
    """SIGTERM while the stages are written or checked removes what was there of them."""
    model = LIGHT / "light_vgg19.onnx"
    _assign(model, 2, tmp_path / "plan.json")
    process = subprocess.Popen(
        [*MTPP, "split", str(model), "plan.json", "-o", "stages", "--check", "-v"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "running the whole model\n"
    assert len(os.listdir(tmp_path)) == 2
    process.terminate()
    rest = process.stderr.read()
    assert (process.wait(), rest.splitlines()[-1]) == (130, "error: interrupted")
    assert os.listdir(tmp_path) == ["plan.json"]


def test_stages_are_read_in_a_fresh_process(tmp_path: Path) -> None:
    """Another process runs the stages of a real model by their manifest alone."""
    model = LIGHT / "light_squeezenet.onnx"
    _assign(model, 4, tmp_path / "plan.json")
    done = _split(model, tmp_path / "plan.json", "-o", tmp_path / "stages", "--check")
    assert done.exit_code == 0, done.output
    assert "the output is the same bit for bit" in done.stdout
    fresh = subprocess.run([sys.executable, "-c", RUNS_ALL, str(tmp_path / "stages")], capture_output=True, text=True)
    assert (fresh.returncode, fresh.stdout) == (0, "4\n"), fresh.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LIGHT_MODELS if name != "light_vgg19"])
def test_light_models_are_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    """Eight stages of each real model compute what it does."""
    path = LIGHT / f"{name}.onnx"
    _assign(path, 8, tmp_path / "plan.json")
    done = _split(path, tmp_path / "plan.json", "--check")
    assert done.exit_code == 0, done.output
    assert "the output is the same bit for bit" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["efficientnet", "t5-small"])
def test_exports_with_random_weights_are_the_same_bit_for_bit(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Models whose weights are absent are checked with random ones, the same in whole and split."""
    path = shared_data / "onnx" / f"{name}.onnx"
    _assign(path, 4, tmp_path / "plan.json")
    done = _split(path, tmp_path / "plan.json", "-o", tmp_path / "stages", "--check")
    assert done.exit_code == 0, done.output
    assert "weights are absent: checked with random ones" in done.stderr
    assert "are the same bit for bit" in done.stdout


def test_plans_are_handed_over_to_other_programs(model: Path, tmp_path: Path) -> None:
    """--emit prints the plan in another form; with -o the stages are written as well; unknown forms are refused."""
    plan, folder = tmp_path / "plan.json", tmp_path / "stages"
    done = _split(model, plan, "--emit", "cut-names")
    assert [boundary["after"] for boundary in json.loads(done.stdout)["boundaries"]] == [0, 1]
    assert _split(model, plan, "--emit", "cut-names", "-o", folder).stdout == done.stdout
    crossing = {tensor["name"] for boundary in json.loads(done.stdout)["boundaries"] for tensor in boundary["tensors"]}
    stages = read_manifest(folder).stages
    assert crossing == {tensor.name for stage in stages for tensor in stage.outputs if tensor.readers}
    wrong = _split(model, plan, "--emit", "nothing")
    assert "--emit: unknown form 'nothing'; use one of cut-names, torch" in _told(wrong)
