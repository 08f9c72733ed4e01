"""Output types of classic machine learning (domain ``ai.onnx.ml``), of which onnx infers few.

A tensor of one axis is one row. Shapes are those that ONNX Runtime makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import TensorProto

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.tensor_type import TensorType

Types = Sequence[TensorType | None]

_FLOAT, _INT, _TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def _rows(node: NodeView) -> int:
    shape = node.input(0).shape
    return shape[0] if len(shape) > 1 else 1


def _as_float(node: NodeView) -> Types:
    return [TensorType(_FLOAT, node.input(0).shape)]


def _same(node: NodeView) -> Types:
    return [node.input(0)]


def _regressed(name: str, default: int) -> Callable[[NodeView], Types]:
    return lambda node: [TensorType(_FLOAT, (_rows(node), node.integer(name, default)))]


def class_labels(node: NodeView, integers: str) -> tuple[int, int]:
    """Return the element type of a classifier's labels, and their number."""
    for name, dtype in (("classlabels_strings", _TEXT), (integers, _INT)):
        labels = node.attributes.get(name)
        if labels:
            return dtype, len(labels)
    raise MalformedNode(f"{node.kind} has no labels of classes")


def _tree_classes(node: NodeView) -> Types:
    dtype, classes = class_labels(node, "classlabels_int64s")
    return [TensorType(dtype, (_rows(node),)), TensorType(_FLOAT, (_rows(node), classes))]


def _vector_classes(node: NodeView) -> Types:
    """Return a score for each pair of more than two classes where support vectors have no probabilities."""
    dtype, classes = class_labels(node, "classlabels_ints")
    paired = classes > 2 and not node.attributes.get("prob_a") and bool(node.attributes.get("vectors_per_class"))
    scores = classes * (classes - 1) // 2 if paired else classes
    return [TensorType(dtype, (_rows(node),)), TensorType(_FLOAT, (_rows(node), scores))]


def _extracted(node: NodeView) -> Types:
    x, indices = node.input(0), node.input(1)
    return [TensorType(x.dtype, (*(x.shape[:-1] or (1,)), indices.count))]


def _features(node: NodeView) -> Types:
    widths = node.integers("inputdimensions")
    if not widths:
        raise MalformedNode("FeatureVectorizer has no inputdimensions")
    return [TensorType(_FLOAT, (_rows(node), sum(widths)))]


def _other_labels(node: NodeView) -> Types:
    """Text becomes numbers, and numbers text, before version 2."""
    x = node.input(0)
    return [TensorType(_INT if x.dtype == _TEXT else _TEXT, x.shape)] if node.opset < 2 else []


CLASSIC_RULES: dict[str, Callable[[NodeView], Types]] = {
    f"ai.onnx.ml:{name}": rule
    for name, rule in {
        "ArrayFeatureExtractor": _extracted,
        "Binarizer": _same,
        "FeatureVectorizer": _features,
        "Imputer": _same,
        "LabelEncoder": _other_labels,
        "LinearRegressor": _regressed("targets", 1),
        "Normalizer": _as_float,
        "SVMClassifier": _vector_classes,
        "SVMRegressor": lambda node: [TensorType(_FLOAT, (_rows(node), 1))],
        "Scaler": _as_float,
        "TreeEnsembleClassifier": _tree_classes,
        "TreeEnsembleRegressor": _regressed("n_targets", 1),
    }.items()
}
