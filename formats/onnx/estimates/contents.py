"""Contents of a node's outputs where they are small numbers that shapes are computed with, certain or estimated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.formats.onnx.estimates.partial_values import PartialValue, Sureness, propagated
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import RANK, Known
from mtpp.formats.onnx.sequences import sequence_length
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.values import can_evaluate, evaluate


def contents_of(view: NodeView, inputs: Sequence[Known | None], outputs: int) -> list[PartialValue] | None:
    """Return the contents of a node's outputs; None where they are not small, or nothing is known of them."""
    first = inputs[0] if inputs else None
    if view.kind == "Shape" and first is not None and isinstance(first.type, TensorType):
        return [_shape(view, first, first.type)]
    if view.kind == "Size" and first is not None and isinstance(first.type, TensorType):
        return [PartialValue.uniform(np.array(first.type.count, dtype=np.int64), _sureness(first))]
    if view.kind == "SequenceLength":
        length = None if first is None else sequence_length(first.type)
        return None if first is None or length is None else [PartialValue.uniform(length, _sureness(first))]
    if view.kind == "CastLike":
        return _cast_like(view, inputs)
    if not can_evaluate(view.kind):
        return None
    if all(known is None or (known.value is not None and known.elements is None) for known in inputs):
        arrays = evaluate(view.kind, view.values, view.attributes, outputs)
        return None if arrays is None else [PartialValue.uniform(array, Sureness.CERTAIN) for array in arrays]
    partial = [None if known is None else known.partial for known in inputs]
    if any((one is None) != (known is None) for one, known in zip(partial, inputs, strict=True)):
        return None
    if not any(one is not None and one.says_anything for one in partial):
        return None
    found = propagated(view.kind, partial, view.attributes, outputs)
    return found if found is not None and any(one.says_anything for one in found) else None


def shape_window(view: NodeView, rank: int) -> range:
    """Return the axes that a ``Shape`` tells the sizes of."""
    return range(rank)[slice(view.attributes.get("start", 0), view.attributes.get("end"))]


def _cast_like(view: NodeView, inputs: Sequence[Known | None]) -> list[PartialValue] | None:
    """Cast to the type of another tensor, whatever is in that."""
    first, second = inputs[0], view.inputs[1]
    partial = None if first is None else first.partial
    if partial is None or not partial.says_anything or not isinstance(second, TensorType):
        return None
    return propagated("Cast", [partial], {"to": second.dtype}, 1)


def _sureness(known: Known) -> Sureness:
    return Sureness.ASSUMED if known.open_axes else Sureness.CERTAIN


def _shape(view: NodeView, known: Known, kind: TensorType) -> PartialValue:
    axes = shape_window(view, kind.rank)
    estimated = range(kind.rank) if RANK in known.open_axes else known.open_axes
    sureness = [Sureness.ASSUMED if axis in estimated else Sureness.CERTAIN for axis in axes]
    sizes = np.array([kind.shape[axis] for axis in axes], dtype=np.int64)
    return PartialValue(sizes, np.array(sureness, dtype=np.int8))
