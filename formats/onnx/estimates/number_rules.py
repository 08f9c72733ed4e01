"""Ranges of the numbers that a node makes, told when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from mtpp.formats.onnx.estimates.elementwise_numbers import ELEMENTWISE
from mtpp.formats.onnx.estimates.gathered_numbers import GATHERED
from mtpp.formats.onnx.estimates.numbers import Numbers, combined
from mtpp.formats.onnx.estimates.operands import FLOATS, Operands, union
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.tensor_type import TensorType, ValueType
from mtpp.formats.onnx.values import is_small

MOST_STEPS = 100

_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)

_RULES = {**ELEMENTWISE, **GATHERED}


class NumbersMade:
    """Ranges of a node's outputs, told when somebody asks for them.

    Notes
    -----
    A chain of nodes is followed over at most :data:`MOST_STEPS` that nobody asked for before.
    """

    _steps = 0

    def __init__(self, operands: Operands) -> None:
        self._operands: Operands | None = operands
        self._found: Sequence[Numbers | None] = ()

    def output(self, index: int) -> Numbers | None:
        """Return the ranges of an output; None where no rule tells them."""
        if self._operands is not None and NumbersMade._steps < MOST_STEPS:
            operands, self._operands = self._operands, None
            NumbersMade._steps += 1
            try:
                self._found = numbers_made(operands)
            finally:
                NumbersMade._steps -= 1
        return self._found[index] if index < len(self._found) else None


def numbers_of_one(results: Sequence[Sequence[Known]]) -> Numbers | None:
    """Return the ranges of a result that is one of several; None where nothing is known of it."""
    return one_of([known.ranged for known in results[0]]) if results else None


def one_of(given: Sequence[Numbers | None]) -> Numbers | None:
    """Return the union of several ranges; None where one is not known."""
    found = [one for one in given if one is not None]
    if not found or len(found) < len(given):
        return None
    if not all(one.each and one.array.shape == found[0].array.shape for one in found) and len(found) > 1:
        found = [one.together for one in found]
    joined = found[0]
    for other in found[1:]:
        joined = combined(union, joined, other)
    return joined


def numbers_made(operands: Operands) -> Sequence[Numbers | None]:
    """Return the ranges of a node's outputs; nothing where no rule tells them."""
    rule = _RULES.get(operands.node.kind)
    if rule is None:
        return ()
    try:
        found = rule(operands)
    except _MISFITS:
        return ()
    return [_within(one, kind) for one, kind in zip(found, operands.made, strict=False)]


def _within(found: Numbers | None, kind: ValueType | None) -> Numbers | None:
    """Return numbers as their element type holds them: beyond its limits small ones wrap around."""
    if found is None or not isinstance(kind, TensorType) or not _is_number(kind.dtype):
        return None
    if kind.dtype in FLOATS or kind.dtype == TensorProto.BOOL:
        return found
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(kind.dtype))
    fits = found.low >= limits.min and found.high <= limits.max
    if fits or (limits.min < 0 and limits.bits >= 32):
        return found
    return Numbers.fresh(np.dtype(limits.dtype), kind.shape if found.each else None)


def _is_number(dtype: int) -> bool:
    return is_small(dtype, 1) or dtype in FLOATS
