"""Types of the tensors between stages: for the manifest, and as ONNX writes them down."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper

from mtpp.errors import InputError
from mtpp.formats.onnx.dimensions import NAMELESS
from mtpp.formats.onnx.scope import Scope
from mtpp.formats.onnx.tensor_type import (
    OpaqueType,
    PartialType,
    SequenceType,
    TensorType,
    dtype_name,
    partial_type,
)
from mtpp.formats.results.stage_manifest import Described


class Descriptions:
    """Types of tensors of the main graph in stage files: certain sizes are those of the plan, others stay open.

    Parameters
    ----------
    declared
        What the file says itself of inputs, outputs and tensors between: where the reading knows a tensor's type, its
        sizes stand in place of the symbols.
    """

    def __init__(self, scope: Scope, declared: Mapping[str, onnx.ValueInfoProto], source: str) -> None:
        self._scope = scope
        self._declared = declared
        self._source = source

    def described(self, name: str) -> Described:
        """Return the entry of the manifest."""
        known = self._scope.find(name)
        kind = known.type if known is not None else None
        if kind is None and name in self._declared:
            declared = partial_type(self._declared[name].type)
            if isinstance(declared, PartialType):
                sizes = tuple(dim if isinstance(dim, int) else None for dim in declared.dims or ())
                return Described(name, dtype_name(declared.dtype or 0), sizes)
            kind = declared
        if isinstance(kind, TensorType) and known is not None:
            sizes = tuple(None if axis in known.open_axes else size for axis, size in enumerate(kind.shape))
            return Described(name, dtype_name(kind.dtype), sizes)
        if isinstance(kind, SequenceType):
            return Described(name, f"sequence({dtype_name(self._element(name, kind))})", (len(kind.elements),))
        return Described(name, kind.what if isinstance(kind, OpaqueType) else "unknown", ())

    def value_info(self, name: str) -> onnx.ValueInfoProto:
        """Return how an ONNX graph declares the tensor."""
        info = onnx.ValueInfoProto()
        if name in self._declared:
            info.CopyFrom(self._declared[name])
        info.name = name
        known = self._scope.find(name)
        kind = known.type if known is not None else None
        if (
            isinstance(kind, TensorType)
            and known is not None
            and info.type.WhichOneof("value") in (None, "tensor_type")
        ):
            fixed = self._named(info, kind.without(known.open_axes)).to_proto()
            for given, dim in zip(info.type.tensor_type.shape.dim, fixed.tensor_type.shape.dim, strict=False):
                dim.denotation = given.denotation
            fixed.denotation = info.type.denotation
            info.type.CopyFrom(fixed)
        elif isinstance(kind, SequenceType) and info.type.WhichOneof("value") is None:
            shapes = {element.shape for element in kind.elements}
            shape = shapes.pop() if len(shapes) == 1 else None
            element = helper.make_tensor_type_proto(self._element(name, kind), shape)
            info.type.CopyFrom(helper.make_sequence_type_proto(element))
        return info

    @staticmethod
    def _named(info: onnx.ValueInfoProto, sure: PartialType) -> PartialType:
        """Give open axes the names that the file has for them."""
        declared = partial_type(info.type)
        names = declared.dims if isinstance(declared, PartialType) else None
        if names is None or sure.dims is None or len(names) != len(sure.dims):
            return sure
        dims = (
            name if size is None and isinstance(name, str) and name not in NAMELESS else size
            for size, name in zip(sure.dims, names, strict=True)
        )
        return PartialType(sure.dtype, tuple(dims))

    def _element(self, name: str, kind: SequenceType) -> int:
        dtypes = {element.dtype for element in kind.elements}
        if not dtypes and name in self._declared:
            dtypes = {self._declared[name].type.sequence_type.elem_type.tensor_type.elem_type}
        if len(dtypes) != 1:
            raise InputError(
                f"tensor {name!r} is a sequence of which the element type is not known",
                source=self._source,
                where="tensors between stages",
                remedy="declare it in value_info, or keep the ops that it connects in one stage (‹together›)",
            )
        return dtypes.pop()
