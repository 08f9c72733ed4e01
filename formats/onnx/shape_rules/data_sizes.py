"""Largest sizes of tensors whose size depends on data: what is found, chosen or kept is no more than what is there."""

from __future__ import annotations

import math

from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.tensor_type import TensorType


def largest_size(node: NodeView) -> int | None:
    """Return the largest size that an open axis of an op's outputs can have; None where nobody knows."""
    first = node.inputs[0] if node.inputs else None
    if not isinstance(first, TensorType):
        return None
    if node.kind in ("NonZero", "Unique", "com.microsoft:Unique"):
        return max(1, first.count)
    if node.kind == "Compress":
        axis = node.attributes.get("axis")
        return max(1, first.shape[axis] if isinstance(axis, int) and -first.rank <= axis < first.rank else first.count)
    if node.kind == "NonMaxSuppression":
        return _boxes(node)
    return None


def _boxes(node: NodeView) -> int | None:
    scores = node.inputs[1] if len(node.inputs) > 1 else None
    if not isinstance(scores, TensorType) or scores.rank != 3:
        return None
    batch, classes, boxes = scores.shape
    limit = node.value(2)
    kept = boxes if limit is None or not limit.size else min(boxes, int(limit.reshape(-1)[0]))
    return max(1, math.prod((batch, classes, max(0, kept))))
