"""Bounds of slices: sizes and contents are those that ONNX Runtime takes."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mtpp.formats.onnx.reader import read_with_nodes
from mtpp.formats.onnx.shape_rules.slice_range import slice_range
from mtpp.machine.presets import load_device

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


def _model(size: int, bounds: tuple[int, int, int], *, folded: bool) -> onnx.ModelProto:
    """Slice an input, or the numbers from 0 on, which fold into the size of what is expanded by them."""
    stored = {name: np.array([n]) for name, n in zip(("start", "end", "step"), bounds, strict=True)}
    numbers = np.arange(1, size + 1)
    nodes = [helper.make_node("Slice", ["n" if folded else "x", "start", "end", "", "step"], ["s"])]
    if folded:
        nodes.append(helper.make_node("Expand", ["x", "s"], ["y"]))
        stored["n"] = numbers
    else:
        nodes.append(helper.make_node("Neg", ["s"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1] if folded else [size])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


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
        model = _model(size, (ends[0], ends[1], draw.choice([1, 2, -1, -1, -2])), folded=folded)
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        shape = session.run(None, {"x": np.ones(1 if folded else size, np.float32)})[0].shape
        found = read_with_nodes(None, model.SerializeToString(), source="m", system=load_device())
        known = found.scope.find("y")
        assert known is not None
        assert known.type.shape == shape
        ran += bool(all(shape))
    assert ran > 10
