"""Stages of a model with a branch that cannot run with the sizes of the plan: they load, and compute the same."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import mtpp

pytest.importorskip("onnxruntime")

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def _branch(name: str, size: int) -> onnx.GraphProto:
    """Return a body that takes windows of some size, of which exactly one may be left."""
    stored = [
        helper.make_tensor(f"{name}_W", FLOAT, [4, 1, size], [0.01 * i for i in range(4 * size)]),
        helper.make_tensor(f"{name}_axis", INT64, [1], [2]),
    ]
    nodes = [
        node("Conv", ["u", f"{name}_W"], [f"{name}_c"], name=f"{name}_conv", strides=[size]),
        node("Squeeze", [f"{name}_c", f"{name}_axis"], [f"{name}_y"], name=f"{name}_squeeze"),
    ]
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(f"{name}_y", FLOAT, None)], stored)


def _model() -> onnx.ModelProto:
    nodes = [
        node("Unsqueeze", ["x", "one"], ["w"], name="unsqueeze"),
        node("Relu", ["w"], ["u"], name="relu"),
        node("Equal", ["rate", "fast"], ["is_fast"], name="is_fast"),
        node("If", ["is_fast"], ["z"], name="choose", then_branch=_branch("t", 256), else_branch=_branch("e", 64)),
        node("Neg", ["z"], ["y"], name="neg"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, ["batch", "samples"]),
        helper.make_tensor_value_info("rate", INT64, []),
    ]
    constants = [helper.make_tensor("one", INT64, [1], [1]), helper.make_tensor("fast", INT64, [], [16000])]
    graph = helper.make_graph(nodes, "rates", inputs, [helper.make_tensor_value_info("y", FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


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
