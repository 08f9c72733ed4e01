"""``mtpp.api.split`` and ``mtpp.api.emit``: the command's stages in Python, and parameters refused at the door."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_strategies import chain
from onnx import TensorProto, helper
from onnx_text import built, nodes_of, typed
from processes import printed, run
from random_onnx_models import random_model

import mtpp
from mtpp.api.emit import emit
from mtpp.api.inputs.model import read_model
from mtpp.api.options.reading import Reading
from mtpp.api.run_pipeline import run_pipeline
from mtpp.api.split import SplitResult, split
from mtpp.errors import InputError, InvalidPartition
from mtpp.formats.graphs.native import write_native

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small model that has a symbolic dimension, and a plan for two rows."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "model.onnx").write_bytes(random_model(1).SerializeToString())
    plan = ("--algorithm", "slice", "-o", "plan.json")  # in the model's own order, as some programs need it
    printed("partition", "model.onnx", "-k", "3", "--dim", "rows=2", *plan, cwd=folder)
    return folder


def _files(folder: str | Path | None) -> dict[str, bytes]:
    assert folder is not None
    return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


def test_the_stages_are_the_command_s(planned: Path, tmp_path: Path) -> None:
    """Byte for byte, whatever form the plan has; so is the document but for the folder's name."""
    done = run("split", "model.onnx", "plan.json", "-o", tmp_path / "due", "--check", "--format", "json", cwd=planned)
    due = json.loads(done.stdout)
    model, text = planned / "model.onnx", (planned / "plan.json").read_text()
    results: list[SplitResult] = []
    for plan in (planned / "plan.json", text.encode(), json.loads(text)):
        folder = tmp_path / f"stages-{len(results)}"
        results.append(split(model, plan, folder, check=True))
        assert _files(results[-1].folder) == _files(tmp_path / "due")
        assert results[-1].document() == due | {"folder": str(folder)}
        assert results[-1].passed is True
    table = run("split", "model.onnx", "plan.json", "--check", cwd=planned).stdout
    checked = split(model, planned / "plan.json", check=True)
    assert (checked.folder, f"{checked!r}\n") == (None, table)


def test_stages_by_name_of_op_are_split_and_run(planned: Path, tmp_path: Path) -> None:
    """What a split returns can be run as a pipeline; nothing was checked."""
    stages = json.loads((planned / "plan.json").read_text())["assignment"]
    model = read_model(str(planned / "model.onnx"), Reading(dims={"rows": 2}), print)
    parts = split(model, stages, tmp_path / "stages")
    assert parts.passed is None
    with pytest.warns(UserWarning, match="the prediction is of another machine"):
        run_of_parts = run_pipeline(parts, batches=2, warmup=0)
    assert run_of_parts.agrees
    assert len(run_of_parts.stages) == len(parts.manifest.stages)


def test_a_folder_that_holds_stages_is_replaced_only_by_force(planned: Path, tmp_path: Path) -> None:
    """The message names the parameter."""
    split(planned / "model.onnx", planned / "plan.json", tmp_path / "stages")
    with pytest.raises(InputError, match="holds stages already; choose another folder, or force"):
        split(planned / "model.onnx", planned / "plan.json", tmp_path / "stages")
    split(planned / "model.onnx", planned / "plan.json", tmp_path / "stages", force=True)


def test_plans_of_other_sizes_and_without_ops(planned: Path, tmp_path: Path) -> None:
    """Sizes are the plan's; every op needs a stage."""
    with pytest.raises(InputError, match="the plan was made for rows = 2") as caught:
        split(planned / "model.onnx", planned / "plan.json", tmp_path / "stages", dims={"rows": 3})
    assert caught.value.parameter == "dims"
    with pytest.raises(InvalidPartition, match="have no stage"):
        split(planned / "model.onnx", {}, tmp_path / "stages", dims={"rows": 2})
    assert not (tmp_path / "stages").exists()


def test_other_programs_get_what_the_command_prints(planned: Path, tmp_path: Path) -> None:
    """Of an ONNX model and of a graph; several forms give one text."""
    forms = ["cut-names", "tflite-segments"]
    due = run("split", "model.onnx", "plan.json", "--emit", forms[0], "--emit", forms[1], cwd=planned).stdout
    assert emit(planned / "model.onnx", planned / "plan.json", forms) == due
    plan, chain_file = tmp_path / "plan.json", tmp_path / "chain.json"
    chain_file.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    assert run("partition", chain_file, "-k", "2", "-o", plan).returncode == 0
    assert json.loads(emit(chain_file, json.loads(plan.read_text()), "tflite-segments"))["num_ops"] == "3,1"
    with pytest.raises(InputError, match="unknown form 'onnx'; use one of cut-names, torch") as caught:
        emit(chain_file, plan, "onnx")
    assert caught.value.parameter == "form"


def _branch(name: str, size: int) -> str:
    """Return a body that takes windows of some size, of which exactly one may be left."""
    return (
        f"{name} () => (float {name}_y) {{ [{name}_conv] {name}_c = Conv <strides = [{size}]>(u, {name}_W) "
        f"[{name}_squeeze] {name}_y = Squeeze({name}_c, {name}_axis) }}"
    )


def _model() -> onnx.ModelProto:
    nodes = nodes_of(
        "[unsqueeze] w = Unsqueeze(x, one) [relu] u = Relu(w) [is_fast] is_fast = Equal(rate, fast) [choose] "
        f"z = If(is_fast) <then_branch = {_branch('t', 256)}, else_branch = {_branch('e', 64)}> [neg] y = Neg(z)"
    )
    for name, size, attribute in zip("te", (256, 64), nodes[3].attribute, strict=True):
        attribute.g.output[0].CopyFrom(typed(f"{name}_y", None))
        weight = helper.make_tensor(f"{name}_W", TensorProto.FLOAT, [4, 1, size], [0.01 * i for i in range(4 * size)])
        attribute.g.initializer.extend([weight, helper.make_tensor(f"{name}_axis", TensorProto.INT64, [1], [2])])
    inputs = {"x": ["batch", "samples"], "rate": (TensorProto.INT64, [])}
    return built(nodes, inputs, {"y": None}, {"one": np.array([1]), "fast": np.int64(16000)}, opset=17)


@pytest.mark.parametrize(("samples", "left_out", "rate"), [(256, "else", 16000), (64, "then", 0)])
def test_stages_load_and_compute_the_same(tmp_path: Path, samples: int, left_out: str, rate: int) -> None:
    """ONNX Runtime refuses a branch that contradicts the sizes it knows: stages with such a node declare none."""
    path = tmp_path / "rates.onnx"
    onnx.save(_model(), path)
    model = mtpp.read(path, dims={"batch": 2, "samples": samples})
    assert model.graph.metadata["assumptions"][0].startswith(f"choose: {left_out}_branch cannot run")
    parts = {"unsqueeze": 0, "relu": 0, "is_fast": 0, "choose": 1, "neg": 2}
    plan = mtpp.evaluate(model, parts)
    split = mtpp.split(model, plan, tmp_path / "stages", check=True)
    assert split.passed
    assert split.manifest.inputs[1].limits == (rate, rate)
    assert mtpp.run_pipeline(tmp_path / "stages", batches=2, warmup=0).agrees
