"""Output types of standard ops for which onnx's schemas have no shape inference, or leave something open.

In classic machine learning (domain ``ai.onnx.ml``) a tensor of one axis is one row. Shapes are those that ONNX Runtime
makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnx import TensorProto

from mtpp.formats.onnx.flops.attention_geometry import standard_geometry
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, broadcast
from mtpp.formats.onnx.values import slice_range

Types = Sequence[TensorType | PartialType | None]

_FLOAT, _INT, _TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def standard_output_types(node: NodeView) -> Types:
    """Return what can be told of the outputs; None, or a list that is too short, where nothing can."""
    rule = _RULES.get(node.kind)
    return [] if rule is None else rule(node)


def _scalar(node: NodeView, index: int) -> int:
    value = node.value(index)
    if value is None or not value.size:
        raise MalformedNode(f"input {index} of {node.kind} is no constant")
    return int(value.reshape(-1)[0])


def _same(node: NodeView) -> Types:
    return [node.input(0)]


def _one_hot(node: NodeView) -> Types:
    indices, axis = node.input(0), node.integer("axis", -1)
    shape = [*indices.shape]
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, _scalar(node, 1))
    return [TensorType(node.input(2).dtype, tuple(shape))]


def _window(node: NodeView) -> Types:
    return [TensorType(node.integer("output_datatype", TensorProto.FLOAT), (_scalar(node, 0),))]


def _mel_weights(node: NodeView) -> Types:
    shape = (_scalar(node, 1) // 2 + 1, _scalar(node, 0))
    return [TensorType(node.integer("output_datatype", TensorProto.FLOAT), shape)]


def _max_unpool(node: NodeView) -> Types:
    shape = node.value(2)
    return [] if shape is None else [TensorType(node.input(0).dtype, tuple(int(size) for size in shape))]


def _compared(node: NodeView) -> Types:
    return [TensorType(TensorProto.BOOL, broadcast([node.input(0).shape, node.input(1).shape]))]


def _compressed(node: NodeView) -> Types:
    """Leave open how many are kept: data says that."""
    x, axis = node.input(0), node.attributes.get("axis")
    if axis is None:
        return [PartialType(x.dtype, (None,))]
    kept: list[int | None] = [*x.shape]
    kept[axis] = None
    return [PartialType(x.dtype, tuple(kept))]


def _sliced(node: NodeView) -> Types:
    """Bounds as attributes, before opset 10: onnx gives up on axes that are not sorted."""
    x = node.input(0)
    starts, ends = node.integers("starts"), node.integers("ends")
    if starts is None or ends is None:
        return []
    shape = [*x.shape]
    for axis, start, end in zip(node.integers("axes") or range(len(starts)), starts, ends, strict=True):
        shape[axis] = len(slice_range(x.shape[axis], start, end))
    return [TensorType(x.dtype, tuple(shape))]


def _attention(node: NodeView) -> Types:
    """Return the result, keys and values with the cached ones, and the scores: onnx tells the last three with a cache.

    Results have the heads apart or side by side, as queries have.
    """
    query, g = node.input(0), standard_geometry(node)
    sizes = (g.batch, g.heads, g.queries, g.value_size)
    return [
        TensorType(query.dtype, shape)
        for shape in (
            sizes if query.rank == 4 else (g.batch, g.queries, g.value_width),
            (g.batch, g.key_heads, g.keys, g.head_size),
            (g.batch, g.key_heads, g.keys, g.value_size),
            (g.batch, g.heads, g.queries, g.keys),
        )
    ]


def _gathered(node: NodeView) -> Types:
    """Take parts by whole indices: onnx tells nothing of a result that is one number."""
    x, indices = node.input(0), node.input(1)
    taken = node.integer("batch_dims", 0) + indices.shape[-1]
    return [TensorType(x.dtype, (*indices.shape[:-1], *x.shape[taken:]))] if taken <= x.rank else []


def _reshaped(node: NodeView) -> Types:
    """Take sizes from an attribute, before opset 5."""
    x, sizes = node.input(0), node.integers("shape")
    if sizes is None:
        return []
    shape = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    if -1 in shape:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = x.count // rest if rest else 0
    if math.prod(shape) != x.count:
        raise MalformedNode(f"{x.count} elements do not make {'×'.join(map(str, shape))}")
    return [TensorType(x.dtype, tuple(shape))]


def _rows(node: NodeView) -> int:
    shape = node.input(0).shape
    return shape[0] if len(shape) > 1 else 1


def _as_float(node: NodeView) -> Types:
    return [TensorType(_FLOAT, node.input(0).shape)]


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


_CLASSIC: dict[str, Callable[[NodeView], Types]] = {
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

_RULES: dict[str, Callable[[NodeView], Types]] = {
    **_CLASSIC,
    "Attention": _attention,
    "BlackmanWindow": _window,
    "Compress": _compressed,
    "GatherND": _gathered,
    "GreaterOrEqual": _compared,
    "GroupNormalization": _same,
    "HammingWindow": _window,
    "HannWindow": _window,
    "LessOrEqual": _compared,
    "MaxUnpool": _max_unpool,
    "MeanVarianceNormalization": _same,
    "MelWeightMatrix": _mel_weights,
    "OneHot": _one_hot,
    "Reshape": _reshaped,
    "Slice": _sliced,
}
