"""Output types of standard ops for which onnx's schemas have no shape inference, or leave something open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import TensorProto

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.tensor_type import TensorType


def standard_output_types(node: NodeView) -> Sequence[TensorType | None]:
    """Return what can be told of the outputs; None, or a list that is too short, where nothing can.

    Raises
    ------
    ValueError, IndexError
        If the inputs do not fit.
    """
    rule = _RULES.get(node.kind)
    return [] if rule is None else rule(node)


def _scalar(node: NodeView, index: int) -> int:
    value = node.value(index)
    if value is None or not value.size:
        raise MalformedNode(f"input {index} of {node.kind} is no constant")
    return int(value.reshape(-1)[0])


def _same(node: NodeView) -> Sequence[TensorType | None]:
    return [node.input(0)]


def _dropout(node: NodeView) -> Sequence[TensorType | None]:
    return [node.input(0), TensorType(TensorProto.BOOL, node.input(0).shape)]


def _one_hot(node: NodeView) -> Sequence[TensorType | None]:
    indices, axis = node.input(0), node.integer("axis", -1)
    shape = [*indices.shape]
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, _scalar(node, 1))
    return [TensorType(node.input(2).dtype, tuple(shape))]


def _window(node: NodeView) -> Sequence[TensorType | None]:
    return [TensorType(node.integer("output_datatype", TensorProto.FLOAT), (_scalar(node, 0),))]


def _mel_weights(node: NodeView) -> Sequence[TensorType | None]:
    shape = (_scalar(node, 1) // 2 + 1, _scalar(node, 0))
    return [TensorType(node.integer("output_datatype", TensorProto.FLOAT), shape)]


def _max_unpool(node: NodeView) -> Sequence[TensorType | None]:
    shape = node.value(2)
    return [] if shape is None else [TensorType(node.input(0).dtype, tuple(int(size) for size in shape))]


_RULES: dict[str, Callable[[NodeView], Sequence[TensorType | None]]] = {
    "BlackmanWindow": _window,
    "Dropout": _dropout,
    "GroupNormalization": _same,
    "HammingWindow": _window,
    "HannWindow": _window,
    "MaxUnpool": _max_unpool,
    "MeanVarianceNormalization": _same,
    "MelWeightMatrix": _mel_weights,
    "OneHot": _one_hot,
}
