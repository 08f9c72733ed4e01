"""Numbers that only a run tells: linear forms, ranges, and estimates that follow from sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto

from mtpp.formats.onnx.estimates.number_rules import NumbersMade
from mtpp.formats.onnx.estimates.numbers import Number, Numbers
from mtpp.formats.onnx.estimates.operands import Operands
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.values import evaluate

OPS = {
    "Abs": 1, "Add": 2, "And": 2, "Ceil": 1, "Concat": 2, "Div": 2, "Equal": 2, "Floor": 1, "Greater": 2,
    "GreaterOrEqual": 2, "Less": 2, "LessOrEqual": 2, "Max": 2, "Min": 2, "Mod": 2, "Mul": 2, "Neg": 1, "Not": 1,
    "Or": 2, "ReduceMax": 1, "ReduceMin": 1, "ReduceSum": 1, "Sub": 2, "Where": 3, "Xor": 2,
}  # fmt: skip
LOGICAL = ("And", "Not", "Or", "Xor")
ROUNDING = ("Ceil", "Floor")


def _unknown(low: float, high: float) -> Number:
    return Number.between(low, high, whole=True)


def test_a_difference_of_one_number_is_known() -> None:
    """Of start and start + 2 each is open, and what lies between them is 2."""
    start = _unknown(0, 10)
    end = start + Number.constant(2)
    assert (end.low, end.high) == (2, 12)
    assert (end - start).estimate == 2
    assert (end - _unknown(0, 10)).estimate is None


def test_a_size_settles_the_number_that_decides_it() -> None:
    """With twice a number plus 1 at 9, the number is 4 wherever it is used; 10, or 99, it cannot be."""
    one = _unknown(0, 10)
    form = one.times(2.0) + Number.constant(1)
    assert not form.settle(10)
    assert not form.settle(99)
    assert form.settle(9)
    assert (one.estimate, (one + one).estimate) == (4, 8)


def test_infinite_bounds_stay_bounds() -> None:
    """No bound is known of a difference of two numbers without one, and nothing is no number."""
    open_number = _unknown(-math.inf, math.inf)
    difference = open_number - _unknown(-math.inf, math.inf)
    assert (difference.low, difference.high) == (-math.inf, math.inf)
    assert open_number.times(0.0).estimate == 0


def _known(array: np.ndarray, low: np.ndarray, high: np.ndarray, *, each: bool) -> Known:
    dtype = {"i": TensorProto.INT64, "f": TensorProto.FLOAT, "b": TensorProto.BOOL}[array.dtype.kind]
    elements = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        elements[index] = Number.between(float(low[index]), float(high[index]), whole=array.dtype.kind != "f")
    numbers = Numbers.of_each(elements)
    return Known(TensorType(dtype, array.shape), 0, numbers=numbers if each else numbers.together)


@pytest.mark.parametrize("kind", OPS)
def test_ranges_hold_what_is_computed(kind: str) -> None:
    """Any elements within their ranges give results within the ranges that are told, of each or of all together."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(120):
        shapes = [(3,), (1,) if kind not in ("Concat",) and rng.integers(2) else (3,), (3,)][: OPS[kind]]
        bounds, inputs = [], []
        for place, shape in enumerate(shapes):
            ends = np.sort(rng.integers(-4, 5, (2, *shape)), axis=0)
            if kind in LOGICAL or (kind == "Where" and place == 0):
                ends = np.sort(rng.integers(0, 2, (2, *shape)), axis=0).astype(bool)
            elif kind in ROUNDING:
                ends = (ends / 4).astype(np.float32)
            if kind in ("Div", "Mod") and place:
                ends = np.abs(ends) + 1 if rng.integers(2) else -np.abs(ends) - 1
                ends.sort(axis=0)
            bounds.append(ends)
            inputs.append(_known(ends[0], *ends, each=bool(rng.integers(3))))
        attributes = {"axis": 0, "keepdims": int(rng.integers(2))}
        values = []
        for low, high in bounds:
            drawn = (
                np.floor(low + rng.random(low.shape) * (high.astype(float) - low + 1)) if kind not in ROUNDING else low
            )
            values.append(np.minimum(drawn, high).astype(low.dtype))
        results = evaluate(kind, values, attributes, 1)
        assert results is not None
        dtype = {"i": TensorProto.INT64, "f": TensorProto.FLOAT, "b": TensorProto.BOOL}[results[0].dtype.kind]
        made = [TensorType(dtype, results[0].shape)]
        view = NodeView(kind, 17, attributes, [known.type for known in inputs], [None] * len(inputs))
        found = NumbersMade(Operands(view, inputs, made)).output(0)
        assert found is not None
        for one, value in zip(np.broadcast_to(found.array, results[0].shape).flat, results[0].flat, strict=True):
            assert one.low <= value <= one.high, (kind, values, value, one.low, one.high)
