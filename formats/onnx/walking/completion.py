"""Completion of the types of a node's outputs: sizes that the caller gives, the largest ones, and the likely ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import NodeProto

from mtpp.errors import InputError
from mtpp.formats.onnx.dimensions import Dimensions
from mtpp.formats.onnx.estimates.partial_values import PartialValue
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.shape_rules.data_sizes import likely_sizes, shared, widest
from mtpp.formats.onnx.shape_rules.largest_sizes import Sizes
from mtpp.formats.onnx.shapes import OutputType, Why
from mtpp.formats.onnx.tensor_type import OpaqueType, PartialType, TensorType, ValueType, partial_type
from mtpp.formats.onnx.topology import describe


class Completion:
    """Completes types of outputs.

    Parameters
    ----------
    dimensions
        Sizes that the caller gives.
    folder
        Where external data lies; None where there is no such place.
    """

    def __init__(self, dimensions: Dimensions, source: str, folder: Path | None) -> None:
        self._dimensions, self._source, self._folder = dimensions, source, folder

    def as_given(self, name: str, kind: OutputType, sure: OutputType | None) -> OutputType:
        """Open the axes of which only an estimate is known, where the caller gives sizes of his own."""
        if not isinstance(kind, PartialType) or kind.dims is None or not self._dimensions.is_given_by_axis(name):
            return kind
        fixed = sure.dims if isinstance(sure, PartialType) and sure.dims is not None else (None,) * len(kind.dims)
        pairs = zip(kind.dims, fixed, strict=True)
        return PartialType(kind.dtype, tuple(a if a == b or isinstance(a, str) else None for a, b in pairs))

    def closed(self, name: str, kind: OutputType, size: int) -> OutputType:
        """Give the first axis of a type *size* if nobody else says what it is."""
        if isinstance(kind, PartialType):
            kind = self._dimensions.applied(name, kind)
            if kind.dims and not isinstance(kind.dims[0], int):
                kind = PartialType(kind.dtype, (size, *kind.dims[1:]))
        return kind

    def widened(
        self,
        node: NodeProto,
        view: NodeView,
        types: Sequence[OutputType],
        sure: Sequence[OutputType | None],
        largest: Sequence[Sizes],
        values: Sequence[PartialValue | None] | None,
        declared: Mapping[str, onnx.TypeProto],
    ) -> tuple[list[OutputType], Sequence[PartialValue | None] | None]:
        """Put the largest sizes in place of smaller estimates that are not declared; then no contents are known."""
        result, contents = list(types), None if values is None else list(values)
        for position, (kind, certain, told) in enumerate(zip(types, sure, largest, strict=False)):
            said = partial_type(declared[node.output[position]]) if node.output[position] in declared else None
            wider = (shared if view.kind == "Reshape" else widest)(kind, certain, said, told)
            if wider != kind:
                result[position] = wider
                if contents is not None and position < len(contents):
                    contents[position] = None
        return result, contents

    def completed(
        self,
        node: NodeProto,
        view: NodeView,
        types: Sequence[OutputType],
        consumed: Collection[str],
        returned: Collection[str],
        reason: Why,
        largest: Sequence[Sizes],
    ) -> list[ValueType | None]:
        """Put the user's sizes in; refuse a type that stays open on a tensor that somebody needs."""
        result: list[ValueType | None] = []
        for position, (name, kind) in enumerate(zip(node.output, types, strict=True)):
            if isinstance(kind, PartialType):
                complete = kind.complete()
                if complete is None or self._dimensions.is_given_by_axis(name):
                    kind = self._dimensions.applied(name, kind, others=not reason.misfit)
                    complete = kind.complete()
                needed = bool(name) and (name in consumed or name in returned)
                given = complete is not None and self._dimensions.is_given_by_axis(name)
                if reason.absent is not None and needed and not given:
                    raise self._without_data(name, node, *reason.absent)
                if complete is None and not reason.misfit and kind.dims is not None and not needed:
                    complete = _likely(kind, likely_sizes(view, kind, largest[position : position + 1]))
                    # nobody has to give the size of what nobody reads
                if complete is None and needed:
                    likely = likely_sizes(view, kind, largest[position : position + 1])
                    raise self._dimensions.unknown(
                        name, kind, describe(node), reason.text, misfit=reason.misfit, likely=likely
                    )
                result.append(complete)
                continue
            if isinstance(kind, OpaqueType) and name in consumed:
                raise InputError(
                    f"tensor {name!r} is a {kind.what}, which has no static size",
                    source=self._source,
                    where=describe(node),
                    remedy="cut the model before it",
                )
            result.append(kind)
        return result

    def _without_data(self, name: str, node: NodeProto, tensor: str, file: str) -> InputError:
        """Return the error for a size that contents beside the model decide which are not there."""
        beside = self._folder is not None
        return InputError(
            f"the size of {name!r} depends on {tensor!r}, which lies in {file!r}"
            + (": there is no such file beside the model" if beside else " beside the model"),
            source=self._source,
            where=describe(node),
            remedy="put it there" if beside else "give the file of the model in place of its contents",
        )


def _likely(kind: PartialType, likely: Mapping[int, int]) -> TensorType | None:
    """Return a type with estimates of its open axes."""
    sizes = (size if isinstance(size, int) else likely.get(axis, 1) for axis, size in enumerate(kind.dims or ()))
    return PartialType(kind.dtype, tuple(sizes)).complete()


def settle(found: TensorType, axes: frozenset[int], largest: Sizes) -> bool:
    """Assume that a number is the size that it decides, where that is not the largest; say whether one was found."""
    chosen = [(axis, one) for axis, one in largest.items() if axis in axes and one.number is not None]
    settled = False
    for axis, one in chosen:
        if one.number is not None and one.size != found.shape[axis]:
            settled |= one.number.settle(float(found.shape[axis]))
    return settled
