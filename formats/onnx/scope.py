"""Known facts of each tensor during a walk over a graph, with bodies of control flow nested inside."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from mtpp.formats.onnx.tensor_type import TensorType, ValueType
from mtpp.formats.onnx.values import Array, tensor_of


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that depends on no graph input.

    Attributes
    ----------
    root
        Name of the tensor that is stored; views of one tensor share it.
    bytes
        Its size: of the tensor as its readers see it, folded.
    """

    root: str
    bytes: int


@dataclass(slots=True)
class Known:
    """What is known of one tensor.

    Attributes
    ----------
    level
        Nesting depth of the graph that defines it; 0 is the main graph.
    parameter
        None for an activation.
    value
        Contents, where they are small and constant.
    """

    type: ValueType
    level: int
    parameter: Parameter | None = None
    value: Array | None = None
    _type_proto: onnx.TypeProto | None = None
    _tensor_proto: onnx.TensorProto | None = None

    @property
    def type_proto(self) -> onnx.TypeProto | None:
        """The type as shape inference wants it, made once; None for what is no tensor."""
        if self._type_proto is None and isinstance(self.type, TensorType):
            self._type_proto = self.type.to_proto()
        return self._type_proto

    @property
    def tensor_proto(self) -> onnx.TensorProto | None:
        """The contents as shape inference wants them, made once."""
        if self._tensor_proto is None and self.value is not None:
            self._tensor_proto = tensor_of(self.value)
        return self._tensor_proto


class Scope:
    """Tensors of one graph by name; what it does not define itself is looked up in the graphs around it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.level: int = 0 if outer is None else outer.level + 1
        self._known: dict[str, Known] = {}

    def define(self, name: str, known: Known) -> None:
        """Make a tensor known."""
        self._known[name] = known

    def defines(self, name: str) -> bool:
        """Say whether this graph itself (not one around it) defines *name*."""
        return name in self._known

    def find(self, name: str) -> Known | None:
        """Return what is known of *name*, None if it is defined nowhere."""
        scope: Scope | None = self
        while scope is not None:
            known = scope._known.get(name)
            if known is not None:
                return known
            scope = scope.outer
        return None
