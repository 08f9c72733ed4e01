"""Stages hand on tensors whose sizes only a run tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mtpp
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.runtime.pipeline.crew import RunLimits
from mtpp.runtime.pipeline.measuring import measure
from mtpp.runtime.pipeline.run_request import RunRequest

pytest.importorskip("onnxruntime")

ENDLESS = RunLimits(Deadline(), lambda: False)


def _split(tmp_path: Path, *, random: bool = False) -> tuple[Path, Path]:
    """Return a model that keeps the rows which are positive, and its stages, cut before and behind."""
    source = helper.make_node("RandomNormal", [], ["drawn"], shape=[64]) if random else None
    marks = "drawn" if random else "row"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("ReduceSum", ["h", "axes"], ["row"], keepdims=0, name="sum"),
        *([source] if source else []),
        helper.make_node("Greater", [marks, "zero"], ["kept"], name="mark"),
        helper.make_node("Compress", ["h", "kept"], ["open"], axis=0, name="compress"),
        helper.make_node("Relu", ["open"], ["y"], name="relu"),
        helper.make_node("Neg", ["y"], ["z"], name="neg"),
    ]
    weights = {
        "w": np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32),
        "axes": np.array([1]),
        "zero": np.float32(0),
    }
    graph = helper.make_graph(
        nodes,
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 8])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8]) for name in ("z", "y")],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    reading = mtpp.read(path, dims="auto")
    plan = {name: int(name in ("relu",)) + 2 * (name == "neg") for name in reading.graph.op_names}
    assert mtpp.split(reading, plan, tmp_path / "stages", check=True).passed
    return path, tmp_path / "stages"


def test_sizes_differ_between_batches(tmp_path: Path) -> None:
    """Every batch has a number of rows of its own, in the pipeline as in the model."""
    model, stages = _split(tmp_path)
    measured = measure(RunRequest(stages, model, batches=20, warmup=1), ENDLESS)
    assert measured.agrees
    assert measured.whole is not None
    assert (measured.whole[1].compared, measured.whole[1].exact) == (4, 4)
    assert (measured.pipeline.agreement.compared, measured.pipeline.agreement.exact) == (40, 40)  # of two stages


def test_random_sizes_have_room(tmp_path: Path) -> None:
    """A batch may have more rows than those that were measured."""
    _, stages = _split(tmp_path, random=True)
    measured = measure(RunRequest(stages, batches=30), ENDLESS)
    assert measured.agrees
    assert not measured.repeatable


def test_too_much_for_its_room_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage's worker refuses, and the tensor is named."""
    _, stages = _split(tmp_path)
    monkeypatch.setattr("mtpp.runtime.pipeline.measuring.rooms", lambda *_: {"open": 4, "y": 4, "z": 4})
    with pytest.raises(InputError, match=r"tensor '.*': it takes .* B, more than in the runs before"):
        measure(RunRequest(stages, batches=2, warmup=0), ENDLESS)
