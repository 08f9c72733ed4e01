"""Broken models, one line each, and weights that contradict their tensors: refused here as by ONNX Runtime."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_text import built, nodes_of
from stage_equality import runtime_version

from mtpp.errors import InputError
from mtpp.formats.onnx import looks_like_onnx, read_onnx
from mtpp.machine.presets import load_device

node = helper.make_node


def _fails(reading, model) -> str:
    with pytest.raises(InputError) as caught:
        reading.read(model)
    text = str(caught.value)
    assert text.startswith("model.onnx: ")
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"format": "mtpp-graph"}',
        b"hello world, this is text\n",
        gzip.compress(b"x" * 99, mtime=0),
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04",
    ],
)
def test_what_is_no_onnx_model_is_told_apart(reading, data):
    """By its first bytes; reading it anyway says so."""
    assert not looks_like_onnx(data)
    assert "empty" in _fails(reading, data) or "not an ONNX model" in _fails(reading, data)


def test_models_are_recognised_by_content(light_model, reading):
    """Whole ones, truncated ones, and ones that begin with another field than the usual."""
    data = light_model("squeezenet")
    assert looks_like_onnx(data)
    assert looks_like_onnx(data[: len(data) // 2])
    nameless = reading.model("y = Relu(x)", {"x": [1]}, ["y"])
    nameless.ClearField("ir_version")
    assert looks_like_onnx(nameless.SerializeToString())


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9, 0.9999])
def test_a_truncated_model_says_so(reading, light_model, part):
    """Wherever it breaks off."""
    data = light_model("squeezenet")
    text = _fails(reading, data[: int(len(data) * part)])
    assert "truncated" in text


def test_a_large_truncated_model_says_so(reading):
    """Above the size from which weights are stepped over."""
    model = reading.model("y = Relu(x)", {"x": [1]}, ["y"], constants={"w": np.zeros(2**20, np.float32)})
    data = model.SerializeToString()
    assert "truncated" in _fails(reading, data[: 3 * 2**20])


def test_a_model_cut_between_two_fields_says_so(reading):
    """The last field names the operator sets: without it nothing can be read."""
    model = reading.model("y = Relu(x)", {"x": [1]}, ["y"])
    model.ClearField("opset_import")
    assert "names no operator set" in _fails(reading, model)


def test_a_model_without_a_graph_or_nodes_is_refused(reading):
    """There is nothing to partition."""
    assert "no graph" in _fails(reading, onnx.ModelProto(ir_version=8, producer_name="p"))
    assert "no nodes" in _fails(reading, reading.model([], {"x": [1]}, ["x"]))


def test_a_model_that_folds_away_is_refused(reading):
    """Every node depends on parameters alone."""
    model = reading.model("y = Relu(W)", {"x": [1]}, ["y"], {"W": [4]})
    assert "every node folds into a constant" in _fails(reading, model)


def test_a_cycle_is_named(reading):
    """With the nodes on it, in the direction of the data."""
    nodes = nodes_of("[A] a = Add(x, c) [B] b = Relu(a) [C] c = Relu(b)")
    assert "the graph has a cycle: Add 'A' -> Relu 'B' -> Relu 'C' -> Add 'A'" in _fails(
        reading, reading.model(nodes, {"x": [1]}, ["c"])
    )


def test_an_undefined_tensor_is_named(reading):
    """With the node that reads it; inside a body as well."""
    model = reading.model("[sum] y = Add(x, ghost)", {"x": [1]}, ["y"])
    assert _fails(reading, model) == "model.onnx: Add 'sum': reads tensor 'ghost', which nothing defines"
    bodies = [helper.make_graph(nodes_of("o = Add(x, ghost)"), "b", [], [onnx.ValueInfoProto(name="o")])] * 2
    choose = node("If", ["c"], ["y"], name="choose", then_branch=bodies[0], else_branch=bodies[1])
    model = reading.model([choose], {"x": [1], "c": (TensorProto.BOOL, [])}, ["y"])
    assert "reads tensor 'ghost', which nothing defines" in _fails(reading, model)


@pytest.mark.parametrize(
    ("nodes", "parameters", "where"),
    [
        (nodes_of("y = Relu(x) [again] y = Neg(x)"), {}, "Neg 'again'"),
        (nodes_of("[self] x = Relu(x)"), {}, "Relu 'self'"),
        (nodes_of("[over] W = Relu(x)"), {"W": [4]}, "Relu 'over'"),
        (nodes_of("[twice] y, y = Split <num_outputs = 2>(x)"), {}, "Split 'twice'"),
    ],
)
def test_a_tensor_defined_twice_is_refused(reading, nodes, parameters, where):
    """Static single assignment, as ONNX demands."""
    text = _fails(reading, reading.model(nodes, {"x": [4]}, ["y"], parameters))
    assert where in text
    assert "is defined twice" in text


def test_duplicate_initializers_and_inputs_are_refused(reading):
    """Names are unique over each list."""
    model = reading.model("y = Relu(x)", {"x": [4]}, ["y"], {"W": [4]})
    model.graph.initializer.append(model.graph.initializer[0])
    assert "initializers: tensor 'W' is defined twice" in _fails(reading, model)
    model = reading.model("y = Relu(x)", {"x": [4]}, ["y"])
    model.graph.input.append(model.graph.input[0])
    assert "graph inputs: tensor 'x' is defined twice" in _fails(reading, model)


def test_an_output_that_nothing_defines_is_refused(reading):
    """Its name is in the message."""
    model = reading.model("y = Relu(x)", {"x": [4]}, ["y", "ghost"])
    assert "output 'ghost' is defined nowhere" in _fails(reading, model)


def test_operands_that_the_cost_rule_cannot_use_are_refused(reading):
    """A contrib op without the attribute its cost follows from."""
    broken = node("MultiHeadAttention", ["x", "x", "x"], ["y"], domain="com.microsoft", name="mha")
    model = reading.model([broken], {"x": [1, 2, 8]}, ["y"], domains=["com.microsoft"], value_info={"y": [1, 2, 8]})
    assert "MultiHeadAttention 'mha'" in _fails(reading, model)
    assert "lacks the attribute num_heads" in _fails(reading, model)


def test_a_parameter_without_a_type_is_refused(reading):
    """An initializer of an undefined element type has no size."""
    model = reading.model("y = Add(x, W)", {"x": [4]}, ["y"], {"W": [4]})
    model.graph.initializer[0].data_type = 0
    assert "initializers: tensor 'W' has element type 0" in _fails(reading, model)


def test_names_that_are_no_text_are_refused(reading):
    """Bytes that are no UTF-8 come from a damaged file."""
    data = reading.model("[relu] y = Relu(x)", {"x": [4]}, ["y"]).SerializeToString()
    assert "is not UTF-8" in _fails(reading, data.replace(b"relu", b"r\xffl\xfe"))


def test_sizes_beyond_64_bits_are_refused(reading):
    """The graph's own check speaks with the file's name."""
    model = reading.model("y = Expand(x, s)", {"x": [1]}, ["y"], constants={"s": np.array([2**31] * 3)})
    assert "/tensors/0/bytes" in _fails(reading, model) or "/ops/0" in _fails(reading, model)


def test_a_constant_with_more_outputs_than_its_operator_makes(reading):
    """What is left over has no type: it is refused where something reads it."""
    nodes = nodes_of("s, extra = Shape(x) y = Expand(x, s)")
    assert reading.graph(nodes, {"x": [4]}, ["y"]).op_names == ("Expand_1",)
    nodes[1].input[1] = "extra"
    assert "'extra' has an unknown shape" in _fails(reading, reading.model(nodes, {"x": [4]}, ["y"]))


def test_nodes_out_of_order_are_sorted(reading):
    """A file that is not topological but acyclic is read as if it were."""
    nodes = nodes_of("[C] y = Relu(b) [B] b = Relu(a) [A] a = Relu(x)")
    assert reading.graph(nodes, {"x": [4]}, ["y"]).op_names == ("A", "B", "C")


@settings(max_examples=150)
@given(data=st.data())
def test_damage_anywhere_is_an_input_error_or_harmless(reading, light_model, data):
    """Bytes overwritten at random, and a cut: never another exception."""
    raw = bytearray(light_model("bvlc_alexnet"))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.sampled_from([len(raw), data.draw(st.integers(0, len(raw)))]))
    try:
        outcome = reading.read(bytes(raw[:end])).op_names
    except InputError as error:
        outcome = str(error).splitlines()
        assert len(outcome) == 1
    assert outcome


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
    stored = {f"w{index}": np.ones(weight, np.float32) for index, weight in enumerate(weights)}
    nodes = [node(op, ["x", *stored], ["y"], domain=domain, **attributes)]
    domains = [domain] if domain else []
    return built(nodes, {"x": shape}, {"y": None}, stored, opset=opset, domains=domains).SerializeToString()


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
        nodes = (
            "p = AveragePool <kernel_shape = [2, 2], strides = [3, 3], ceil_mode = 1> (x) f = Flatten(p) y = Gemm(f, w)"
        )
        weight = np.ones((rows, 8), np.float32)
        model = built(nodes, {"x": [1, 3, 9, 9]}, {"y": [1, 8]}, {"w": weight}, opset=11).SerializeToString()
        if rows == 27:
            read_onnx(None, model, source="m", system=load_device())
        else:
            with pytest.raises(InputError, match="rows of 27 meet columns of 48"):
                read_onnx(None, model, source="m", system=load_device())
