"""Sequences and optionals: which tensors are in them, where that is known without running the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.tensor_type import SequenceType, TensorType, ValueType

MOST_ELEMENTS = 100_000
"""Elements of a sequence that are kept apart; a longer one has no known size."""

SequenceRule = Callable[[NodeView], "list[ValueType | None]"]


def sequence_output_types(node: NodeView) -> list[ValueType | None] | None:
    """Return the types of the outputs of an op on sequences or optionals; None if it is none."""
    rule = _RULES.get(node.kind)
    return None if rule is None else rule(node)


def _sequence(node: NodeView) -> tuple[TensorType, ...]:
    kind = node.inputs[0] if node.inputs else None
    if not isinstance(kind, SequenceType):
        raise MalformedNode(f"input 0 of {node.kind} is no sequence of known tensors")
    return kind.elements


def _position(node: NodeView, index: int, default: int) -> int:
    """Return a constant position; one that depends on data is as good as any if all elements are alike."""
    if not node.has(index):
        return default
    value = node.value(index)
    return default if value is None else int(value.reshape(-1)[0])


def _at(node: NodeView) -> list[ValueType | None]:
    elements = _sequence(node)
    if node.value(1) is None and len(set(elements)) > 1:
        return [_largest(elements)]
    return [elements[_position(node, 1, 0)]]


def _largest(elements: tuple[TensorType, ...]) -> TensorType | None:
    """Return the type that has room for any of the elements, None where they differ in more than sizes."""
    if len({(one.dtype, one.rank) for one in elements}) > 1:
        return None
    return TensorType(elements[0].dtype, tuple(map(max, *(one.shape for one in elements))))


def _insert(node: NodeView) -> list[ValueType | None]:
    elements = list(_sequence(node))
    elements.insert(_position(node, 2, len(elements)), node.input(1))
    return [SequenceType(tuple(elements))]


def _erase(node: NodeView) -> list[ValueType | None]:
    elements = list(_sequence(node))
    del elements[_position(node, 1, -1)]
    return [SequenceType(tuple(elements))]


def _split(node: NodeView) -> list[ValueType | None]:
    data = node.input(0)
    axis = node.integer("axis", 0)
    size = data.shape[axis]
    if size > MOST_ELEMENTS:
        return [None]
    if node.has(1):
        split = node.value(1)
        if split is None:  # each part is as large as it can be
            parts = node.input(1).shape
            sizes = [size] * (parts[0] if parts else 1)
        else:
            sizes = _chunks(size, int(split)) if split.ndim == 0 else [int(x) for x in split]
        keep = True
    else:
        sizes = [1] * size
        keep = bool(node.integer("keepdims", 1))
    shapes = [list(data.shape) for _ in sizes]
    for shape, part in zip(shapes, sizes, strict=True):
        shape[axis] = part
        if not keep:
            del shape[axis]
    return [SequenceType(tuple(TensorType(data.dtype, tuple(shape)) for shape in shapes))]


def _chunks(size: int, chunk: int) -> list[int]:
    if chunk < 1:
        raise MalformedNode("split into chunks of no size")
    return [min(chunk, size - start) for start in range(0, size, chunk)]


def _concatenate(node: NodeView) -> list[ValueType | None]:
    elements = _sequence(node)
    first = elements[0]
    axis = node.integer("axis", 0)
    if node.integer("new_axis", 0):
        shape = [*first.shape]
        shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, len(elements))
    else:
        shape = [*first.shape]
        shape[axis] = sum(element.shape[axis] for element in elements)
    return [TensorType(first.dtype, tuple(shape))]


def _same(node: NodeView) -> list[ValueType | None]:
    return [node.inputs[0] if node.inputs else None]


_RULES: dict[str, SequenceRule] = {
    "ConcatFromSequence": _concatenate,
    "Optional": _same,
    "OptionalGetElement": _same,
    "OptionalHasElement": lambda node: [TensorType(TensorProto.BOOL, ())],
    "SequenceAt": _at,
    "SequenceConstruct": lambda node: [SequenceType(tuple(node.input(index) for index in range(len(node.inputs))))],
    "SequenceEmpty": lambda node: [SequenceType(())],
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": lambda node: [TensorType(TensorProto.INT64, ())],
    "SplitToSequence": _split,
}


def sequence_length(kind: ValueType | None) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
    """Return the length of a sequence as a constant scalar."""
    return np.array(len(kind.elements), dtype=np.int64) if isinstance(kind, SequenceType) else None
