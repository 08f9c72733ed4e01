"""Ranges of numbers that ops compute element by element; sums, and multiples, stay linear forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto, helper

from mtpp.formats.onnx.estimates.numbers import INFINITE, Number, Numbers, combined
from mtpp.formats.onnx.estimates.operands import FLOATS, Operands, Range, Rule, product, union
from mtpp.formats.onnx.tensor_type import TensorType

_SINGLE_PRECISION = 2.0**-21
"""Relative error of a few operations in single precision."""


def _ranged(function: Callable[..., Range], *, whole: bool | None = None) -> Rule:
    """Return the rule of an op on elements, by a function of the least and the most of each operand."""

    def run(node: Operands) -> Sequence[Numbers | None]:
        def one(*numbers: Number) -> Number:
            low, high = function(*((number.low, number.high) for number in numbers))
            stays = all(number.whole for number in numbers) if whole is None else whole
            return Number.between(low, high, whole=stays)

        return [combined(one, *(node.need(i) for i in range(len(node.inputs))))]

    return run


def _linear(function: Callable[..., Number]) -> Rule:
    return lambda node: [combined(function, *(node.need(i) for i in range(len(node.inputs))))]


def multiplied(a: Number, b: Number) -> Number:
    """Return a product of two numbers."""
    for one, other in ((a, b), (b, a)):
        if not one.terms and one.least == one.most:
            return other.times(one.least)
    return Number.between(*product((a.low, a.high), (b.low, b.high)), whole=a.whole and b.whole)


def _div(node: Operands) -> Sequence[Numbers | None]:
    kind = node.made[0] if node.made else None
    whole = isinstance(kind, TensorType) and kind.dtype not in FLOATS

    def one(a: Number, b: Number) -> Number:
        if b.low <= 0 <= b.high:
            if not whole or b.low < 0:
                return Number.between(-INFINITE, INFINITE, whole=whole)
            low, high = min(a.low, 0.0), max(a.high, 0.0)  # a divisor of zero ends the run
            return Number.between(low, high, whole=True)
        if not whole and b.low == b.high and math.isfinite(1 / b.low):
            return a.times(1 / b.low)
        corners = [_quotient(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(corners), max(corners)
        return Number.between(*((_toward_zero(low), _toward_zero(high)) if whole else (low, high)), whole=whole)

    return [combined(one, node.need(0), node.need(1))]


def _quotient(a: float, b: float) -> float:
    if math.isinf(b):
        return 0.0 if math.isfinite(a) else math.copysign(INFINITE, a * b)
    return a / b


def _toward_zero(value: float) -> float:
    return float(math.trunc(value)) if math.isfinite(value) else value


def _rounded(function: Callable[[float], float]) -> Callable[[Number], Number]:
    """Return rounding of a number; one that is whole stays the same.

    Bounds are computed in double precision, and a run computes in single: one that is all but whole may be whole there.
    """

    def one(number: Number) -> Number:
        if number.whole:
            return number
        low, high = (
            choose(function(end), function(_all_but_whole(end))) if math.isfinite(end) else end
            for choose, end in ((min, number.low), (max, number.high))
        )
        return Number.between(float(low), float(high), whole=True)

    return one


def _all_but_whole(value: float) -> float:
    """Return the whole number that single precision cannot tell from a value, or the value itself."""
    nearest = float(round(value))
    return nearest if abs(value - nearest) <= _SINGLE_PRECISION * abs(value) else value


def _mod(node: Operands) -> Sequence[Numbers | None]:
    truncated = bool(node.node.integer("fmod", 0))

    def one(a: Number, b: Number) -> Number:
        most = max(abs(b.low), abs(b.high))
        whole = a.whole and b.whole
        edge = max(0.0, most - 1) if whole else most
        if a.low >= 0 and (truncated or b.low > 0):
            if b.low > a.high:
                return a
            return Number.between(0.0, min(edge, a.high), whole=whole)
        low = -edge if (a.low < 0 if truncated else b.low < 0) else 0.0
        high = edge if (a.high > 0 if truncated else b.high > 0) else 0.0
        return Number.between(low, high, whole=whole)

    return [combined(one, node.need(0), node.need(1))]


def _cast(node: Operands) -> Sequence[Numbers | None]:
    kind = node.made[0] if node.made else None
    if not isinstance(kind, TensorType):
        return ()
    if kind.dtype == TensorProto.BOOL:
        return [combined(_truth, node.need(0))]
    if kind.dtype in FLOATS:
        return [node.need(0)]
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(kind.dtype))
    truncate = _rounded(math.trunc)

    def one(number: Number) -> Number:
        if number.low < limits.min or number.high > limits.max:  # it may wrap around
            wraps = math.isfinite(number.low) or math.isfinite(number.high) or limits.bits < 32
            if wraps and limits.bits < 64:
                return Number.between(float(limits.min), float(limits.max), whole=True)
            return truncate(number)
        return truncate(number)

    return [combined(one, node.need(0))]


def _truth(number: Number) -> Number:
    if number.low == number.high == 0:
        return Number.constant(0.0)
    if number.low > 0 or number.high < 0:
        return Number.constant(1.0)
    return number if number.whole and (number.low, number.high) == (0, 1) else Number.between(0.0, 1.0, whole=True)


def _compared(certain: Callable[[Range, Range], bool], never: Callable[[Range, Range], bool]) -> Rule:
    def one(a: Range, b: Range) -> Range:
        return (1.0, 1.0) if certain(a, b) else (0.0, 0.0) if never(a, b) else (0.0, 1.0)

    return _ranged(one, whole=True)


def _where(node: Operands) -> Sequence[Numbers | None]:
    def one(condition: Number, a: Number, b: Number) -> Number:
        if condition.low > 0:
            return a
        if condition.high <= 0:
            return b
        return union(a, b)

    return [combined(one, node.need(0), node.need(1), node.need(2))]


def _at_least_zero(node: Operands) -> Sequence[Numbers | None]:
    """Return a part between nothing and the whole of an element: Relu and its like."""
    first = node.need(0)
    return [combined(lambda one: one if one.low >= 0 else _clipped(one, 0.0, INFINITE), first)]


def _clipped(one: Number, low: float, high: float) -> Number:
    if one.low >= low and one.high <= high:
        return one
    return Number.between(min(max(one.low, low), high), max(min(one.high, high), low), whole=one.whole)


def _clip(node: Operands) -> Sequence[Numbers | None]:
    edges: list[Numbers | None] = []
    for index, name in ((1, "min"), (2, "max")):
        given = node.need(index) if node.node.has(index) else None
        if given is None and name in node.node.attributes:
            given = Numbers.constants(np.array(node.node.number(name, 0.0)))
        edges.append(given)
    found = node.need(0)
    if edges[0] is not None:
        found = combined(_larger, found, edges[0])
    if edges[1] is not None:
        found = combined(_smaller, found, edges[1])
    return [found]


def _larger(a: Number, b: Number) -> Number:
    if a.low >= b.high or a == b:
        return a
    if b.low >= a.high:
        return b
    return Number.between(max(a.low, b.low), max(a.high, b.high), whole=a.whole and b.whole)


def _smaller(a: Number, b: Number) -> Number:
    if a.high <= b.low or a == b:
        return a
    if b.high <= a.low:
        return b
    return Number.between(min(a.low, b.low), min(a.high, b.high), whole=a.whole and b.whole)


def _folded(function: Callable[[Number, Number], Number]) -> Rule:
    def run(node: Operands) -> Sequence[Numbers | None]:
        found = node.need(0)
        for index in range(1, len(node.inputs)):
            found = combined(function, found, node.need(index))
        return [found]

    return run


def _absolute(a: Range) -> Range:
    low, high = a
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _power(a: Range, b: Range) -> Range:
    if b == (2.0, 2.0):
        low, high = _absolute(a)
        return low * low, high * high
    if a[0] < 0 or b[0] < 0:
        return -INFINITE, INFINITE
    corners = [base**exponent for base in a for exponent in b]
    return min(corners), max(corners)


def _powers(node: Operands) -> Sequence[Numbers | None]:
    def one(a: Number, b: Number) -> Number:
        low, high = _power((a.low, a.high), (b.low, b.high))
        return Number.between(low, high, whole=a.whole and b.whole and b.low >= 0)

    return [combined(one, node.need(0), node.need(1))]


def _masked(node: Operands) -> Sequence[Numbers | None]:
    """Bits of both: no more than either, where one has no sign."""

    def one(a: Number, b: Number) -> Number:
        tops = [number.high for number in (a, b) if number.low >= 0]
        return Number.between(0.0, min(tops), whole=True) if tops else Number.between(-INFINITE, INFINITE, whole=True)

    return [combined(one, node.need(0), node.need(1))]


ELEMENTWISE: dict[str, Rule] = {
    "Abs": _linear(lambda a: a if a.low >= 0 else Number.between(*_absolute((a.low, a.high)), whole=a.whole)),
    "Add": _linear(lambda a, b: a + b),
    "And": _ranged(lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), whole=True),
    "BitwiseAnd": _masked,
    "Cast": _cast,
    "CastLike": _cast,
    "Ceil": _linear(_rounded(math.ceil)),
    "Clip": _clip,
    "Div": _div,
    "Equal": _compared(lambda a, b: a == b and a[0] == a[1], lambda a, b: a[1] < b[0] or b[1] < a[0]),
    "Floor": _linear(_rounded(math.floor)),
    "Greater": _compared(lambda a, b: a[0] > b[1], lambda a, b: a[1] <= b[0]),
    "GreaterOrEqual": _compared(lambda a, b: a[0] >= b[1], lambda a, b: a[1] < b[0]),
    "Less": _compared(lambda a, b: a[1] < b[0], lambda a, b: a[0] >= b[1]),
    "LessOrEqual": _compared(lambda a, b: a[1] <= b[0], lambda a, b: a[0] > b[1]),
    "Max": _folded(_larger),
    "Min": _folded(_smaller),
    "Mod": _mod,
    "Mul": _linear(multiplied),
    "Neg": _linear(lambda a: -a),
    "Not": _linear(lambda a: Number.constant(1.0) - a),
    "Or": _ranged(lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), whole=True),
    "Pow": _powers,
    "Relu": _at_least_zero,
    "Round": _linear(_rounded(round)),
    "Sign": _ranged(lambda a: (float(np.sign(a[0])), float(np.sign(a[1]))), whole=True),
    "Sqrt": _ranged(lambda a: (math.sqrt(max(0.0, a[0])), math.sqrt(a[1]) if a[1] > 0 else 0.0), whole=False),
    "Sub": _linear(lambda a, b: a - b),
    "Sum": _folded(lambda a, b: a + b),
    "Where": _where,
}
