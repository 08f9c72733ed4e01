"""One call as cost rules see it: operands by the names of the operator's schema, with the types of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.formats.torch_export.program import Call, TensorRef
from mtpp.formats.torch_export.tensor_type import TensorType


@dataclass(frozen=True, slots=True)
class CallView:
    """A call without the program around it.

    Attributes
    ----------
    kind
        Name of the operator without namespace, overload and the underscore of those that write in place: ``linear``.
    outputs
        Types, None for what is no tensor.
    """

    call: Call
    kind: str
    types: Mapping[str, TensorType]
    outputs: Sequence[TensorType | None]

    def output(self, index: int = 0) -> TensorType:
        """Return the type of an output."""
        kind = self.outputs[index] if index < len(self.outputs) else None
        if kind is None:
            raise ValueError(f"output {index} is no tensor")
        return kind

    def tensor(self, *names: str) -> TensorType:
        """Return the type of the operand that goes by one of *names*."""
        found = self.tensor_or_none(*names)
        if found is None:
            raise ValueError(f"there is no tensor {names[0]!r}")
        return found

    def tensor_or_none(self, *names: str) -> TensorType | None:
        """Return the same, None if there is none."""
        for name in names:
            value = self.call.operands.get(name)
            if isinstance(value, TensorRef):
                return self.types[value.name]
        return None

    def tensors(self, name: str) -> list[TensorType]:
        """Return the types of a list of tensors, those that are left out left out."""
        values = self.call.operands.get(name)
        listed = values if isinstance(values, list) else []
        return [self.types[one.name] for one in listed if isinstance(one, TensorRef)]

    def first(self) -> TensorType:
        """Return the type of the first tensor that it reads."""
        for name in self.call.tensors():
            return self.types[name]
        raise ValueError("it reads no tensor")

    @property
    def read_bytes(self) -> int:
        """Size of all tensors that it reads."""
        return sum(self.types[name].bytes for name in dict.fromkeys(self.call.tensors()))

    def value(self, name: str, default: Any) -> Any:
        """Return an operand that is no tensor."""
        found = self.call.operands.get(name)
        return default if found is None or isinstance(found, TensorRef) else found

    def has(self, name: str) -> bool:
        """Say whether an operand is given."""
        return self.call.operands.get(name) is not None
