"""Estimates of sizes that depend on data: the largest, since what is found or kept is no more than what is there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import NO_AXES, RANK, Known
from mtpp.formats.onnx.shape_rules.argument_sizes import has_arguments
from mtpp.formats.onnx.shape_rules.largest_sizes import Sizes
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import Dim, PartialType, TensorType

_CUTTING = frozenset(("Slice", "Split", "TopK"))
_CONTROL = frozenset(("If", "Loop", "Scan"))
_STRETCHING = frozenset(("CenterCropPad", "Pad", "Resize", "Tile", "Upsample"))


def likely_sizes(node: NodeView, kind: PartialType, largest: Sequence[Sizes] = ()) -> dict[int, int]:
    """Return sizes of axes of an op's output that depend on data, by axis, for estimates; nothing where nobody knows.

    They are the largest that can be where there is one: what is cut, found, chosen or reduced is no more than what is
    there. What is padded, repeated or scaled without limit has none: the size that it had counts.

    Parameters
    ----------
    largest
        The largest sizes of this output that arguments tell; empty where they do not.
    """
    rank = len(kind.dims or ())
    found = {axis: max(1, one.size) for told in largest for axis, one in told.items() if one.size is not None}
    return {**_of_first_input(node, rank), **found}


def _of_first_input(node: NodeView, rank: int) -> dict[int, int]:
    first = node.inputs[0] if node.inputs else None
    if not isinstance(first, TensorType):
        return {}
    name = node.kind.removeprefix("com.microsoft:")
    if (name in _CUTTING | _STRETCHING or name.startswith("Reduce")) and rank == first.rank:
        return dict(enumerate(first.shape))
    if name == "Unsqueeze" and rank > first.rank:
        return dict(enumerate((*[1] * (rank - first.rank), *first.shape)))  # wherever the new axes are
    if (name == "Squeeze" or name.startswith("Reduce")) and rank < first.rank:
        return dict(enumerate(sorted(first.shape, reverse=True)[:rank]))  # whichever axes go
    return {}


def widest(kind: OutputType, sure: OutputType | None, declared: OutputType | None, largest: Sizes) -> OutputType:
    """Return a type with the largest sizes of its open axes in place of smaller estimates that are not declared."""
    if not isinstance(kind, PartialType) or kind.dims is None or not largest:
        return kind
    dims = list(kind.dims)
    for axis, one in largest.items():
        dim = dims[axis] if axis < len(dims) else None
        told = any(isinstance(_dim(other, axis), int) for other in (sure, declared))
        if isinstance(dim, int) and not told and one.size is not None and one.size > dim:
            dims[axis] = one.size
    return PartialType(kind.dtype, tuple(dims))


def shared(kind: OutputType, sure: OutputType | None, declared: OutputType | None, largest: Sizes) -> OutputType:
    """Return a type whose axes share what there is, as large as they can be from the first one on, unless declared."""
    if not isinstance(kind, PartialType) or (complete := kind.complete()) is None or len(largest) != complete.rank:
        return kind
    sizes = tuple(largest[axis].size for axis in range(complete.rank))
    told = [_dim(other, axis) for other in (sure, declared) for axis in range(complete.rank)]
    known = [dim for dim in zip(told, sizes * 2, strict=True) if isinstance(dim[0], int)]
    if any(dim != size for dim, size in known) or math.prod(size or 0 for size in sizes) != complete.count:
        return kind
    return PartialType(kind.dtype, sizes)


def _dim(kind: OutputType | None, axis: int) -> Dim:
    dims = kind.dims if isinstance(kind, PartialType) else None
    return dims[axis] if dims is not None and axis < len(dims) else None


def assumed_axes(
    node: NodeView, inputs: Sequence[Known | None], found: TensorType, axes: frozenset[int], largest: Sizes
) -> frozenset[int]:
    """Return the open axes of an output whose estimate is not known to be the largest size.

    Parameters
    ----------
    found
        The output's type, with estimates.
    axes
        Its open axes.
    largest
        What arguments tell.
    """
    given = [known for known in inputs if known is not None]
    if RANK in axes or any(known.assumed_axes for known in given):
        return axes
    first = node.inputs[0] if node.inputs else None
    keeps_axes = isinstance(first, TensorType) and first.rank == found.rank  # of fewer, or more, any may be the largest
    stretches = node.kind.removeprefix("com.microsoft:") in _STRETCHING
    likely = _of_first_input(node, found.rank) if keeps_axes and not stretches else {}
    follows = node.kind in _CONTROL or (not has_arguments(node.kind) and any(known.open_axes for known in given))

    def is_largest(axis: int) -> bool:
        told = largest[axis].size if axis in largest else likely.get(axis)
        return follows if told is None else found.shape[axis] >= told

    return NO_AXES.union(axis for axis in axes if not is_largest(axis))
