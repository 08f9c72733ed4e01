"""Random networks against a count of a few lines, and the evaluation of shapes against onnx's reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from mtpp.formats.onnx.values import attribute_values, evaluate

node = helper.make_node


@given(data=st.data())
def test_random_perceptrons_cost_what_a_few_lines_count(reading, data):
    """Layers of random width, some weights shared, some layers joined by residual additions, names random or empty."""
    width = data.draw(st.sampled_from([4, 16, 64]))
    batch = data.draw(st.integers(1, 9))
    names = st.sampled_from(["", "layer", "mix"])
    nodes, tensors, weights = [], ["x"], {}
    macs = flops = read_bytes = 0
    for i in range(data.draw(st.integers(1, 12))):
        source = data.draw(st.sampled_from(tensors))
        output = f"t{i}"
        if data.draw(st.booleans()):
            weight = f"W{data.draw(st.integers(0, 3))}"
            weights[weight] = [width, width]
            nodes.append(node("MatMul", [source, weight], [output], name=data.draw(names)))
            macs += batch * width * width
            flops += 2 * batch * width * width
            read_bytes += 4 * width * width
        else:
            nodes.append(node("Add", [source, data.draw(st.sampled_from(tensors))], [output], name=data.draw(names)))
            flops += batch * width
        tensors.append(output)
    graph = reading.graph(nodes, {"x": [batch, width]}, tensors[1:], weights)
    assert (graph.metadata["macs"], graph.metadata["flops"]) == (macs, flops)
    assert int(graph.read_bytes.sum()) == read_bytes
    assert graph.all_bytes == 4 * width * width * len(weights)
    assert graph.metadata["parameter_bytes"] == 4 * width * width * len(weights)
    assert len(set(graph.op_names)) == len(nodes)
    readers = Counter(name for n in nodes for name in set(n.input) if name.startswith("t"))
    for t, tensor in enumerate(graph.tensor_names):
        assert int(graph.tensor_bytes[t]) == 4 * batch * width
        assert len(graph.tensor_consumers(t)) == readers[tensor]


A, B = np.array([[5, -7, 2], [3, 4, -6]]), np.array([2, 3, -4])
SEVEN = helper.make_tensor("v", TensorProto.INT64, [1], [7])
EVALUATIONS = [
    (node("Add", ["a", "b"], ["y"]), [A, B]),
    (node("Sub", ["a", "b"], ["y"]), [A, B]),
    (node("Div", ["a", "b"], ["y"]), [A, B]),
    (node("Div", ["a", "b"], ["y"]), [A.astype(np.float32), B.astype(np.float32)]),
    (node("Mod", ["a", "b"], ["y"]), [A, B]),
    (node("Mod", ["a", "b"], ["y"], fmod=1), [A, B]),
    (node("Max", ["a", "b"], ["y"]), [A, B]),
    (node("Min", ["a", "b"], ["y"]), [A, B]),
    (node("Neg", ["a"], ["y"]), [A]),
    (node("Abs", ["a"], ["y"]), [A]),
    (node("Equal", ["a", "b"], ["y"]), [A, B]),
    (node("Less", ["a", "b"], ["y"]), [A, B]),
    (node("GreaterOrEqual", ["a", "b"], ["y"]), [A, B]),
    (node("Where", ["c", "a", "b"], ["y"]), [A > 0, A, B]),
    (node("Cast", ["a"], ["y"], to=TensorProto.BOOL), [A]),
    (node("Gather", ["a", "i"], ["y"], axis=1), [A, np.array([2, -1])]),
    (node("Concat", ["a", "b"], ["y"], axis=1), [A, A]),
    (node("Slice", ["a", "s", "e", "x", "t"], ["y"]), [A, *np.array([[-1], [-9], [1], [-1]])]),
    (node("Slice", ["a", "s", "e"], ["y"]), [A, np.array([0, 1]), np.array([1, 99])]),
    (node("Squeeze", ["a", "x"], ["y"]), [A[None], np.array([0])]),
    (node("Unsqueeze", ["a", "x"], ["y"]), [A, np.array([0, -1])]),
    (node("Reshape", ["a", "s"], ["y"]), [A, np.array([0, -1])]),
    (node("Expand", ["b", "s"], ["y"]), [B, np.array([2, 1])]),
    (node("Tile", ["a", "r"], ["y"]), [A, np.array([2, 1])]),
    (node("Transpose", ["a"], ["y"]), [A]),
    (node("Range", ["s", "e", "d"], ["y"]), [np.int64(9), np.int64(-2), np.int64(-3)]),
    (node("ReduceProd", ["a", "x"], ["y"], keepdims=0), [A, np.array([1])]),
    (node("ReduceSum", ["a"], ["y"]), [A]),
    (node("ReduceMax", ["a", "x"], ["y"]), [A, np.array([0])]),
    (node("Split", ["a", "s"], ["y", "z"], axis=1), [A, np.array([1, 2])]),
    (node("Split", ["b"], ["y", "z"], num_outputs=2), [B]),
    (node("ScatterND", ["b", "i", "u"], ["y"]), [B, np.array([[2], [0]]), np.array([8, 9])]),
    (node("NonZero", ["a"], ["y"]), [A]),
    (node("CumSum", ["a", "x"], ["y"]), [A, np.int64(1)]),
    (node("ConstantOfShape", ["s"], ["y"], value=SEVEN), [np.array([2, 3])]),
    (node("Floor", ["a"], ["y"]), [A.astype(np.float32) / 2]),
    (node("Ceil", ["a"], ["y"]), [A.astype(np.float32) / 2]),
    (node("Not", ["a"], ["y"]), [A > 0]),
    (node("And", ["a", "b"], ["y"]), [A > 0, B > 0]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs"), EVALUATIONS, ids=lambda value: getattr(value, "op_type", ""))
def test_small_constants_are_evaluated_as_the_reference_does(op, inputs):
    """Values and element types agree with onnx.reference."""
    ours = evaluate(op.op_type, [np.asarray(value) for value in inputs], attribute_values(op.attribute), len(op.output))
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype), None)
        for name, value in zip(op.input, inputs, strict=True)
    ]
    graph = helper.make_graph([op], "g", values, [helper.make_empty_tensor_value_info(name) for name in op.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    reference = ReferenceEvaluator(model).run(None, dict(zip(op.input, inputs, strict=True)))
    assert ours is not None
    for mine, theirs in zip(ours, reference, strict=True):
        assert mine.dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (node("Expand", ["a", "s"], ["y"]), [np.array(1), np.array([10**6, 10**6])]),
        (node("Tile", ["a", "r"], ["y"]), [np.array([1]), np.array([10**12])]),
        (node("Range", ["s", "e", "d"], ["y"]), [np.int64(0), np.int64(2**62), np.int64(1)]),
        (node("Range", ["s", "e", "d"], ["y"]), [np.int64(0), np.int64(5), np.int64(0)]),
        (node("ConstantOfShape", ["s"], ["y"]), [np.array([10**6])]),
        (node("Gather", ["a", "i"], ["y"]), [np.array([1, 2]), np.array([9])]),
        (node("Div", ["a", "b"], ["y"]), [np.array([1]), np.array([0])]),
        (node("Add", ["a", "b"], ["y"]), [np.zeros((5000, 1), np.int64), np.zeros((1, 5000), np.int64)]),
        (node("Conv", ["a"], ["y"]), [np.array([1])]),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)
def test_what_is_large_or_senseless_is_not_evaluated(op, inputs):
    """Nothing large is ever made."""
    assert evaluate(op.op_type, [np.asarray(value) for value in inputs], attribute_values(op.attribute), 1) is None
