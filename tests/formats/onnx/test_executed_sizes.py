"""Sizes of windows, of scaled tensors and of slices, held against runs of ONNX Runtime."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_text import built

from mtpp.errors import InputError
from mtpp.formats.onnx.reader import read_with_nodes
from mtpp.formats.onnx.values import slice_range
from mtpp.machine.presets import load_device

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8


def _model(
    kind: str, shape: list[int], attributes: dict[str, Any], opset: int, stored: dict[str, Any], dtype: int = FLOAT
) -> onnx.ModelProto:
    """Return a model of one node that reads ``x`` and what is stored; empty names are left out."""
    domain, _, op = kind.rpartition(":")
    kept = {name: value for name, value in stored.items() if value is not None}
    node = helper.make_node(op, ["x", *(name if name in kept else "" for name in stored)], ["y"], domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in kept.items()],
    )
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _run_shape(model: onnx.ModelProto) -> tuple[int, ...] | None:
    """Return the shape that ONNX Runtime makes; None if it does not run the model, or makes nothing."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    kind = model.graph.input[0].type.tensor_type
    x = np.ones([dim.dim_value for dim in kind.shape.dim], helper.tensor_dtype_to_np_dtype(kind.elem_type))
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        shape = tuple(session.run(None, {"x": x})[0].shape)
    except Exception:  # its exceptions have no common class of their own
        return None
    return shape if all(shape) else None


def _told_shape(model: onnx.ModelProto) -> tuple[int, ...]:
    found = read_with_nodes(None, model.SerializeToString(), source="m", system=load_device(), propose_sizes=False)
    known = found.scope.find("y")
    assert known is not None
    return known.type.shape


def _window(draw: random.Random, rank: int, kernel: list[int], dilated: bool) -> dict[str, Any]:
    """Draw attributes of a window; no gaps with padding that the runtime chooses, which can divide it by zero."""
    mode = draw.choice(["NOTSET"] * 3 + ["SAME_UPPER", "SAME_LOWER", "VALID"])
    drawn: dict[str, Any] = {} if mode == "NOTSET" else {"auto_pad": mode}
    if draw.random() < 0.8:
        drawn["strides"] = [draw.randint(1, 4) for _ in range(rank)]
    if mode == "NOTSET" and draw.random() < 0.8:
        drawn["pads"] = [draw.randint(0, size - 1) for size in kernel * 2]
    if dilated and not mode.startswith("SAME") and draw.random() < 0.4:
        drawn["dilations"] = [draw.randint(1, 3) for _ in range(rank)]
    return drawn


_POOLS = {
    "AveragePool": (7, 10, 11, 19, 21, 22),
    "LpPool": (7, 11, 18, 22),
    "MaxPool": (7, 8, 10, 11, 12, 21, 22),
    "com.microsoft:MaxpoolWithMask": (12,),
    "com.microsoft:NhwcMaxPool": (12,),
    "com.microsoft:QLinearAveragePool": (12,),
    "com.microsoft.nchwc:MaxPool": (12,),
}
_CEILING = {"AveragePool": 10, "LpPool": 18, "MaxPool": 10, "com.microsoft:MaxpoolWithMask": 99}
_GAPS = {"AveragePool": 19, "LpPool": 18, "MaxPool": 10, "com.microsoft:NhwcMaxPool": 1}


def _pool(draw: random.Random, kind: str) -> onnx.ModelProto:
    rank = 2 if ":" in kind else draw.randint(1, 3)
    opset = draw.choice(_POOLS[kind])
    sizes, kernel = ([draw.randint(1, most) for _ in range(rank)] for most in (13, 5))
    attributes = {"kernel_shape": kernel, **_window(draw, rank, kernel, opset >= _GAPS.get(kind, 99))}
    if opset >= _CEILING.get(kind, 0):
        attributes["ceil_mode"] = draw.choice([0, 1, 1])
    last = kind.endswith("NhwcMaxPool")
    stored: dict[str, Any] = {}
    if kind.endswith("MaxpoolWithMask"):
        stored = {"m": np.ones((1, 16, *sizes), np.int32)}
    if kind.endswith("QLinearAveragePool"):
        last = draw.random() < 0.5
        attributes["channels_last"] = int(last)
        scale, zero = np.float32(0.5), np.uint8(1)
        stored = {"s": scale, "z": zero, "t": scale, "u": zero}
    shape = [1, *sizes, 16] if last else [1, 16, *sizes]
    quantised = kind.startswith("com.microsoft:") and not stored.get("m", np.zeros(0)).size
    return _model(kind, shape, attributes, opset, stored, UINT8 if quantised else FLOAT)


def _transposed(draw: random.Random) -> onnx.ModelProto:
    rank = draw.randint(1, 3)
    sizes, kernel = ([draw.randint(1, most) for _ in range(rank)] for most in (9, 4))
    attributes = _window(draw, rank, kernel, dilated=True)
    strides = attributes.get("strides", [1] * rank)
    if draw.random() < 0.4:
        attributes["output_padding"] = [draw.randint(0, stride - 1) for stride in strides]
    if draw.random() < 0.3:
        attributes["output_shape"] = [size * stride for size, stride in zip(sizes, strides, strict=True)]
        if draw.random() < 0.3:
            attributes["output_shape"] = [1, 4, *attributes["output_shape"]]
    attributes["group"] = draw.choice([1, 2])
    weight = np.ones((2, 4 // attributes["group"], *kernel), np.float32)
    return _model("ConvTranspose", [1, 2, *sizes], attributes, draw.choice([7, 11, 21, 22]), {"w": weight})


def _scaled(draw: random.Random) -> onnx.ModelProto:
    opset = draw.choice([7, 9, 10, 11, 13, 18, 19, 22])
    shape = [1, 2, draw.randint(1, 12), draw.randint(1, 12)]
    smallest = 10 if opset < 10 else 3
    scales = np.array([1, 1, *(draw.randint(smallest, 30) / 10 for _ in range(2))], np.float32)
    if opset < 9:
        return _model("Upsample", shape, {"scales": [float(one) for one in scales]}, opset, {})
    if opset < 11:
        return _model("Resize" if opset == 10 else "Upsample", shape, {}, opset, {"s": scales})
    region = np.zeros(0, np.float32) if opset == 11 else None
    attributes: dict[str, Any] = {}
    axes = draw.choice([[2, 3], [3, 2], [-1, -2], [-2, 3]]) if opset >= 18 and draw.random() < 0.6 else None
    if axes:
        attributes["axes"] = axes
        scales = scales[axes]
    if draw.random() < 0.5:
        return _model("Resize", shape, attributes, opset, {"r": region, "s": scales})
    sizes = np.array([max(1, int(shape[axis] * scale)) for axis, scale in zip(axes or range(4), scales, strict=True)])
    if axes:
        attributes["keep_aspect_ratio_policy"] = draw.choice(["stretch", "not_larger", "not_smaller"])
    empty = np.zeros(0, np.float32) if opset == 11 else None
    return _model("Resize", shape, attributes, opset, {"r": region, "s": empty, "z": sizes.astype(np.int64)})


_DRAWN = {"ConvTranspose": _transposed, "Resize": _scaled}


@pytest.mark.parametrize("kind", [*_POOLS, *_DRAWN])
def test_sizes_are_those_of_a_run(kind: str) -> None:
    """Random attributes at every opset, from one axis to three: the shape told is the one that ONNX Runtime makes."""
    draw = random.Random(kind)
    ran = 0
    for _ in range(60):
        model = _DRAWN[kind](draw) if kind in _DRAWN else _pool(draw, kind)
        expected = _run_shape(model)
        if expected is not None:
            assert _told_shape(model) == expected, helper.printable_graph(model.graph)
            ran += 1
    assert ran > 20


@pytest.mark.parametrize(
    ("attributes", "size", "expected"),
    [
        # Windows of 3 at steps of 3 on 1 + 17 + 1: the seventh would begin where the padding does.
        ({"kernel_shape": [3], "strides": [3], "pads": [1, 1], "ceil_mode": 1}, 17, 6),
        ({"kernel_shape": [2], "strides": [2], "ceil_mode": 1}, 5, 3),
        ({"kernel_shape": [3], "strides": [2], "auto_pad": b"SAME_UPPER"}, 7, 4),
        # Padding is chosen as for a window without gaps: 2 for the 10, of which a window of 5 finds 8.
        ({"kernel_shape": [3], "strides": [3], "auto_pad": b"SAME_LOWER", "dilations": [2]}, 10, 3),
        # A window of 5 on 3 elements stands there once if it may move by more than what it lacks.
        ({"kernel_shape": [5], "strides": [4]}, 3, 1),
    ],
)
def test_a_pooling_leaves(attributes: dict[str, Any], size: int, expected: int) -> None:
    """Sizes that ONNX Runtime 1.32 computes, at any opset."""
    for opset in (12, 22):
        assert _told_shape(_model("MaxPool", [1, 1, size], attributes, opset, {})) == (1, 1, expected)


def test_a_pooling_larger_than_its_input_is_refused() -> None:
    """Less than nothing is no size; the message names the window."""
    with pytest.raises(InputError, match="the window 5 does not fit into 2"):
        _told_shape(_model("MaxPool", [1, 1, 2], {"kernel_shape": [5], "strides": [2]}, 12, {}))


def test_scales_multiply_in_float32() -> None:
    """10 times 2.3 is 23, though 2.3 as float32 is a little less."""
    stored = {"s": np.array([1, 1, 2.3, 0.7], np.float32)}
    assert _told_shape(_model("Resize", [1, 2, 10, 10], {}, 10, stored)) == (1, 2, 23, 7)


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("bounds", "taken"),
    [
        ((1, 3, 1), [1, 2]),
        ((-2, LARGEST, 1), [3, 4]),
        ((-1, -LARGEST, -2), [4, 2, 0]),
        ((3, LARGEST, -1), [3, 2, 1, 0]),
        ((3, 2**31 - 1, -3), [3, 0]),
        ((-9, -LARGEST, -1), [0]),
        ((9, 1, -1), [4, 3, 2]),
        ((4, 2, 1), []),
    ],
)
def test_a_slice_of_five_takes(bounds, taken):
    """The largest integer stands for the end in the direction of the step."""
    assert list(slice_range(5, *bounds)) == taken


def test_a_step_of_zero_is_none():
    """It is an error, as in the runtime."""
    with pytest.raises(ValueError, match="zero"):
        slice_range(5, 0, 1, 0)


def _slice_model(size: int, bounds: tuple[int, int, int], *, folded: bool) -> onnx.ModelProto:
    """Slice an input, or the numbers from 0 on, which fold into the size of what is expanded by them."""
    stored = {name: np.array([n]) for name, n in zip(("start", "end", "step"), bounds, strict=True)}
    second = "Expand(x, s)" if folded else "Neg(s)"
    nodes = f's = Slice({"n" if folded else "x"}, start, end, "", step) y = {second}'
    if folded:
        stored["n"] = np.arange(1, size + 1)
    return built(nodes, {"x": [1] if folded else [size]}, ["y"], stored, opset=13)


@pytest.mark.parametrize("folded", [False, True])
def test_sizes_and_contents_are_those_of_a_run(folded):
    """Random bounds, the largest and smallest integers among them, in both directions."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    draw = random.Random(folded)
    ran = 0
    for _ in range(40):
        size = draw.randint(1, 4)
        ends = [draw.choice([draw.randint(-7, 7), LARGEST, 2**31 - 1, -LARGEST]) for _ in range(2)]
        model = _slice_model(size, (ends[0], ends[1], draw.choice([1, 2, -1, -1, -2])), folded=folded)
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        shape = session.run(None, {"x": np.ones(1 if folded else size, np.float32)})[0].shape
        found = read_with_nodes(None, model.SerializeToString(), source="m", system=load_device())
        known = found.scope.find("y")
        assert known is not None
        assert known.type.shape == shape
        ran += bool(all(shape))
    assert ran > 10
