"""Small models that are run and measured, and events as the profiler of ONNX Runtime writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper


def built(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: list[str],
    weights: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """Return a model of float inputs; outputs are declared without a shape."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    for value in graph.output:
        value.ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def chain(length: int = 3, size: int = 64) -> onnx.ModelProto:
    """Return matrix products one after the other, without names of nodes, and a folded node before them."""
    weights = {f"w{i}": np.eye(size, dtype=np.float32) for i in range(length)}
    nodes = [helper.make_node("Neg", ["w0"], ["v0"])]
    tensors = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    for i in range(length):
        nodes.append(helper.make_node("MatMul", [tensors[i], f"w{i}" if i else "v0"], [tensors[i + 1]]))
    return built(nodes, {"x": ["batch", size]}, ["y"], weights)


def data_dependent() -> onnx.ModelProto:
    """Return a model in which a size depends on the data: what NonZero finds."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="same"),
        helper.make_node("NonZero", ["r"], ["found"], name="same"),
        helper.make_node("Cast", ["found"], ["y"], to=TensorProto.FLOAT),
    ]
    return built(nodes, {"x": [2, 8]}, ["y"])


def looped() -> onnx.ModelProto:
    """Return a model with a loop of three trips over a body of two nodes."""
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "state"], ["next"]), helper.make_node("Identity", ["c"], ["go"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [8]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [8]),
        ],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Loop", ["trips", "", "r"], ["y"], body=body, name="loop"),
    ]
    return built(nodes, {"x": [8]}, ["y"], {"trips": np.array(3)})


def convolutions() -> onnx.ModelProto:
    """Return two convolutions, each with an activation that can be fused into it, and a sum around the second."""
    weights = {f"w{i}": np.full((32, 32, 3, 3), 0.01, dtype=np.float32) for i in range(2)}
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="first", **same),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w1"], ["c"], name="second", **same),
        helper.make_node("Add", ["c", "b"], ["d"], name="sum"),
        helper.make_node("Relu", ["d"], ["e"], name="last"),
        helper.make_node("Identity", ["e"], ["y"], name="through"),
    ]
    return built(nodes, {"x": [1, 32, 4, 4]}, ["y"], weights)


def half_precision() -> onnx.ModelProto:
    """Return a model in half precision with an op that ONNX Runtime has no kernel for: casts and a body are put in."""
    weights = {"w": np.eye(64, dtype=np.float16)}
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["h", "w"], ["p"], name="product"),
        helper.make_node("Mish", ["p"], ["m"], name="mish"),
        helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT, name="back"),
    ]
    return built(nodes, {"x": [4, 64]}, ["y"], weights)


def kernel(
    name: str, ts: int, dur: Any, kind: str = "Relu", index: int = 0, tid: int = 1, **args: Any
) -> dict[str, Any]:
    """Return the event of a kernel."""
    described = {"op_name": kind, "node_index": str(index), "provider": "CPUExecutionProvider"}
    return {
        "cat": "Node", "pid": 1, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": f"{name}_kernel_time",
        "args": {**described, "output_type_shape": [{"float": [2, 3]}], **args},
    }  # fmt: skip


def run(ts: int, dur: int, tid: int = 1) -> dict[str, Any]:
    """Return the event of a whole run."""
    return {"cat": "Session", "pid": 1, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": "model_run", "args": {}}
