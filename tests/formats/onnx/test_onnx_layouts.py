"""Models as ONNX Runtime's optimiser leaves them: sizes and costs of its own ops, held against what it computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_text import built, nodes_of

from mtpp.errors import InputError
from mtpp.formats.onnx import read_with_nodes
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.shape_rules.layout_shapes import BLOCKED, channel_block
from mtpp.formats.onnx.shape_rules.window_sizes import Window, output_sizes, windows
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.machine.presets import load_device

node = helper.make_node


def _weights(**shapes):
    random = np.random.default_rng(0)
    return [numpy_helper.from_array(random.normal(size=s).astype(np.float32), name) for name, s in shapes.items()]


def _model(nodes, shape, stored, opset=17):
    return built(nodes, {"x": shape}, nodes[-1].output, stored=stored, opset=opset)


def _saved(model: onnx.ModelProto, path: Path, level: str) -> onnx.ModelProto:
    """Return a model as ONNX Runtime saves it at an optimisation level."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


def _shapes_in_a_run(model: onnx.ModelProto, x: np.ndarray) -> dict[str, tuple[int, ...]]:
    ort = pytest.importorskip("onnxruntime")
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    names = [name for one in model.graph.node for name in one.output if name]
    del shown.graph.output[:]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(shown.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {name: value.shape for name, value in zip(names, session.run(None, {"x": x}), strict=True)}


def _read(model: onnx.ModelProto):
    return read_with_nodes(None, model.SerializeToString(), source="model.onnx", system=load_device())


def _convolutions():
    """Return a net of what has a blocked kernel: convolutions, all poolings, nearest and linear resizing, a skip."""
    nodes = nodes_of(
        "a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]>(x, W0, B0) b = Relu(a) "
        "c = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(b) "
        "d = Conv <pads = [1, 1, 1, 1]>(c, W1) e = Add(c, d) "
        "f = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(e) "
        'g = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'
        '(f, "", up) h = Conv <group = 32, dilations = [2, 2], pads = [2, 2, 2, 2]>(g, W2) i = Conv(h, W3) '
        "j = GlobalAveragePool(i) k = GlobalMaxPool(i) y = Add(j, k)"
    )
    stored = _weights(W0=(32, 3, 3, 3), B0=(32,), W1=(32, 32, 3, 3), W2=(32, 1, 3, 3), W3=(20, 32, 1, 1))
    stored.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "up"))
    return _model(nodes, [2, 3, 37, 41], stored)


def _blocked(tmp_path: Path) -> onnx.ModelProto:
    saved = _saved(_convolutions(), tmp_path / "all.onnx", "ORT_ENABLE_ALL")
    if not any(one.domain == BLOCKED for one in saved.graph.node):
        pytest.skip("ONNX Runtime has no kernels for blocked channels on this machine")
    return saved


def test_blocked_channels_have_the_sizes_of_a_run(tmp_path):
    """Every tensor of the last optimisation level is read with the shape that ONNX Runtime computes."""
    saved = _blocked(tmp_path)
    reading = _read(saved)
    x = np.zeros((2, 3, 37, 41), np.float32)
    for name, shape in _shapes_in_a_run(saved, x).items():
        known = reading.scope.find(name)
        assert known is not None
        assert isinstance(known.type, TensorType)
        assert known.type.shape == shape, name


def test_blocked_ops_are_all_modelled(tmp_path):
    """They have cost rules; what is padded is computed as well, so no fewer products are counted."""
    saved = _blocked(tmp_path)
    kinds = {one.op_type for one in saved.graph.node if one.domain == BLOCKED}
    assert {"Conv", "MaxPool", "AveragePool", "Upsample", "ReorderOutput"} <= kinds
    blocked, plain = _read(saved).graph, _read(_convolutions()).graph
    assert blocked.metadata["not_modelled"] == {}
    assert plain.metadata["macs"] <= blocked.metadata["macs"] < 1.5 * plain.metadata["macs"]


@pytest.mark.parametrize("channels_last", [0, 1])
def test_reordering_rounds_channels_up_to_whole_blocks(reading, channels_last):
    """The block is that of the weights, 16 or 8, and the way back drops what was added."""
    for outputs, block in ((32, 16), (24, 8)):
        nodes = [
            node("ReorderInput", ["x"], ["b"], domain=BLOCKED, channels_last=channels_last),
            node("Conv", ["b", "W"], ["c"], domain=BLOCKED, kernel_shape=[1, 1]),
            node("ReorderOutput", ["c"], ["y"], domain=BLOCKED, channels=20, channels_last=channels_last),
        ]
        shape = [1, 4, 6, 20] if channels_last else [1, 20, 4, 6]
        model = reading.model(nodes, {"x": shape}, ["y"], {"W": [outputs, 32, 1, 1]}, domains=[BLOCKED])
        assert channel_block(model.graph) == block
        scope = _read(model).scope
        assert scope.find("b").type.shape == (1, 32 if block == 16 else 24, 4, 6)
        assert scope.find("y").type.shape == tuple(shape)


def test_a_quantised_lstm_has_the_outputs_of_an_lstm(reading):
    """Its weights are inputs × gates, so the hidden size is the attribute's."""
    names = ["x", "W", "R", "B", "", "", "", "", "WS", "WZ", "RS", "RZ"]
    nodes = [node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain="com.microsoft", hidden_size=6,
                  direction="bidirectional")]  # fmt: skip
    u8 = TensorProto.UINT8
    stored = {"W": (u8, [2, 5, 24]), "R": (u8, [2, 6, 24]), "B": [2, 48]}
    stored |= {name: [2] for name in ("WS", "RS")} | {name: (u8, [2]) for name in ("WZ", "RZ")}
    model = reading.model(nodes, {"x": [7, 3, 5]}, ["y", "h", "c"], stored, domains=["com.microsoft"])
    found = _read(model)
    assert [found.scope.find(name).type.shape for name in ("y", "h", "c")] == [(7, 2, 3, 6), (2, 3, 6), (2, 3, 6)]
    assert found.graph.metadata["macs"] == 7 * 3 * (2 * 5 * 24 + 2 * 6 * 24)
    assert found.graph.metadata["not_modelled"] == {}


def test_channels_last_windows_slide_over_the_axes_in_between(reading):
    """Weights stay output × input × kernel, tensors are N × H × W × C."""
    nodes = nodes_of(
        'a = com.microsoft.NhwcFusedConv <pads = [1, 1, 1, 1], strides = [2, 2], activation = "Relu">(x, W) '
        "b = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2], strides = [2, 2]>(a) "
        'y = com.microsoft.QLinearAveragePool <kernel_shape = [2, 3], channels_last = 1>(b, s, "", s, "")'
    )
    model = reading.model(
        nodes, {"x": [1, 16, 24, 3]}, ["y"], {"W": [8, 3, 3, 3]}, {"s": np.float32(1)}, domains=["com.microsoft"]
    )
    found = _read(model)
    shapes = [found.scope.find(name).type.shape for name in ("a", "b", "y")]
    assert shapes == [(1, 8, 12, 8), (1, 4, 6, 8), (1, 3, 4, 8)]
    assert found.graph.metadata["macs"] == 8 * 12 * 8 * 27
    assert found.graph.metadata["not_modelled"] == {}


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
def test_windows_leave_what_onnx_says(auto_pad, opset):
    """The rule agrees with onnx's shape inference over sizes, strides, dilations and ways to pad."""
    for size in range(5, 14):
        for stride, dilation, pad in ((1, 1, 0), (2, 1, 1), (3, 1, 0), (2, 2, 1), (3, 1, 1)):
            attributes = {"kernel_shape": [3], "strides": [stride], "auto_pad": auto_pad}
            if opset > 9:
                attributes["dilations"] = [dilation]
            if auto_pad == "NOTSET":
                attributes["pads"] = [pad, pad]
            model = _model([node("MaxPool", ["x"], ["y"], **attributes)], [1, 1, size], [], opset)
            inferred = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim[2].dim_value
            text = {**attributes, "auto_pad": auto_pad.encode()}
            view = NodeView("MaxPool", opset, text, [TensorType(1, (1, 1, size))], [None])
            assert output_sizes(view, [size], [3]) == (inferred,), (size, attributes)


def test_an_op_of_onnx_runtime_without_a_rule_names_the_level_to_save_at(reading):
    """What it makes itself at a level, it does not make at a lower one."""
    nodes = nodes_of("m = com.microsoft.SomethingFused(x) y = Relu(m)")
    model = reading.model(nodes, {"x": [8]}, ["y"], domains=["com.microsoft"])
    with pytest.raises(InputError, match="operator of ONNX Runtime: save the model at its level ORT_ENABLE_BASIC"):
        _read(model)


def test_windows_that_do_not_fit_are_refused():
    """A window beyond the padded axis has no place; attributes of another number of axes neither."""
    view = NodeView("Conv", 17, {"pads": [1, 1]}, [], [])
    assert output_sizes(view, [3], [5]) == (1,)
    with pytest.raises(MalformedNode, match="5 does not fit into 2"):
        output_sizes(view, [2], [5])
    with pytest.raises(MalformedNode, match="2 spatial axes"):
        windows(view, [8, 8], [3, 3])


def test_windows_are_exact_where_nothing_is_left_over():
    """The last window ends at the end, or a padded axis is divided by the stride."""
    assert not Window(7, 0, 2560, 2560).is_exact
    assert Window(299, 0, 3, 2).is_exact
    assert not Window(224, 0, 3, 2).is_exact
    assert Window(224, 6, 7, 2).is_exact
    assert not Window(225, 0, 2, 2).is_exact
    assert Window(640, 0, 256, 128).is_exact
    assert not Window(576, 0, 256, 128).is_exact
