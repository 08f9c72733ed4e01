"""Contents of small tensors of which some elements are certain, some assumed, and some only known when a model runs.

``Shape`` of a tensor with 8 columns and as many rows as a mask keeps is such a tensor: its second element is certain,
its first an estimate that costs may be modelled with, but that no stage may hold as a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from mtpp.formats.onnx.tensor_type import TensorType, ValueType
from mtpp.formats.onnx.values import Array, Attributes, dtype_of, evaluate, is_small


class Sureness(IntEnum):
    """Degree to which an element is known; of several, the least counts."""

    UNKNOWN = 0
    ASSUMED = 1
    CERTAIN = 2


@dataclass(frozen=True)
class PartialValue:
    """Elements of a tensor, and how sure each of them is.

    Attributes
    ----------
    array
        Ones stand where nothing is known.
    sureness
        Of each element, a :class:`Sureness`; of the shape of *array*.
    """

    array: Array
    sureness: Array

    @classmethod
    def uniform(cls, array: Array, sureness: Sureness) -> PartialValue:
        """Return elements that are all equally sure."""
        return cls(array, np.full(array.shape, sureness, dtype=np.int8))

    @classmethod
    def unknown(cls, kind: ValueType | None) -> PartialValue | None:
        """Return the elements of a small tensor of which nothing but the type is known; None for others."""
        if not isinstance(kind, TensorType) or kind.rank > 1 or not is_small(kind.dtype, kind.count):
            return None
        return cls.uniform(np.ones(kind.shape, dtype=dtype_of(kind.dtype)), Sureness.UNKNOWN)

    @property
    def least(self) -> Sureness:
        """The sureness of the least sure element; certain where there is none."""
        return Sureness(int(self.sureness.min(initial=Sureness.CERTAIN)))

    @property
    def says_anything(self) -> bool:
        """True if an element is more than unknown."""
        return bool(self.sureness.size) and int(self.sureness.max()) > Sureness.UNKNOWN

    def at_most(self, limit: Sureness) -> PartialValue:
        """Return the same elements, none of them surer than *limit*."""
        return PartialValue(self.array, np.minimum(self.sureness, limit))

    def known(self, least: Sureness) -> list[Any]:
        """Return the elements one after the other, None in place of those that are less sure than *least*."""
        pairs = zip(self.array.reshape(-1).tolist(), self.sureness.reshape(-1).tolist(), strict=True)
        return [number if sureness >= least else None for number, sureness in pairs]


def propagated(
    kind: str, inputs: Sequence[PartialValue | None], attributes: Attributes, outputs: int
) -> list[PartialValue] | None:
    """Evaluate an op on elements that are not all certain.

    Parameters
    ----------
    inputs
        None where an optional input is left out.

    Returns
    -------
    One value per output, every element no surer than those it is computed from; None if the op is not evaluated.
    """
    arrays = [None if one is None else one.array for one in inputs]
    if kind in _MOVED:
        sureness = _moved(kind, inputs, attributes, outputs)
    elif kind in _ELEMENTWISE:
        sureness = _elementwise(kind, inputs)
    else:
        least = min((one.least for one in inputs if one is not None), default=Sureness.CERTAIN)
        sureness = None if least is Sureness.UNKNOWN else [least] * outputs
    if sureness is None:
        return None
    results = evaluate(kind, arrays, attributes, outputs)
    if results is None:
        return None
    return [
        PartialValue(array, np.broadcast_to(np.asarray(sure, dtype=np.int8), array.shape))
        for array, sure in zip(results, sureness, strict=True)
    ]


_MOVED: dict[str, Callable[[int], Sequence[int]]] = {
    **dict.fromkeys(("Concat",), lambda count: range(count)),
    **dict.fromkeys(
        (
            "Cast",
            "Expand",
            "Gather",
            "Identity",
            "Reshape",
            "Slice",
            "Split",
            "Squeeze",
            "Tile",
            "Transpose",
            "Unsqueeze",
        ),
        lambda count: (0,),
    ),
    "ScatterND": lambda count: (0, 2),
}
"""Inputs of ops that only move elements; all other inputs say where to."""

_ELEMENTWISE = frozenset(
    (
        "Abs", "Add", "And", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
        "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Sqrt", "Sub", "Where", "Xor",
    )
)  # fmt: skip


def _moved(
    kind: str, inputs: Sequence[PartialValue | None], attributes: Attributes, outputs: int
) -> Sequence[Any] | None:
    moving = {*_MOVED[kind](len(inputs))}
    steering = [one.least for index, one in enumerate(inputs) if one is not None and index not in moving]
    limit = min(steering, default=Sureness.CERTAIN)
    if limit is Sureness.UNKNOWN:
        return None
    if kind == "Cast":
        first = inputs[0]
        return None if first is None else [first.sureness]
    marks = [
        one if one is None else (one.sureness.astype(np.int64) if index in moving else one.array)
        for index, one in enumerate(inputs)
    ]
    moved = evaluate(kind, marks, attributes, outputs)
    return None if moved is None else [np.minimum(one, limit) for one in moved]


def _elementwise(kind: str, inputs: Sequence[PartialValue | None]) -> Sequence[Any] | None:
    given = [one for one in inputs if one is not None]
    if len(given) != len(inputs):
        return None
    try:
        marks = np.broadcast_arrays(*(one.sureness for one in given))
    except ValueError:
        return None
    if kind == "Where" and len(given) == 3:
        condition = np.broadcast_to(given[0].array, marks[0].shape)
        chosen = np.where(condition, marks[1], marks[2])
        return [np.minimum(marks[0], chosen)]
    return [np.minimum.reduce(marks)]
