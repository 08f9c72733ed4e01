"""Output sizes by arguments of which not every element is known: each element decides its own axis.

``Reshape`` to ``[n, 8]`` leaves one axis open where a run computes n, not two; ``Slice`` by a computed end leaves the
axis open that it cuts. onnx's inference takes an argument whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mtpp.formats.onnx.estimates.partial_values import Sureness
from mtpp.formats.onnx.flops.attention_geometry import group_query_geometry
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.shape_rules.executed_sizes import scaled_size
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.values import slice_range

Sizes = tuple[int | None, ...]
"""Sizes of the axes of one output, None where one is open."""

Elements = list[Any]
"""Elements of an argument, None where one is not known."""


@dataclass(frozen=True)
class Arguments:
    """A node whose inputs are known in part.

    Attributes
    ----------
    least
        How sure a size or an element has to be to count.
    outputs
        How many outputs the node has.
    """

    node: NodeView
    inputs: Sequence[Known | None]
    least: Sureness
    outputs: int

    def has(self, index: int) -> bool:
        """Say whether an input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def sizes(self, index: int) -> Sizes | None:
        """Return the sizes of an input; None if not even their number is known."""
        known = self.inputs[index] if index < len(self.inputs) else None
        if known is None or not isinstance(known.type, TensorType):
            return None
        if self.least < Sureness.CERTAIN:
            return known.type.shape
        sure = known.sure_type
        return (
            None if sure is None or sure.dims is None else tuple(d if isinstance(d, int) else None for d in sure.dims)
        )

    def elements(self, index: int) -> Elements | None:
        """Return the elements of an argument; None if not even their number is known."""
        known = self.inputs[index] if index < len(self.inputs) else None
        if known is None or (known.open_axes and self.least is Sureness.CERTAIN):
            return None
        partial = known.partial
        return None if partial is None else partial.known(self.least)

    def axes(self, index: int, rank: int, count: int) -> list[int] | None:
        """Return the axes that an optional argument names, the first *count* ones by default; None if one is open."""
        if not self.has(index):
            return list(range(count))
        named = self.elements(index)
        if named is None or None in named:
            return None
        return [int(axis) % rank for axis in named] if rank else []


Rule = Callable[[Arguments], "Sequence[Sizes | None] | None"]


def argument_sizes(
    node: NodeView, inputs: Sequence[Known | None], least: Sureness, outputs: int
) -> Sequence[Sizes | None] | None:
    """Return the sizes of a node's outputs, as far as its sizes and arguments that are sure enough decide them.

    Returns
    -------
    One entry per output, None for one of unknown rank; None for an op without such arguments.
    """
    rule = _RULES.get(node.kind.removeprefix("com.microsoft:"))
    return None if rule is None else rule(Arguments(node, inputs, least, outputs))


def has_arguments(kind: str) -> bool:
    """Say whether elements of an input decide sizes of an op's outputs."""
    return kind.removeprefix("com.microsoft:") in _RULES


def _reshape(node: Arguments) -> Sequence[Sizes | None] | None:
    wanted, old = node.elements(1), node.sizes(0)
    if wanted is None:
        return None
    zero_copies = not node.node.integer("allowzero", 0)
    sizes: list[int | None] = []
    for axis, size in enumerate(wanted):
        if size == 0 and zero_copies:
            sizes.append(old[axis] if old is not None and axis < len(old) else None)
        else:
            sizes.append(None if size is None or size < 0 else int(size))
    open_axes = [axis for axis, size in enumerate(wanted) if size is None or size < 0]
    if node.least is Sureness.ASSUMED:  # several that a run computes: the first as large as can be
        sizes = [1 if axis in open_axes[1:] else size for axis, size in enumerate(sizes)]
        open_axes = open_axes[:1]
    if len(open_axes) == 1 and old is not None:
        # What is copied is in both, so that it need not be known.
        copied = {axis for axis, size in enumerate(wanted) if size == 0 and zero_copies}
        before = [size for axis, size in enumerate(old) if axis not in copied]
        after = [size for axis, size in enumerate(sizes) if axis not in copied and axis != open_axes[0]]
        if None not in before and None not in after:
            total, others = prod(one or 0 for one in before), prod(one or 0 for one in after)
            if others and total % others == 0:
                sizes[open_axes[0]] = total // others
    return [tuple(sizes)]


def broadcast_size(first: int | None, second: int | None) -> int | None:
    """Return the size that two axes broadcast to; None if it is open: an open axis may be one long."""
    if first is None or second is None:
        known = second if first is None else first
        return known if known is not None and known > 1 else None
    return second if first == 1 else first


def _expand(node: Arguments) -> Sequence[Sizes | None] | None:
    wanted, old = node.elements(1), node.sizes(0)
    if wanted is None or old is None:
        return None
    rank = max(len(wanted), len(old))
    target = [*[1] * (rank - len(wanted)), *wanted]
    padded = [*[1] * (rank - len(old)), *old]
    return [tuple(broadcast_size(a, b) for a, b in zip(padded, target, strict=True))]


def _compressed(node: Arguments) -> Sequence[Sizes | None] | None:
    old, axis = node.sizes(0), node.node.attributes.get("axis")
    room = None
    if axis is not None and old is not None:
        room = old[axis]
    elif axis is None and old is not None and None not in old:
        room = prod(size or 0 for size in old)
    mask = node.elements(1)
    kept = None
    if mask is not None and None not in mask and room is not None:
        kept = sum(map(bool, mask[:room]))  # what is behind a short mask is left out
    if axis is None:
        return [(kept,)]
    if old is None:
        return None
    place = axis % len(old)
    return [(*old[:place], kept, *old[place + 1 :])]


def _given(node: Arguments) -> Sequence[Sizes | None] | None:
    wanted = node.elements(0)
    return None if wanted is None else [tuple(None if size is None else int(size) for size in wanted)]


def _tile(node: Arguments) -> Sequence[Sizes | None] | None:
    repeats, old = node.elements(1), node.sizes(0)
    if old is None:
        return None
    if repeats is None or len(repeats) != len(old):
        return [(None,) * len(old)]
    return [tuple(None if a is None or b is None else a * int(b) for a, b in zip(old, repeats, strict=True))]


def _pad(node: Arguments) -> Sequence[Sizes | None] | None:
    pads, old = node.elements(1), node.sizes(0)
    if old is None or not node.has(1):
        return None
    axes = node.axes(3, len(old), len(old))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return [(None,) * len(old)]
    sizes = list(old)
    for position, axis in enumerate(axes):
        first, size, last = pads[position], sizes[axis], pads[len(axes) + position]
        sizes[axis] = None if first is None or last is None or size is None else size + int(first) + int(last)
    return [tuple(sizes)]


def _slice(node: Arguments) -> Sequence[Sizes | None] | None:
    old = node.sizes(0)
    if old is None or not node.has(1):
        return None
    starts, ends = node.elements(1), node.elements(2)
    count = next((counts[0] or 0 for i in (1, 2, 3) if (counts := node.sizes(i))), 0)
    axes = node.axes(3, len(old), count)
    steps = node.elements(4) if node.has(4) else [1] * count
    if axes is None or not count:
        return [(None,) * len(old)]
    sizes = list(old)
    for position, axis in enumerate(axes):
        bounds = [None if one is None else one[position] for one in (starts, ends, steps)]
        size = sizes[axis]
        if None in bounds or size is None:
            sizes[axis] = None
        else:
            start, end, step = (int(one or 0) for one in bounds)
            sizes[axis] = len(slice_range(size, start, end, step))
    return [tuple(sizes)]


def _cached(node: Arguments) -> Sequence[Sizes | None] | None:
    """Let a cache grow by the new positions where a run says the total length."""
    if node.least is Sureness.CERTAIN or not node.has(3):
        return None
    g, past = group_query_geometry(node.node), node.sizes(3)
    if past is None:
        return None
    present = (g.batch, g.key_heads, g.buffer, past[3])
    return [(g.batch, g.queries, g.value_width), present, present, (g.batch, g.heads, g.queries, g.keys)]


def _top_k(node: Arguments) -> Sequence[Sizes | None] | None:
    old, count = node.sizes(0), node.elements(1)
    if old is None:
        return None
    sizes = list(old)
    sizes[node.node.integer("axis", -1)] = int(count[0]) if count and count[0] is not None else None
    return [tuple(sizes)] * 2


def _split(node: Arguments) -> Sequence[Sizes | None] | None:
    old = node.sizes(0)
    if old is None or not node.has(1):
        return None
    parts = node.elements(1) or []
    sizes = list(old)
    found = []
    for position in range(node.outputs):
        part = parts[position] if position < len(parts) else None
        sizes[node.node.integer("axis", 0)] = None if part is None else int(part)
        found.append(tuple(sizes))
    return found


def _one_hot(node: Arguments) -> Sequence[Sizes | None] | None:
    old, depth = node.sizes(0), node.elements(1)
    if old is None:
        return None
    axis = node.node.integer("axis", -1)
    sizes = list(old)
    size = int(depth[0]) if depth and depth[0] is not None else None
    sizes.insert(axis if axis >= 0 else len(sizes) + 1 + axis, size)
    return [tuple(sizes)]


def _resize(node: Arguments) -> Sequence[Sizes | None] | None:
    old = node.sizes(0)
    if old is None:
        return None
    nothing: list[Sizes | None] = [(None,) * len(old)]
    upsample = node.node.kind == "Upsample" or node.node.opset < 11
    scales = node.elements(1 if upsample else 2) if node.has(1 if upsample else 2) else []
    wanted = node.elements(3) if not upsample and node.has(3) else []
    named = node.node.integers("axes")
    axes = list(range(len(old))) if named is None else [axis % len(old) for axis in named]
    if not scales and not wanted:
        return nothing
    cropped = node.node.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if node.node.text("keep_aspect_ratio_policy", "stretch") != "stretch" or (scales and cropped):
        return nothing
    if len(wanted or scales or ()) != len(axes):
        return nothing
    sizes = list(old)
    for position, axis in enumerate(axes):
        size = sizes[axis]
        if wanted:
            sizes[axis] = None if wanted[position] is None else int(wanted[position])
        else:
            scale = scales[position] if scales else None
            # A scale of one is all that keeps a size that is open.
            sizes[axis] = None if scale is None or size is None else scaled_size(size, scale)
    return [tuple(sizes)]


def _crop_or_pad(node: Arguments) -> Sequence[Sizes | None] | None:
    old, wanted = node.sizes(0), node.elements(1)
    if old is None:
        return None
    named = node.node.integers("axes")
    axes = list(range(len(old))) if named is None else [axis % len(old) for axis in named]
    sizes = list(old)
    for position, axis in enumerate(axes):
        size = wanted[position] if wanted is not None and position < len(wanted) else None
        sizes[axis] = None if size is None else int(size)
    return [tuple(sizes)]


def _reduced(node: Arguments) -> Sequence[Sizes | None] | None:
    old = node.sizes(0)
    if old is None or not node.has(1):
        return None
    named = node.elements(1)
    if named == [] or (named is not None and None not in named):
        return None  # onnx tells it
    if node.node.integer("keepdims", 1):
        certain = {int(axis) % len(old) for axis in named or () if axis is not None}
        return [tuple(1 if axis in certain or size == 1 else None for axis, size in enumerate(old))]
    return None if named is None else [(None,) * (len(old) - len(named))]


def _squeezed(node: Arguments) -> Sequence[Sizes | None] | None:
    old, named = node.sizes(0), node.elements(1) if node.has(1) else None
    if old is None or named is None or None not in named:
        return None
    return [(None,) * (len(old) - len(named))]


def _unsqueezed(node: Arguments) -> Sequence[Sizes | None] | None:
    old, named = node.sizes(0), node.elements(1) if node.has(1) else None
    if old is None or named is None or None not in named:
        return None
    return [(None,) * (len(old) + len(named))]


def _one_axis(node: Arguments) -> Sequence[Sizes | None] | None:
    return [(None,)]


def _affine_grid(node: Arguments) -> Sequence[Sizes | None] | None:
    size = node.elements(1)
    if size is None or len(size) < 3:
        return None
    theta = node.sizes(0) or (None,)
    batch = size[0] if theta[0] is None else theta[0]
    picture = (None if one is None else int(one) for one in size[2:])
    return [(None if batch is None else int(batch), *picture, len(size) - 2)]


def _unpooled(node: Arguments) -> Sequence[Sizes | None] | None:
    wanted = node.elements(2) if node.has(2) else None
    return None if wanted is None else [tuple(None if one is None else int(one) for one in wanted)]


_RULES: dict[str, Rule] = {
    "AffineGrid": _affine_grid,
    "BlackmanWindow": _one_axis,
    "CenterCropPad": _crop_or_pad,
    "Compress": _compressed,
    "ConstantOfShape": _given,
    "Expand": _expand,
    "HammingWindow": _one_axis,
    "HannWindow": _one_axis,
    "MaxUnpool": _unpooled,
    "GroupQueryAttention": _cached,
    "MelWeightMatrix": lambda node: [(None, None)],
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _one_axis,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeezed,
    "Tile": _tile,
    "TopK": _top_k,
    "Unsqueeze": _unsqueezed,
    "Upsample": _resize,
    **dict.fromkeys(
        (
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
            "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        _reduced,
    ),
}  # fmt: skip
