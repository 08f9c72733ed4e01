"""Ranges of numbers that ops move, reduce, count or find: no element depends on its own place alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mtpp.formats.onnx.estimates.contents import shape_window
from mtpp.formats.onnx.estimates.elementwise_numbers import multiplied
from mtpp.formats.onnx.estimates.numbers import Number, NumberArray, Numbers
from mtpp.formats.onnx.estimates.operands import Operands, Rule, product
from mtpp.formats.onnx.scope import RANK
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.values import Array, array_of, evaluate, is_evaluated


def _moved(*moving: int, constant: int | None = None) -> Rule:
    """Return the rule of an op whose outputs hold elements of some inputs; *constant*: and one that may be added."""

    def run(node: Operands) -> Sequence[Numbers | None]:
        if node.node.text("reduction", "none") != "none":
            return ()
        indices = [i for i in (moving or range(len(node.inputs))) if i < len(node.inputs)]
        given = [node.numbers(i) for i in indices]
        if any(one is None for one in given):
            return ()
        kept = [one for one in given if one is not None]
        if all(one.each for one in kept):
            found = _placed(node, indices, kept)
            if found is not None:
                return found
        low, high = min(one.low for one in kept), max(one.high for one in kept)
        if constant is not None:
            low, high = min(low, constant), max(high, constant)
        whole = all(one.whole for one in kept)
        return [Numbers.of_all(low, high, whole=whole)] * len(node.made)

    return run


def _placed(node: Operands, indices: Sequence[int], given: Sequence[Numbers]) -> Sequence[Numbers] | None:
    """Return where each element goes; None where that is not certain."""
    marks: list[Array | None] = [node.certain(index) for index in range(len(node.inputs))]
    elements: list[Number] = []
    for index, one in zip(indices, given, strict=True):
        marks[index] = np.arange(len(elements), len(elements) + one.array.size).reshape(one.array.shape)
        elements += one.array.reshape(-1).tolist()
    if any(mark is None and known is not None for mark, known in zip(marks, node.inputs, strict=True)):
        return None
    moved = evaluate(node.node.kind, marks, node.node.attributes, len(node.made))
    if moved is None:
        return None
    values = np.empty(len(elements), dtype=object)
    values[:] = elements
    return [Numbers.of_each(values[places]) for places in moved]


def _copies(node: Operands, axes: Sequence[int] | None) -> float:
    """Return how many elements of the first input are reduced to one, at most."""
    kind = node.node.input(0)
    return float(kind.count if axes is None else math.prod(kind.shape[axis] for axis in axes))


def _may_lack_elements(node: Operands, index: int = 0) -> bool:
    """Say whether an input may have fewer elements than its type says, or has none."""
    known = node.inputs[index]
    return known is None or bool(known.open_axes) or not node.node.input(index).count


def _with_nothing(low: float, high: float) -> tuple[float, float]:
    """Return the range of a sum of some elements, or of none."""
    return min(low, 0.0), max(high, 0.0)


def _reduced_axes(node: Operands) -> tuple[int, ...] | None:
    """Return the axes that are reduced; None if they are not certain."""
    kind = node.node.input(0)
    if node.node.has(1):
        named = node.certain(1)
        if named is None:
            return None
        axes = [int(axis) for axis in named.reshape(-1)]
    else:
        axes = node.node.integers("axes") or []
    if not axes:
        return () if node.node.integer("noop_with_empty_axes", 0) else tuple(range(kind.rank))
    return tuple(axis % kind.rank for axis in axes)


def _sum_of(numbers: NumberArray) -> Number:
    found = Number.constant(0.0)
    for number in numbers:
        found = found + number
    return found


def _summed(node: Operands) -> Sequence[Numbers | None]:
    first = node.need(0)
    axes = _reduced_axes(node)
    if first.each and axes is not None:
        places = np.arange(first.array.size).reshape(first.array.shape)
        moved = np.moveaxis(places, axes, range(-len(axes), 0)) if axes else places[..., None]
        kept = [size for axis, size in enumerate(places.shape) if axis not in axes]
        sums = [_sum_of(first.array.reshape(-1)[row]) for row in moved.reshape(math.prod(kept), -1)]
        found = np.empty(len(sums), dtype=object)
        found[:] = sums
        return [Numbers.of_each(found.reshape(node.shape()))]
    times = _copies(node, axes)
    low, high = (product((end, end), (times, times))[0] for end in (first.low, first.high))
    low, high = min(low, first.low), max(high, first.high)
    if _may_lack_elements(node):
        low, high = _with_nothing(low, high)
    return [node.spread(low, high, whole=first.whole)]


def _ends(node: Operands) -> Sequence[Numbers | None]:
    """Return an element, or something between two: largest, least, mean."""
    first = node.need(0)
    low, high, whole = first.low, first.high, first.whole
    if node.node.kind == "AveragePool":  # zeros beside a picture may count
        low, high = _with_nothing(low, high)
    whole = whole and node.node.kind not in ("AveragePool", "GlobalAveragePool", "ReduceMean")
    return [node.spread(low, high, whole=whole)]


def _running(node: Operands) -> Sequence[Numbers | None]:
    first, size = node.need(0), max(node.node.input(0).shape, default=1)
    low, high = (product((end, end), (float(size), float(size)))[0] for end in (first.low, first.high))
    if node.node.integer("exclusive", 0):
        low, high = _with_nothing(low, high)
    return [node.spread(min(low, first.low), max(high, first.high), whole=first.whole)]


def _position(node: Operands) -> Sequence[Numbers | None]:
    """Return a place along an axis: ArgMax, ArgMin."""
    kind = node.node.input(0)
    return [node.spread(0.0, max(0, kind.shape[node.node.integer("axis", 0)] - 1))]


def _top_k(node: Operands) -> Sequence[Numbers | None]:
    kind, first = node.node.input(0), node.numbers(0)
    last = max(0, kind.shape[node.node.integer("axis", -1)] - 1)
    values = None if first is None else node.spread(first.low, first.high, whole=first.whole)
    return [values, node.spread(0.0, last, 1) if len(node.made) > 1 else None]


def _places(node: Operands) -> Sequence[Numbers | None]:
    return [node.spread(0.0, max(0, max(node.node.input(0).shape, default=1) - 1))]


def _unique(node: Operands) -> Sequence[Numbers | None]:
    kind, first = node.node.input(0), node.numbers(0)
    axis = node.node.attributes.get("axis")
    count = kind.shape[axis] if isinstance(axis, int) else kind.count
    last = max(0, count - 1)
    found = [None if first is None else first.together]
    found += [Numbers.of_all(0.0, last, whole=True)] * 2 + [Numbers.of_all(1.0, max(1, count), whole=True)]
    return found[: len(node.made)]


def _sized(low: float, high: float, *, whole: bool = False) -> Rule:
    """Return the rule of an op whose results lie in one range, whatever it is given."""
    return lambda node: [node.spread(low, high, whole=whole)]


def _full(node: Operands) -> Sequence[Numbers | None]:
    value = node.node.attributes.get("value")
    array = np.array([0.0]) if value is None else array_of(value)
    if array is None or not is_evaluated(np.asarray(array)):
        return ()
    one = Numbers.constants(np.asarray(array)).together
    return [node.spread(one.low, one.high, whole=one.whole)]


def _range(node: Operands) -> Sequence[Numbers | None]:
    start, limit, delta = (node.need(i) for i in range(3))
    whole = start.whole and delta.whole
    before = 1 if whole and limit.whole else 0
    if delta.low > 0:
        return [Numbers.of_all(start.low, max(start.low, limit.high - before), whole=whole)]
    if delta.high < 0:
        return [Numbers.of_all(min(start.high, limit.low + before), start.high, whole=whole)]
    return [Numbers.of_all(min(start.low, limit.low), max(start.high, limit.high), whole=whole)]


def _padded(node: Operands) -> Sequence[Numbers | None]:
    first = node.need(0)
    low, high = first.low, first.high
    if node.node.text("mode", "constant") == "constant":
        own = Numbers.constants(np.array(node.node.number("value", 0.0)))  # before opset 11
        value = node.need(2) if node.node.has(2) else own
        low, high = min(low, value.low), max(high, value.high)
        return [Numbers.of_all(low, high, whole=first.whole and value.whole)]
    return [Numbers.of_all(low, high, whole=first.whole)]


def _multiplied_out(node: Operands) -> Sequence[Numbers | None]:
    """Return sums of products along one axis, of each element less its zero point."""
    a, b = node.need(0), node.need(1)
    count = float(node.node.input(0).shape[-1])
    sides = [(one.low, one.high) for one in (a, b)]
    for place, zero in ((0, 2), (1, 3)):
        if node.node.has(zero):
            point, (low, high) = node.need(zero), sides[place]
            sides[place] = low - point.high, high - point.low
    low, high = product(*sides)
    low, high = (product((end, end), (count, count))[0] for end in (low, high))
    if _may_lack_elements(node) or _may_lack_elements(node, 1):
        each = product(*sides)
        low, high = _with_nothing(min(low, each[0]), max(high, each[1]))
    return [node.spread(low, high, whole=a.whole and b.whole)]


def _drawn(node: Operands) -> Sequence[Numbers | None]:
    return [node.spread(node.node.number("low", 0.0), node.node.number("high", 1.0), whole=False)]


def _chosen(node: Operands) -> Sequence[Numbers | None]:
    """Return a class for each draw: Multinomial."""
    return [node.spread(0.0, max(0, node.node.input(0).shape[-1] - 1))]


def _boxes(node: Operands) -> Sequence[Numbers | None]:
    """Batch, class and box of each that is kept."""
    scores = node.node.input(1)
    return [Numbers.of_all(0.0, max(0, max(scores.shape) - 1), whole=True)]


def _shape(node: Operands) -> Sequence[Numbers | None]:
    first = node.inputs[0]
    if first is None or not isinstance(first.type, TensorType) or RANK in first.open_axes:
        return ()
    axes = shape_window(node.node, first.type.rank)
    return [Numbers.of_each(np.array([first.size(axis) for axis in axes], dtype=object))]


def _size(node: Operands) -> Sequence[Numbers | None]:
    first = node.inputs[0]
    if first is None or not isinstance(first.type, TensorType) or RANK in first.open_axes:
        return ()
    found = Number.constant(1.0)
    for axis in range(first.type.rank):
        found = multiplied(found, first.size(axis))
    return [Numbers.of_each(found)]


_TRUTHS = (
    "Bernoulli", "com.microsoft:IsAllFinite", "EyeLike", "Hardmax", "IsInf", "IsNaN",
)  # fmt: skip
_BETWEEN = {
    "Cos": (-1.0, 1.0), "Erf": (-1.0, 1.0), "HardSigmoid": (0.0, 1.0), "Sigmoid": (0.0, 1.0), "Sin": (-1.0, 1.0),
    "Softmax": (0.0, 1.0), "Softsign": (-1.0, 1.0), "Tanh": (-1.0, 1.0),
}  # fmt: skip

GATHERED: dict[str, Rule] = {
    "ArgMax": _position,
    "ArgMin": _position,
    "AveragePool": _ends,
    "Compress": _moved(0),
    "Concat": _moved(),
    "ConstantOfShape": _full,
    "CumSum": _running,
    "Expand": _moved(0),
    "Flatten": _moved(0),
    "Gather": _moved(0),
    "GatherElements": _moved(0),
    "GatherND": _moved(0),
    "GlobalAveragePool": _ends,
    "GlobalMaxPool": _ends,
    "Identity": _moved(0),
    "MatMul": _multiplied_out,
    "MatMulInteger": _multiplied_out,
    "MaxPool": _ends,
    "Multinomial": _chosen,
    "NonMaxSuppression": _boxes,
    "NonZero": _places,
    "OneHot": lambda node: [node.need(2).together],
    "Pad": _padded,
    "RandomUniform": _drawn,
    "RandomUniformLike": _drawn,
    "Range": _range,
    "ReduceMax": _ends,
    "ReduceMean": _ends,
    "ReduceMin": _ends,
    "ReduceSum": _summed,
    "Reshape": _moved(0),
    "ScatterElements": _moved(0, 2),
    "ScatterND": _moved(0, 2),
    "Shape": _shape,
    "Size": _size,
    "Slice": _moved(0),
    "Split": _moved(0),
    "Squeeze": _moved(0),
    "Tile": _moved(0),
    "TopK": _top_k,
    "Transpose": _moved(0),
    "Trilu": _moved(0, constant=0),
    "Unique": _unique,
    "Unsqueeze": _moved(0),
    "Xor": _sized(0.0, 1.0, whole=True),
    **{kind: _sized(0.0, 1.0, whole=True) for kind in _TRUTHS},
    **{kind: _sized(*limits) for kind, limits in _BETWEEN.items()},
}  # fmt: skip
