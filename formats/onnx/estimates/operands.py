"""Operands of a node whose numbers are known by their ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import TensorProto

from mtpp.formats.onnx.estimates.numbers import Number, Numbers
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.tensor_type import TensorType, ValueType
from mtpp.formats.onnx.values import Array


@dataclass(frozen=True)
class Operands:
    """A node with the facts known of its inputs.

    Attributes
    ----------
    made
        Types of the outputs.
    """

    node: NodeView
    inputs: Sequence[Known | None]
    made: Sequence[ValueType | None]

    def numbers(self, index: int) -> Numbers | None:
        """Return the ranges of an input; None if it is left out, or no tensor of numbers."""
        found = self.inputs[index] if index < len(self.inputs) else None
        return None if found is None else found.ranged

    def need(self, index: int) -> Numbers:
        """Return the ranges of an input; raise ValueError if there are none."""
        found = self.numbers(index)
        if found is None:
            raise ValueError(f"input {index} has no numbers")
        return found

    def certain(self, index: int) -> Array | None:
        """Return the contents of an input that are certain."""
        found = self.inputs[index] if index < len(self.inputs) else None
        return None if found is None else found.certain_value

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of an output."""
        kind = self.made[index] if index < len(self.made) else None
        if not isinstance(kind, TensorType):
            raise ValueError("no tensor")
        return kind.shape

    def spread(self, low: float, high: float, index: int = 0, *, whole: bool = True) -> Numbers:
        """Return the elements of an output, all of one range."""
        return Numbers.spread(low, high, whole=whole, shape=self.shape(index))


Rule = Callable[[Operands], "Sequence[Numbers | None]"]
Range = tuple[float, float]

FLOATS = frozenset((TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16))


def product(a: Range, b: Range) -> Range:
    """Return the least and the most that a product of two numbers can be."""
    corners = [x * y if x and y else 0.0 for x in a for y in b]
    return min(corners), max(corners)


def union(a: Number, b: Number) -> Number:
    """Return a number that is one or the other."""
    if a == b:
        return a
    return Number.between(min(a.low, b.low), max(a.high, b.high), whole=a.whole and b.whole)
