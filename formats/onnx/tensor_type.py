"""Type of a value without its contents: element type, shape, size in bytes.

A :class:`TensorType` is complete; a :class:`PartialType` is what a file or shape inference left open. Sequences
whose elements are all known are kept as such, and maps and other opaque values have no size.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto, TypeProto

POINTER_BYTES = 8
"""A string element counts as one pointer: its text is not known before the model runs."""

_BITS = {
    "FLOAT": 32,
    "UINT8": 8,
    "INT8": 8,
    "UINT16": 16,
    "INT16": 16,
    "INT32": 32,
    "INT64": 64,
    "STRING": 8 * POINTER_BYTES,
    "BOOL": 8,
    "FLOAT16": 16,
    "DOUBLE": 64,
    "UINT32": 32,
    "UINT64": 64,
    "COMPLEX64": 64,
    "COMPLEX128": 128,
    "BFLOAT16": 16,
    "FLOAT8E4M3FN": 8,
    "FLOAT8E4M3FNUZ": 8,
    "FLOAT8E5M2": 8,
    "FLOAT8E5M2FNUZ": 8,
    "FLOAT8E8M0": 8,
    "UINT4": 4,
    "INT4": 4,
    "FLOAT4E2M1": 4,
    "UINT2": 2,
    "INT2": 2,
    "FLOAT6E2M3": 6,
    "FLOAT6E3M2": 6,
}
"""Bits per element by the type's name; a release of onnx that lacks a name simply never asks for it."""

_NAMES: dict[int, str] = {number: name for name, number in TensorProto.DataType.items()}
_READABLE = {"FLOAT": "float32", "DOUBLE": "float64"}

Dim = int | str | None
"""A size, the name of a symbolic size, or nothing known."""


def dtype_name(dtype: int) -> str:
    """Return the readable name of an ONNX element type: ``float32``, ``int64``, ``bfloat16`` …."""
    name = _NAMES.get(dtype, f"type {dtype}")
    return _READABLE.get(name, name.lower())


def is_known_dtype(dtype: int) -> bool:
    """Say whether elements of this type have a size."""
    return _NAMES.get(dtype, "") in _BITS


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type (an ONNX ``TensorProto.DataType``) and static shape."""

    dtype: int
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes; elements below one byte are packed and the whole rounded up."""
        return -(-self.count * _BITS[_NAMES[self.dtype]] // 8)

    def to_proto(self) -> TypeProto:
        """Return the type as shape inference wants it."""
        return onnx.helper.make_tensor_type_proto(self.dtype, self.shape)

    def without(self, axes: Collection[int]) -> PartialType:
        """Return the type with some axes open; with an axis below zero among them, without a shape."""
        if any(axis < 0 for axis in axes):
            return PartialType(self.dtype)
        return PartialType(self.dtype, tuple(None if axis in axes else size for axis, size in enumerate(self.shape)))


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A sequence of which every element's type is known."""

    elements: tuple[TensorType, ...]

    @property
    def bytes(self) -> int:
        """Size in bytes of all elements together."""
        return sum(element.bytes for element in self.elements)


@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A map, a sequence of maps …: something without a static size."""

    what: str


ValueType = TensorType | SequenceType | OpaqueType


@dataclass(frozen=True, slots=True)
class PartialType:
    """As much of a tensor's type as a file or an inference says; ``dims`` is None if even the rank is unknown."""

    dtype: int | None = None
    dims: tuple[Dim, ...] | None = None

    def to_proto(self) -> TypeProto:
        """Return the type as ONNX writes it, open axes without a size."""
        return onnx.helper.make_tensor_type_proto(self.dtype or 0, self.dims)

    def complete(self) -> TensorType | None:
        """Return the complete type, or None if anything is missing."""
        if self.dtype is None or self.dims is None:
            return None
        shape = tuple(dim for dim in self.dims if isinstance(dim, int))
        return TensorType(self.dtype, shape) if len(shape) == len(self.dims) else None

    def merged(self, other: PartialType) -> PartialType:
        """Fill the gaps of this type from *other*; what this type already says stands."""
        dtype = self.dtype if self.dtype is not None else other.dtype
        if self.dims is None:
            return PartialType(dtype, other.dims)
        if other.dims is None or len(other.dims) != len(self.dims):
            return PartialType(dtype, self.dims)
        return PartialType(dtype, tuple(_fuller(a, b) for a, b in zip(self.dims, other.dims, strict=True)))


def _fuller(first: Dim, second: Dim) -> Dim:
    if isinstance(first, int):
        return first
    return second if second is not None else first


def partial_type(proto: TypeProto) -> PartialType | OpaqueType:
    """Read a ``TypeProto``; a negative dimension, which some exporters write, counts as unknown."""
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        return partial_type(proto.optional_type.elem_type)
    if kind is None:
        return PartialType()
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return OpaqueType(kind.removesuffix("_type"))
    tensor = proto.tensor_type if kind == "tensor_type" else proto.sparse_tensor_type
    dtype = tensor.elem_type if is_known_dtype(tensor.elem_type) else None
    if not tensor.HasField("shape"):
        return PartialType(dtype, None)
    return PartialType(dtype, tuple(_dim(dim) for dim in tensor.shape.dim))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    size = int(dim.dim_value)
    if size > 0:
        return size
    # Zero is what protobuf gives for a field that is not there, and a size all the same where it is.
    if dim.HasField("dim_value"):
        return size if size == 0 else None
    return str(dim.dim_param) or None


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that *shapes* broadcast to."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size != 1:
                if result[axis] not in (1, size):
                    raise ValueError(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
                result[axis] = size
    return tuple(result)
