"""One node as the shape and cost rules see it: its kind, attributes, and the types of what it reads and makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtpp.formats.onnx.tensor_type import TensorType, ValueType
from mtpp.formats.onnx.values import Array


class MalformedNode(ValueError):
    """A node that lacks an input or attribute its operator cannot do without, or has one that makes no sense."""


def kind_of(domain: str, op_type: str) -> str:
    """Return the op's kind: its type, with ``domain:`` before it where the domain is not the default one."""
    return op_type if domain in ("", "ai.onnx") else f"{domain}:{op_type}"


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node without the graph around it.

    Attributes
    ----------
    kind
        Operator type, with ``domain:`` in front where that is not the default one.
    opset
        Version of the operator set of the node's domain.
    attributes
        Python values by name; strings are bytes.
    inputs, outputs
        None where an optional one is left out, or its type is not known (outputs only).
    values
        Contents of the inputs that are small constants.
    """

    kind: str
    opset: int
    attributes: Mapping[str, Any]
    inputs: Sequence[ValueType | None]
    values: Sequence[Array | None]
    outputs: Sequence[ValueType | None] = field(default=())

    def has(self, index: int) -> bool:
        """Say whether input *index* is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def input(self, index: int) -> TensorType:
        """Return the type of a required tensor input."""
        if index < len(self.inputs):
            kind = self.inputs[index]
            if isinstance(kind, TensorType):
                return kind
        raise MalformedNode(f"input {index} of {self.kind} is no tensor")

    def output(self, index: int = 0) -> TensorType:
        """Return the type of a tensor output that the op always makes."""
        if index < len(self.outputs):
            kind = self.outputs[index]
            if isinstance(kind, TensorType):
                return kind
        raise MalformedNode(f"output {index} of {self.kind} is no tensor")

    def input_or_none(self, index: int) -> TensorType | None:
        """Return the type of an optional tensor input."""
        return self.input(index) if self.has(index) else None

    def value(self, index: int) -> Array | None:
        """Return the contents of an input that is a small constant."""
        return self.values[index] if index < len(self.values) else None

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise MalformedNode(f"attribute {name} of {self.kind} is no integer")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a float attribute."""
        return float(self.attributes.get(name, default))

    def integers(self, name: str) -> list[int] | None:
        """Return a list of integers, or None if the node does not have the attribute."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, Sequence):
            raise MalformedNode(f"attribute {name} of {self.kind} is no list")
        return [int(x) for x in value]

    def text(self, name: str, default: str) -> str:
        """Return a string attribute."""
        value = self.attributes.get(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
