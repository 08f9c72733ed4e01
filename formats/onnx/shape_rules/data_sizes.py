"""Estimates of sizes that depend on data: the largest, since what is found or kept is no more than what is there."""

from __future__ import annotations

import math

from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.tensor_type import TensorType

_CUTTING = frozenset(("Slice", "Split", "TopK"))
_STRETCHING = frozenset(("CenterCropPad", "Pad", "Resize", "Tile", "Upsample"))


def likely_sizes(node: NodeView, rank: int) -> dict[int, int]:
    """Return sizes of axes of an op's outputs that depend on data, by axis, for estimates; nothing where nobody knows.

    They are the largest that can be where there is one: what is cut, found, chosen or reduced is no more than what is
    there. What is padded, repeated or scaled has none: the size that it had counts.

    Parameters
    ----------
    rank
        Of the output.
    """
    first = node.inputs[0] if node.inputs else None
    if not isinstance(first, TensorType):
        return {}
    found = _found(node, first)
    if found is not None:
        return dict.fromkeys(range(rank), found)
    name = node.kind.removeprefix("com.microsoft:")
    if (name in _CUTTING | _STRETCHING or name.startswith("Reduce")) and rank == first.rank:
        return dict(enumerate(first.shape))
    if (name == "Squeeze" or name.startswith("Reduce")) and rank < first.rank:
        return dict(enumerate(sorted(first.shape, reverse=True)[:rank]))  # whichever axes go
    return {}


def _found(node: NodeView, first: TensorType) -> int | None:
    """Return how much there is that may be found or kept."""
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
