"""Weights that contradict the size of the tensor that they meet: refused here as by ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_text import nodes_of
from stage_equality import runtime_version

from mtpp.errors import InputError
from mtpp.formats.onnx import read_onnx
from mtpp.machine.presets import load_device

CASES: list[tuple[str, int, list[int], list[list[int]], dict[str, Any]]] = [
    ("Gemm", 13, [2, 8], [[8, 4], [4]], {}),
    ("Gemm", 13, [8, 2], [[4, 8], [2, 1]], {"transA": 1, "transB": 1}),
    ("MatMul", 13, [2, 3, 8], [[2, 8, 4]], {}),
    ("Conv", 13, [1, 4, 9, 9], [[6, 2, 3, 3], [6]], {"group": 2, "kernel_shape": [3, 3]}),
    ("ConvTranspose", 13, [1, 4, 9, 9], [[4, 3, 3, 3], [6]], {"group": 2, "kernel_shape": [3, 3]}),
    ("BatchNormalization", 15, [1, 4, 9, 9], [[4]] * 4, {}),
    ("InstanceNormalization", 13, [1, 4, 9, 9], [[4]] * 2, {}),
    ("LayerNormalization", 17, [2, 3, 8], [[8]] * 2, {}),
    ("PRelu", 13, [2, 4, 5], [[4, 1]], {}),
    ("LSTM", 14, [5, 2, 8], [[1, 24, 8], [1, 24, 6], [1, 48]], {"hidden_size": 6}),
    ("GRU", 14, [5, 2, 8], [[2, 18, 8], [2, 18, 6], [2, 36]], {"hidden_size": 6, "direction": "bidirectional"}),
    ("RNN", 14, [5, 2, 8], [[1, 6, 8], [1, 6, 6]], {"hidden_size": 6}),
    ("Einsum", 13, [2, 3, 8], [[8, 4]], {"equation": "abc,cd->abd"}),
    ("com.microsoft:FusedMatMul", 13, [2, 3, 8], [[4, 8]], {"transB": 1}),
    ("com.microsoft:FusedConv", 13, [1, 4, 9, 9], [[6, 4, 3, 3], [6]], {"activation": "Relu"}),
    ("com.microsoft:BiasGelu", 13, [2, 3, 8], [[8]], {}),
]


def _model(kind: str, opset: int, shape: list[int], weights: list[list[int]], attributes: dict[str, Any]) -> bytes:
    domain, _, op = kind.rpartition(":")
    names = [f"w{index}" for index in range(len(weights))]
    node = helper.make_node(op, ["x", *names], ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(w, np.float32), name) for name, w in zip(names, weights, strict=True)],
    )
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def _runs(model: bytes, shape: list[int]) -> bool:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": np.ones(shape, np.float32)})
    except Exception:  # its exceptions have no common class of their own
        return False
    return True


@pytest.mark.parametrize(("kind", "opset", "shape", "weights", "attributes"), CASES)
def test_a_weight_of_another_size_is_refused(
    kind: str, opset: int, shape: list[int], weights: list[list[int]], attributes: dict[str, Any]
) -> None:
    """Each axis of each weight one longer: read exactly where ONNX Runtime runs it."""
    if kind == "ConvTranspose" and runtime_version() < (1, 32):
        pytest.skip("ONNX Runtime 1.23 reads beyond the bias of a transposed convolution")
    read_onnx(None, _model(kind, opset, shape, weights, attributes), source="m", system=load_device())
    for number, weight in enumerate(weights):
        for axis in range(len(weight)):
            changed = [list(one) for one in weights]
            changed[number][axis] += 1
            model = _model(kind, opset, shape, changed, attributes)
            if _runs(model, shape):
                read_onnx(None, model, source="m", system=load_device())
            else:
                with pytest.raises(InputError, match=r"do not fit|meet columns|ncompatible"):
                    read_onnx(None, model, source="m", system=load_device())


def test_a_pooled_picture_that_a_weight_contradicts_is_refused() -> None:
    """Flattened windows are counted as they run: 27 numbers meet a weight for 27, and none for 48."""
    for rows in (27, 48):
        nodes = nodes_of(
            "p = AveragePool <kernel_shape = [2, 2], strides = [3, 3], ceil_mode = 1> (x) f = Flatten(p) y = Gemm(f, w)"
        )
        graph = helper.make_graph(
            nodes,
            "pooled",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 9, 9])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 8])],
            [numpy_helper.from_array(np.ones((rows, 8), np.float32), "w")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8).SerializeToString()
        if rows == 27:
            read_onnx(None, model, source="m", system=load_device())
        else:
            with pytest.raises(InputError, match="rows of 27 meet columns of 48"):
                read_onnx(None, model, source="m", system=load_device())
