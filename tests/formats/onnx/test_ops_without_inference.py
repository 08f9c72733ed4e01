"""Shapes of ops that onnx infers nothing of, held against runs of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_text import built
from stage_equality import runtime_version

from mtpp.formats.onnx.reader import Reading, read_with_nodes
from mtpp.machine.presets import load_device

FLOAT, INT, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
Typed = tuple[int, list[int]]

TREE = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
CLASSES = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [1.0, 2.0]}
TARGETS = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 1], "target_weights": [1.0, 2.0]}
KERNEL = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0]}


def _vectors(classes: int, probable: bool) -> dict[str, Any]:
    pairs = classes * (classes - 1) // 2
    drawn: dict[str, Any] = {
        "coefficients": [0.5] * (2 * classes * (classes - 1)), "support_vectors": [0.1] * (8 * classes),
        "vectors_per_class": [2] * classes, "rho": [0.1] * pairs, "classlabels_ints": list(range(classes)), **KERNEL,
    }  # fmt: skip
    return drawn | ({"prob_a": [0.1] * pairs, "prob_b": [0.1] * pairs} if probable else {})


def _model(
    kind: str, inputs: dict[str, Typed], attributes: dict[str, Any], stored: dict[str, Any], made: int, opset: int
) -> onnx.ModelProto:
    domain, _, op = kind.rpartition(":")
    node = helper.make_node(op, [*inputs, *stored], [f"y{index}" for index in range(made)], domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    domains = [domain] if domain else []
    return built([node], inputs, list(node.output), stored, opset=opset, domains=domains)


def _run(model: onnx.ModelProto, inputs: dict[str, Typed]) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds: dict[str, Any] = {}
    for name, (dtype, shape) in inputs.items():
        if dtype == TEXT:
            feeds[name] = np.full(shape, "a", object)
        else:
            feeds[name] = np.arange(np.prod(shape)).reshape(shape).astype(helper.tensor_dtype_to_np_dtype(dtype))
    return list(session.run(None, feeds))


def _read(model: onnx.ModelProto, dims: dict[str, int] | None = None) -> Reading:
    data = model.SerializeToString()
    return read_with_nodes(None, data, source="m", system=load_device(), dims=dims, propose_sizes=False)


def _assert_told_as_run(model: onnx.ModelProto, inputs: dict[str, Typed], dims: dict[str, int] | None = None) -> None:
    found = _read(model, dims)
    for value, made in zip(model.graph.output, _run(model, inputs), strict=True):
        known = found.scope.find(value.name)
        assert known is not None
        dtype = TEXT if made.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(made.dtype)
        assert (known.type.dtype, known.type.shape) == (dtype, made.shape)


CLASSIC: list[tuple[str, dict[str, Any], int]] = [
    ("Scaler", {"offset": [0.1], "scale": [2.0]}, 1),
    ("Normalizer", {"norm": "L2"}, 1),
    ("Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}, 1),
    ("Binarizer", {"threshold": 0.5}, 1),
    ("LinearRegressor", {"coefficients": [0.1] * 8, "intercepts": [0.0, 1.0], "targets": 2}, 1),
    ("LinearClassifier", {"coefficients": [0.1] * 12, "intercepts": [0.0] * 3, "classlabels_ints": [0, 1, 2]}, 2),
    ("SVMRegressor", {"coefficients": [1.0, -1.0, 0.5], "support_vectors": [0.1] * 12, "n_supports": 3, "rho": [0.2],
                      **KERNEL}, 1),
    ("SVMClassifier", _vectors(2, probable=False), 2),
    ("SVMClassifier", _vectors(3, probable=True), 2),
    ("SVMClassifier", _vectors(4, probable=False), 2),
    ("SVMClassifier", _vectors(4, probable=True), 2),
    ("TreeEnsembleRegressor", {**TREE, **TARGETS, "n_targets": 2}, 1),
    ("TreeEnsembleClassifier", {**TREE, **CLASSES, "classlabels_int64s": [0, 1]}, 2),
    ("TreeEnsembleClassifier", {**TREE, **CLASSES, "classlabels_strings": ["a", "b", "c"]}, 2),
    ("OneHotEncoder", {"cats_int64s": [0, 1, 2], "zeros": 1}, 1),
]  # fmt: skip


@pytest.mark.parametrize("shape", [[3, 4], [4]])
@pytest.mark.parametrize(("name", "attributes", "made"), CLASSIC)
def test_classic_learning_is_told_as_it_runs(
    name: str, attributes: dict[str, Any], made: int, shape: list[int]
) -> None:
    """Rows of features, and a single row without an axis for rows: every op of the domain is modelled."""
    model = _model(f"ai.onnx.ml:{name}", {"x": (FLOAT, shape)}, attributes, {}, made, 15)
    _assert_told_as_run(model, {"x": (FLOAT, shape)})
    assert _read(model).graph.metadata["not_modelled"] == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_of_trees_are_told_as_they_run(dtype: Any) -> None:
    """Trees of version 5: scores have the type of the features; two levels of three inner nodes for each row."""
    numbers = {
        "nodes_modes": np.zeros(3, np.uint8), "nodes_splits": np.array([0.5, 0.25, 0.75], dtype),
        "leaf_weights": np.ones(4, dtype),
    }  # fmt: skip
    attributes = {name: numpy_helper.from_array(array, name) for name, array in numbers.items()} | {
        "n_targets": 2, "tree_roots": [0], "nodes_featureids": [0, 1, 1], "nodes_truenodeids": [1, 0, 2],
        "nodes_falsenodeids": [2, 1, 3], "nodes_trueleafs": [0, 1, 1], "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
    }  # fmt: skip
    inputs = {"x": (helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [3, 4])}
    model = _model("ai.onnx.ml:TreeEnsemble", inputs, attributes, {}, 1, 21)
    model.opset_import[1].version = 5
    _assert_told_as_run(model, inputs)
    metadata = _read(model).graph.metadata
    assert metadata["not_modelled"] == {}
    assert metadata["flops"] == 3 * 2


def test_features_and_labels_are_told_as_they_run() -> None:
    """Several inputs side by side, picked columns, and text for numbers in both directions."""
    cases: list[tuple[str, dict[str, Typed], dict[str, Any], dict[str, Any]]] = [
        ("FeatureVectorizer", {"x": (FLOAT, [3, 4]), "z": (FLOAT, [3, 2])}, {"inputdimensions": [4, 2]}, {}),
        ("ArrayFeatureExtractor", {"x": (INT, [3, 4])}, {}, {"i": np.array([0, 2])}),
        ("ArrayFeatureExtractor", {"x": (FLOAT, [4])}, {}, {"i": np.array([[0, 2, 1]])}),
        ("LabelEncoder", {"x": (TEXT, [3, 4])}, {"classes_strings": ["a", "b"]}, {}),
        ("LabelEncoder", {"x": (INT, [3])}, {"classes_strings": ["a", "b"]}, {}),
        ("CategoryMapper", {"x": (TEXT, [3, 4])}, {"cats_strings": ["a", "b"], "cats_int64s": [1, 2]}, {}),
    ]
    for name, inputs, attributes, stored in cases:
        _assert_told_as_run(_model(f"ai.onnx.ml:{name}", inputs, attributes, stored, 1, 15), inputs)


@pytest.mark.parametrize("opset", [12, 13, 15, 16])
@pytest.mark.parametrize("op", ["GreaterOrEqual", "LessOrEqual"])
def test_comparisons_broadcast_at_every_opset(op: str, opset: int) -> None:
    """Their inference begins at opset 16."""
    inputs = {"a": (FLOAT, [2, 1, 3]), "b": (FLOAT, [4, 1])}
    _assert_told_as_run(_model(op, inputs, {}, {}, 1, opset), inputs)


@pytest.mark.parametrize("opset", [7, 9])
def test_slices_below_opset_10_take_axes_in_any_order(opset: int) -> None:
    """Bounds beyond the ends are cut off, negative ones and negative axes count from the end."""
    inputs = {"x": (FLOAT, [5, 9, 4])}
    for attributes in (
        {"axes": [1, 0], "starts": [1, -3], "ends": [1000, -1]},
        {"axes": [-1, 0], "starts": [1, -30], "ends": [1000, 3]},
        {"starts": [1, -3], "ends": [1000, -1]},
    ):
        _assert_told_as_run(_model("Slice", inputs, attributes, {}, 1, opset), inputs)


def _floats(*shape: int) -> Typed:
    return FLOAT, list(shape)


LEFT_OPEN: list[tuple[str, dict[str, Typed], dict[str, Any], dict[str, Any], int, int]] = [
    ("Attention", {"q": _floats(1, 4, 2, 3), "k": _floats(1, 2, 5, 3), "v": _floats(1, 2, 5, 6)}, {}, {}, 4, 23),
    ("Attention", {"q": _floats(2, 3, 16), "k": _floats(2, 5, 8), "v": _floats(2, 5, 6)},
     {"q_num_heads": 4, "kv_num_heads": 2}, {}, 3, 23),
    ("GatherND", {"x": _floats(4, 7, 6)}, {}, {"i": np.array([1, 2, 3])}, 1, 13),
    ("GatherND", {"x": _floats(2, 3, 4)}, {"batch_dims": 1}, {"i": np.array([[1, 2], [0, 3]])}, 1, 12),
    ("Reshape", {"x": _floats(2, 3, 4)}, {"shape": [0, -1]}, {}, 1, 1),
    ("Reshape", {"x": _floats(2, 3, 4)}, {"shape": [4, 3, 2]}, {}, 1, 4),
    ("STFT", {"x": _floats(2, 18, 1)}, {}, {"s": np.array(4), "w": np.ones(5, np.float32)}, 1, 17),
    ("STFT", {"x": _floats(2, 18, 2)}, {"onesided": 0}, {"s": np.array(3), "w": np.ones(6, np.float32)}, 1, 17),
    ("Squeeze", {"x": _floats(1, 1, 4, 1)}, {"axes": [3, 0, 1]}, {}, 1, 7),
    ("Squeeze", {"x": _floats(1, 1, 4, 1)}, {"axes": [0, -1]}, {}, 1, 10),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attributes", "stored", "made", "opset"), LEFT_OPEN)
def test_standard_ops_are_told_as_they_run(
    name: str, inputs: dict[str, Typed], attributes: dict[str, Any], stored: dict[str, Any], made: int, opset: int
) -> None:
    """Results of which onnx tells nothing, or another size than a run has."""
    if name == "Attention" and runtime_version() < (1, 32):
        pytest.skip("ONNX Runtime 1.23 takes no cache out where none goes in")
    _assert_told_as_run(_model(name, inputs, attributes, stored, made, opset), inputs)


def test_frames_by_their_length_alone_are_told_as_they_run() -> None:
    """Without a window the fourth input says how long they are."""
    model = _model("STFT", {"x": (FLOAT, [2, 18, 1])}, {}, {"s": np.array(4), "l": np.array(5)}, 1, 17)
    model.graph.node[0].input.insert(2, "")
    _assert_told_as_run(model, {"x": (FLOAT, [2, 18, 1])})


FUSED: list[tuple[str, dict[str, Typed], dict[str, Any], dict[str, Any]]] = [
    ("CDist", {"a": (FLOAT, [5, 4]), "b": (FLOAT, [3, 4])}, {"metric": "euclidean"}, {}),
    ("CropAndResize", {"x": (FLOAT, [2, 3, 9, 9]), "r": (FLOAT, [4, 4])}, {},
     {"b": np.zeros(4, np.int32), "s": np.array([5, 6], np.int32)}),
    ("ConvTransposeWithDynamicPads", {"x": _floats(1, 2, 5, 4)}, {"strides": [2, 1], "output_padding": [1, 0]},
     {"w": np.ones((2, 3, 3, 3), np.float32), "p": np.array([1, 0, 0, 2])}),
    ("DecoderMaskedMultiHeadAttention",
     {"q": _floats(2, 1, 8), "k": _floats(2, 2, 5, 4), "v": _floats(2, 2, 5, 4)}, {"num_heads": 2}, {}),
    ("GatedDeltaNet", {"q": _floats(3, 2, 4), "k": _floats(3, 2, 4), "v": _floats(3, 2, 5)}, {}, {
        "b": np.array([0, 3], np.int32), "d": np.ones((3, 2), np.float32), "u": np.ones((3, 2), np.float32),
        "s": np.ones((1, 2, 5, 4), np.float32)}),
    ("MatMulInteger16", {"a": (TensorProto.INT16, [3, 4]), "b": (TensorProto.INT16, [4, 5])}, {}, {}),
    ("ExpandDims", {"x": (FLOAT, [3, 4])}, {}, {"a": np.array(-1, np.int32)}),
    ("ExpandDims", {"x": (FLOAT, [3, 4])}, {}, {"a": np.array(1, np.int32)}),
    ("MurmurHash3", {"x": (TensorProto.INT32, [3, 4])}, {}, {}),
    ("MurmurHash3", {"x": (TEXT, [3, 4])}, {"positive": 0}, {}),
    ("NGramRepeatBlock", {"i": (INT, [1, 2]), "s": (FLOAT, [1, 7])}, {"ngram_size": 2}, {}),
    ("UnfoldTensor", {"x": (FLOAT, [3, 9])}, {"dim": 1, "size": 4, "step": 2}, {}),
    ("WordConvEmbedding", {"q": (TensorProto.INT32, [3, 6])}, {},
     {"w": np.ones((8, 1, 3, 5), np.float32), "b": np.ones(8, np.float32), "c": np.ones((20, 5), np.float32)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attributes", "stored"), FUSED)
def test_ops_of_the_runtime_are_told_as_they_run(
    name: str, inputs: dict[str, Typed], attributes: dict[str, Any], stored: dict[str, Any]
) -> None:
    """Operators of domain com.microsoft that its processor kernels run."""
    if name in ("ExpandDims", "GatedDeltaNet") and runtime_version() < (1, 32):
        pytest.skip("ONNX Runtime 1.23 does not run it as 1.32 does")
    _assert_told_as_run(_model(f"com.microsoft:{name}", inputs, attributes, stored, 1, 13), inputs)


def test_what_is_there_once_is_open_and_no_more_than_all() -> None:
    """Unique leaves two sizes open; where they are given, the places of the elements are known too."""
    inputs = {"x": (FLOAT, [9])}
    _assert_told_as_run(_model("com.microsoft:Unique", inputs, {}, {}, 3, 13), inputs, {"y0:0": 9, "y2:0": 9})


@pytest.mark.parametrize("numbers", [(0, 8, 3), (2, 9)])
def test_a_range_of_the_runtime_counts_by_one_unless_told(numbers: tuple[int, ...]) -> None:
    """The third number may be left out."""
    model = _model("com.microsoft:Range", {}, {}, {f"n{i}": np.float32(n) for i, n in enumerate(numbers)}, 1, 13)
    model.graph.node.append(helper.make_node("Mul", ["y0", "x"], ["y"]))
    model.graph.input.append(helper.make_tensor_value_info("x", FLOAT, [1]))
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name="y"))
    _assert_told_as_run(model, {"x": (FLOAT, [1])})


@pytest.mark.parametrize("opset", [7, 9, 10, 12])
def test_the_mask_of_dropout_has_the_type_of_a_run(opset: int) -> None:
    """Below opset 10 it has the type of the data."""
    _assert_told_as_run(_model("Dropout", {"x": (FLOAT, [3, 4])}, {}, {}, 2, opset), {"x": (FLOAT, [3, 4])})
