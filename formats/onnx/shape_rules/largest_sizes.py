"""Largest sizes of axes that depend on data: by the most that the numbers can be which decide them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtpp.formats.onnx.estimates.numbers import INFINITE, Number
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import RANK, Known
from mtpp.formats.onnx.shape_rules.executed_sizes import scaled_size
from mtpp.formats.onnx.tensor_type import TensorType

LARGEST = 2**31 - 1
"""Sizes beyond it are none: no largest is known."""

_TO_THE_FIRST = 2**31 - 1
"""Ends of slices backwards from which on they may stand for all that is left."""

_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True)
class Largest:
    """Size of an axis.

    Attributes
    ----------
    most
        The largest that it can be; infinite where there is none.
    number
        The size itself, where one number decides it.
    """

    most: float
    number: Number | None = None

    @classmethod
    def of(cls, number: Number, most: float = INFINITE) -> Largest:
        """Return the size that a number decides, or *most* where that is less."""
        return cls(min(number.high, most), number)

    @property
    def size(self) -> int | None:
        """The largest size; None where there is none."""
        return max(0, math.floor(self.most)) if self.most <= LARGEST else None


Sizes = dict[int, Largest]


@dataclass(frozen=True)
class Sized:
    """A node whose sizes are told by the numbers that it reads."""

    node: NodeView
    inputs: Sequence[Known | None]
    outputs: int

    def has(self, index: int) -> bool:
        """Say whether an input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def known(self, index: int) -> Known:
        """Return an input that has to be there."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None or not isinstance(found.type, TensorType) or RANK in found.open_axes:
            raise ValueError(f"input {index} is no tensor of known rank")
        return found

    def size(self, index: int, axis: int) -> Number:
        """Return the size of an axis of an input."""
        known = self.known(index)
        rank = self.node.input(index).rank
        return known.size(axis % rank if rank else axis)

    def number(self, index: int, element: int = 0) -> Number:
        """Return an element of an input; anything if nothing is known of it."""
        known = self.inputs[index] if index < len(self.inputs) else None
        found = None if known is None else known.ranged
        number = None if found is None else found.number(element)
        return Number.between(-INFINITE, INFINITE, whole=True, followed=False) if number is None else number

    def axes(self, index: int, count: int) -> list[int]:
        """Return the axes that an argument names, the first *count* by default; raise ValueError if one is open."""
        rank = self.node.input(0).rank
        if not self.has(index):
            return list(range(count))
        named = [self.number(index, place).estimate for place in range(self.node.input(index).count)]
        if None in named:
            raise ValueError("axes that a run computes")
        return [int(axis or 0) % rank for axis in named]


Rule = Callable[[Sized], "Sequence[Sizes]"]


def largest_sizes(node: NodeView, inputs: Sequence[Known | None], outputs: int) -> Sequence[Sizes]:
    """Return the largest sizes of axes of a node's outputs that arguments decide, by axis for each output."""
    rule = _RULES.get(node.kind.removeprefix("com.microsoft:"))
    if rule is None:
        return ()
    try:
        return rule(Sized(node, inputs, outputs))
    except _MISFITS:
        return ()


def _filled(node: Sized) -> Sequence[Sizes]:
    return [{axis: Largest.of(node.number(0, axis)) for axis in range(node.node.input(0).count)}]


def _expanded(node: Sized) -> Sequence[Sizes]:
    old, count = node.node.input(0).rank, node.node.input(1).count
    rank = max(old, count)
    found: Sizes = {}
    for axis in range(rank):
        before, wanted = axis - (rank - old), axis - (rank - count)
        size = node.size(0, before) if before >= 0 else Number.constant(1.0)
        target = node.number(1, wanted) if wanted >= 0 else Number.constant(1.0)
        if size.estimate == 1:
            found[axis] = Largest.of(target)
        elif target.high < INFINITE:
            found[axis] = Largest(max(size.high, target.high))
        else:
            found[axis] = Largest(size.high if size.low > 1 else INFINITE)
    return [found]


def _tiled(node: Sized) -> Sequence[Sizes]:
    found: Sizes = {}
    for axis in range(node.node.input(0).rank):
        size, repeats = node.size(0, axis), node.number(1, axis)
        known = size.estimate
        found[axis] = Largest(_times(size.high, repeats.high)) if known is None else Largest.of(repeats.times(known))
    return [found]


def _times(a: float, b: float) -> float:
    return a * b if a and b else 0.0


def _padded(node: Sized) -> Sequence[Sizes]:
    rank = node.node.input(0).rank
    axes = node.axes(3, rank)
    sums = ((axis, node.number(1, at) + node.number(1, len(axes) + at)) for at, axis in enumerate(axes))
    return [{axis: Largest.of(node.size(0, axis) + more) for axis, more in sums}]


def _sliced(node: Sized) -> Sequence[Sizes]:
    axes = node.axes(3, node.node.input(1).count)
    found: Sizes = {}
    for at, axis in enumerate(axes):
        step = node.number(4, at).estimate if node.has(4) else 1.0
        size = node.size(0, axis)
        found[axis] = _part(size, node.number(1, at), node.number(2, at), step)
    return [found]


def _part(size: Number, start: Number, end: Number, step: float | None) -> Largest:
    """Return how much there is from one place to another of an axis."""
    if step is None or not step:
        return Largest(size.high)
    if step < 0:
        return _part_back(size, start, end, -step)
    room, between = [size.high], end - start
    if start.low >= 0:
        room.append((size - start).high)
    elif start.high < 0:
        room.append(-start.low)
    if end.low >= 0:
        room.append(end.high)
    elif end.high < 0:
        room.append((size + end).high)
        room += [(size + between).high] if start.low >= 0 else []
    if between.low >= 0 or start.low >= 0 <= end.low or start.high < 0 > end.high:
        room.append(between.high)  # where one counts from the end and the other does not, there is less
    most = max(0.0, min(room))
    decides = step == 1 and start.estimate == 0 and end.low >= 0
    return Largest(math.ceil(most / step) if math.isfinite(most) else most, end if decides else None)


def _part_back(size: Number, start: Number, end: Number, step: float) -> Largest:
    """Return how much there is from one place of an axis back to another, which is left out."""
    room = [size.high]
    to_the_first = end.high >= _TO_THE_FIRST  # or beyond what any axis has
    if start.low >= 0:
        room.append(start.high + 1)
        room += [(start - end).high] if end.low >= 0 and not to_the_first else []
    elif start.high < 0:
        room.append((size + start).high + 1)
        room += [(start - end).high] if end.high < 0 else []
        room = [max(1.0, one) for one in room] if (size + start).low < 0 else room  # from before the first: that one
    most = max(0.0, min(room))
    return Largest(math.ceil(most / step))


def _ranged(node: Sized) -> Sequence[Sizes]:
    start, limit, delta = (node.number(i) for i in range(3))
    if delta.low > 0:
        way, least = limit - start, delta.low
    elif delta.high < 0:
        way, least = start - limit, -delta.high
    else:
        return ()
    most = max(0.0, way.high) / least
    decides = way.whole and delta.low == delta.high and least == 1
    return [{0: Largest(math.ceil(most) if math.isfinite(most) else most, way if decides else None)}]


def _chosen(node: Sized) -> Sequence[Sizes]:
    axis = node.node.integer("axis", -1) % node.node.input(0).rank
    return [{axis: Largest.of(node.number(1), node.size(0, axis).high)}] * 2


def _parts(node: Sized) -> Sequence[Sizes]:
    axis = node.node.integer("axis", 0) % node.node.input(0).rank
    if not node.has(1):
        return ()
    room = node.size(0, axis).high
    parts = [node.number(1, at) for at in range(node.outputs)]
    found = []
    for at, part in enumerate(parts):
        others = sum(max(0.0, other.low) for place, other in enumerate(parts) if place != at)
        found.append({axis: Largest.of(part, room - others)})
    return found


def _hot(node: Sized) -> Sequence[Sizes]:
    rank = node.node.input(0).rank + 1
    return [{node.node.integer("axis", -1) % rank: Largest.of(node.number(1))}]


def _resized(node: Sized) -> Sequence[Sizes]:
    upsample = node.node.kind == "Upsample" or node.node.opset < 11
    scales = 1 if upsample else 2
    rank = node.node.input(0).rank
    named = node.node.integers("axes")
    axes = list(range(rank)) if named is None else [axis % rank for axis in named]
    if not upsample and node.has(3) and node.node.input(3).count:
        if node.node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
            return ()
        return [{axis: Largest.of(node.number(3, at)) for at, axis in enumerate(axes)}]
    if not node.has(scales) or node.node.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        return ()
    found = ((axis, node.size(0, axis).high, node.number(scales, at).high) for at, axis in enumerate(axes))
    return [
        {axis: Largest(scaled_size(int(size), scale) if math.isfinite(scale) else scale) for axis, size, scale in found}
    ]


def _cropped(node: Sized) -> Sequence[Sizes]:
    rank = node.node.input(0).rank
    named = node.node.integers("axes")
    axes = list(range(rank)) if named is None else [axis % rank for axis in named]
    return [{axis: Largest.of(node.number(1, at)) for at, axis in enumerate(axes)}]


def _reshaped(node: Sized) -> Sequence[Sizes]:
    """Each axis no more than its number, and than the others leave; the first as large as it can be."""
    old = node.node.input(0)
    left = float(math.prod(node.size(0, axis).high for axis in range(old.rank)))
    count = node.node.input(1).count
    copies = not node.node.integer("allowzero", 0)
    wanted = [node.number(1, axis) for axis in range(count)]
    found: Sizes = {}
    rest = []
    for axis, number in enumerate(wanted):
        size = number.estimate
        if size == 0 and copies:
            found[axis] = Largest(node.size(0, axis).high)
        elif size is not None and size > 0:
            found[axis] = Largest(size)
        else:
            rest.append(axis)
            continue
        left /= max(1.0, found[axis].most)
    total = math.floor(left)
    for position, axis in enumerate(rest):
        high = wanted[axis].high
        most = total if position == len(rest) - 1 or high >= total or high < 1 else _divisor(total, int(high))
        found[axis] = Largest(most, None if wanted[axis].high < 0 else wanted[axis])
        total //= max(1, most)
    return [found]


def _divisor(total: int, most: int) -> int:
    """Return the largest divisor of a number up to *most*."""
    return next((size for size in range(min(most, 10_000), 0, -1) if total % size == 0), 1)


def _kept(node: Sized) -> Sequence[Sizes]:
    """Most elements that a mask can keep."""
    kind, axis = node.node.input(0), node.node.attributes.get("axis")
    if not isinstance(axis, int):
        room, place = math.prod(node.size(0, one).high for one in range(kind.rank)), 0
    else:
        room, place = node.size(0, axis).high, axis % kind.rank
    mask = node.known(1).ranged
    length = node.size(1, 0).high
    if mask is not None:
        length = sum(min(1.0, max(0.0, one.high)) for one in mask.array.flat) if mask.each else length
    return [{place: Largest(min(room, length))}]


def _not_zero(node: Sized) -> Sequence[Sizes]:
    kind, numbers = node.node.input(0), node.known(0).ranged
    count = math.prod(node.size(0, axis).high for axis in range(kind.rank))
    if numbers is not None and numbers.each:
        count = sum(not one.low == one.high == 0 for one in numbers.array.flat)
    elif numbers is not None and numbers.low == numbers.high == 0:
        count = 0
    return [{1: Largest(count)}]


def _different(node: Sized) -> Sequence[Sizes]:
    kind, axis = node.node.input(0), node.node.attributes.get("axis")
    numbers = node.known(0).ranged
    if isinstance(axis, int):
        room, place = node.size(0, axis).high, axis % kind.rank
    else:
        room, place = math.prod(node.size(0, one).high for one in range(kind.rank)), 0
        if numbers is not None and numbers.whole and numbers.high - numbers.low < room:
            room = numbers.high - numbers.low + 1
    return [{place: Largest(room)}, *({0: Largest(room)} for _ in range(3))][: node.outputs]


def _found_boxes(node: Sized) -> Sequence[Sizes]:
    batch, classes, boxes = (node.size(1, axis).high for axis in range(3))
    most = node.number(2).high if node.has(2) else 0.0
    return [{0: Largest(batch * classes * max(0.0, min(boxes, most)))}]


def _pieces(node: Sized) -> Sequence[Sizes]:
    """One piece more than a text is split at most; without a limit nobody knows."""
    limit = node.node.attributes.get("maxsplit")
    rank = node.node.input(0).rank
    return [{rank: Largest(limit + 1.0)}] if isinstance(limit, int) and limit >= 0 else ()


def _one_axis(node: Sized) -> Sequence[Sizes]:
    return [{0: Largest.of(node.number(0))}]


def _grid(node: Sized) -> Sequence[Sizes]:
    count = node.node.input(1).count
    return [{0: Largest.of(node.number(1, 0)), **{at - 1: Largest.of(node.number(1, at)) for at in range(2, count)}}]


def _unpooled(node: Sized) -> Sequence[Sizes]:
    if not node.has(2):
        return ()
    return [{axis: Largest.of(node.number(2, axis)) for axis in range(node.node.input(2).count)}]


def _transformed(node: Sized) -> Sequence[Sizes]:
    """Return sizes of a Fourier transform of a length that a run computes."""
    kind = node.node.input(0)
    if not node.has(1):
        return ()
    if node.node.opset >= 20:
        named = node.number(2).estimate if node.has(2) else -2.0
    else:
        named = float(node.node.integer("axis", 1))
    if named is None:
        return ()
    length, axis = node.number(1), int(named) % kind.rank
    if not node.node.integer("onesided", 0):
        return [{axis: Largest.of(length)}]
    return [{axis: Largest(length.high // 2 + 1)}]


_RULES: dict[str, Rule] = {
    "AffineGrid": _grid,
    "BlackmanWindow": _one_axis,
    "CenterCropPad": _cropped,
    "Compress": _kept,
    "ConstantOfShape": _filled,
    "DFT": _transformed,
    "Expand": _expanded,
    "HammingWindow": _one_axis,
    "HannWindow": _one_axis,
    "MaxUnpool": _unpooled,
    "MelWeightMatrix": lambda node: [{0: Largest(node.number(1).high // 2 + 1), 1: Largest.of(node.number(0))}],
    "NonMaxSuppression": _found_boxes,
    "NonZero": _not_zero,
    "OneHot": _hot,
    "Pad": _padded,
    "Range": _ranged,
    "Reshape": _reshaped,
    "Resize": _resized,
    "Slice": _sliced,
    "Split": _parts,
    "StringSplit": _pieces,
    "Tile": _tiled,
    "TopK": _chosen,
    "Unique": _different,
    "Upsample": _resized,
}
