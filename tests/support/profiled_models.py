"""Small models that are run and measured, and events as the profiler of ONNX Runtime writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx_text import built


def chain(length: int = 3, size: int = 64) -> onnx.ModelProto:
    """Return matrix products one after the other, without names of nodes, and a folded node before them."""
    weights = {f"w{i}": np.eye(size, dtype=np.float32) for i in range(length)}
    tensors = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    products = [f"{tensors[i + 1]} = MatMul({tensors[i]}, {f'w{i}' if i else 'v0'})" for i in range(length)]
    nodes = " ".join(["v0 = Neg(w0)", *products])
    return built(nodes, {"x": ["batch", size]}, ["y"], weights)


def data_dependent() -> onnx.ModelProto:
    """Return a model in which a size depends on the data: what NonZero finds."""
    nodes = f"[same] r = Relu(x) [same] found = NonZero(r) y = Cast <to = {TensorProto.FLOAT}>(found)"
    return built(nodes, {"x": [2, 8]}, ["y"])


def looped() -> onnx.ModelProto:
    """Return a model with a loop of three trips over a body of two nodes."""
    nodes = (
        'r = Relu(x) [loop] y = Loop(trips, "", r) <body = b (int64 i, bool c, float[8] state) => '
        "(bool go, float[8] next) { next = Add(state, state) go = Identity(c) }>"
    )
    return built(nodes, {"x": [8]}, ["y"], {"trips": np.array(3)})


def convolutions() -> onnx.ModelProto:
    """Return two convolutions, each with an activation that can be fused into it, and a sum around the second."""
    weights = {f"w{i}": np.full((32, 32, 3, 3), 0.01, dtype=np.float32) for i in range(2)}
    nodes = (
        "[first] a = Conv <pads = [1, 1, 1, 1]>(x, w0) [relu] b = Relu(a) "
        "[second] c = Conv <pads = [1, 1, 1, 1]>(b, w1) [sum] d = Add(c, b) "
        "[last] e = Relu(d) [through] y = Identity(e)"
    )
    return built(nodes, {"x": [1, 32, 4, 4]}, ["y"], weights)


def half_precision() -> onnx.ModelProto:
    """Return a model in half precision with an op that ONNX Runtime has no kernel for: casts and a body are put in."""
    weights = {"w": np.eye(64, dtype=np.float16)}
    nodes = (
        f"h = Cast <to = {TensorProto.FLOAT16}>(x) [product] p = MatMul(h, w) [mish] m = Mish(p) "
        f"[back] y = Cast <to = {TensorProto.FLOAT}>(m)"
    )
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
