"""Symbolic dimensions: which ones a model has, and the sizes a user gives them.

A size is given by the symbol's name (``batch``), or, for a dimension without a name, by the tensor and the axis
(``input_ids:0``); the latter works for any tensor, so that sizes that depend on data can be fixed as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import onnx

from mtpp.errors import InputError
from mtpp.formats.onnx.tensor_type import Dim, PartialType

FLAG = "‹dims›"

LARGEST_DIM = 2**31 - 1


class UnknownSize(InputError):
    """A tensor's size that neither the model nor the user says: running the model tells it (exit code 2)."""


class Dimensions:
    """The sizes a user gives, checked against the model once.

    Parameters
    ----------
    graph
        The main graph; symbols are collected from its inputs, outputs and value_info.
    parameters
        Names of its initializers: a graph input among them is no input.
    given
        Size by symbol, or by ``TENSOR:AXIS``.
    spare
        Whether sizes for what the model does not have are left aside.

    Raises
    ------
    InputError
        If a size is not positive, or is given for something the model does not have and *spare* is false.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        parameters: Collection[str],
        given: Mapping[str, int],
        source: str,
        *,
        spare: bool = False,
    ) -> None:
        self.source = source
        self.symbols = _symbols(graph, parameters)
        self.given: dict[str, int] = {}
        self._by_axis: dict[str, dict[int, int]] = {}
        if not given:
            return
        tensors = _tensor_names(graph)
        for key, size in given.items():
            if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= LARGEST_DIM:
                raise InputError(f"{size!r} is not a positive size", source=FLAG, where=str(key))
            tensor, colon, axis = key.rpartition(":")
            if key not in self.symbols:
                if not (colon and tensor in tensors and axis.isdecimal() and len(axis) < 3):
                    if spare:
                        continue
                    raise self._no_such_dimension(key)
                self._by_axis.setdefault(tensor, {})[int(axis)] = size
            self.given[key] = size

    def _no_such_dimension(self, key: str) -> InputError:
        if self.symbols:
            remedy = f"it has: {', '.join(self.symbols)}"
        else:
            remedy = "it has no symbolic dimensions; an unnamed one is given as TENSOR:AXIS"
        return InputError(f"the model has no dimension {key!r}", source=self.source, where=FLAG, remedy=remedy)

    def applied(self, tensor: str, known: PartialType) -> PartialType:
        """Put the given sizes into a type.

        Raises
        ------
        InputError
            If a size given for one axis of *tensor* contradicts what the model fixes, or the rank has no such axis.
        """
        dims = known.dims
        if dims is not None:
            dims = tuple(self.given.get(dim, dim) if isinstance(dim, str) else dim for dim in dims)
        by_axis = self._by_axis.get(tensor)
        if by_axis is None:
            return PartialType(known.dtype, dims)
        if dims is None:
            # Of a tensor of unknown rank the axes given are all there are.
            if sorted(by_axis) == list(range(len(by_axis))):
                dims = tuple(by_axis[axis] for axis in range(len(by_axis)))
            return PartialType(known.dtype, dims)
        sizes: list[Dim] = list(dims)
        for axis, size in by_axis.items():
            where = f"{FLAG} {tensor}:{axis}"
            if axis >= len(sizes):
                raise InputError(f"{tensor!r} has only {len(sizes)} axes", source=self.source, where=where)
            fixed = sizes[axis]
            if isinstance(fixed, int) and fixed != size:
                raise InputError(
                    f"the model fixes this dimension at {fixed}", source=self.source, where=where, remedy="leave it out"
                )
            sizes[axis] = size
        return PartialType(known.dtype, tuple(sizes))

    def is_given_by_axis(self, tensor: str) -> bool:
        """Say whether a size is given for an axis of *tensor*."""
        return tensor in self._by_axis

    def unknown(
        self, tensor: str, known: PartialType, where: str, reason: str = "", also: Iterable[str] = ()
    ) -> UnknownSize:
        """Return the error for a tensor whose type stayed incomplete: it names the dimension and the flag.

        *also* are further keys that will have to be given.
        """
        because = f" ({reason})" if reason else ""
        if known.dims is None:
            return UnknownSize(
                f"tensor {tensor!r} has an unknown shape{because}",
                source=self.source,
                where=where,
                remedy=f"give all its axes: {FLAG} {tensor}:0=1 {FLAG} {tensor}:1=…, or run ONNX shape inference on it",
            )
        open_axes = [(axis, dim) for axis, dim in enumerate(known.dims) if not isinstance(dim, int)]
        if not open_axes:
            return UnknownSize(
                f"tensor {tensor!r} has an unknown element type{because}",
                source=self.source,
                where=where,
                remedy="declare it in value_info",
            )
        keys = self.keys_of(tensor, known)
        key, (axis, dim) = keys[0], open_axes[0]
        name = f" {dim!r}" if dim in self.symbols else ""
        others = ", ".join(dict.fromkeys(other for other in [*keys, *also] if other != key))
        return UnknownSize(
            f"tensor {tensor!r} has an unknown dimension{name} (axis {axis}){because}",
            source=self.source,
            where=where,
            remedy=f"set it with {FLAG} {key}=1" + (f" (likewise: {others})" if others else ""),
        )

    def keys_of(self, tensor: str, known: PartialType) -> list[str]:
        """Return what the flag has to name for each open dimension of a type of known rank."""
        open_axes = [(axis, dim) for axis, dim in enumerate(known.dims or ()) if not isinstance(dim, int)]
        return [dim if dim is not None and dim in self.symbols else f"{tensor}:{axis}" for axis, dim in open_axes]


def _symbols(graph: onnx.GraphProto, parameters: Collection[str]) -> dict[str, str]:
    """Return each symbol with the first place it stands at, ``tensor:axis``; those of inputs come first."""
    found: dict[str, str] = {}
    for group in (graph.input, graph.output, graph.value_info):
        for value in group:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if dim.dim_param and value.name not in parameters:
                    found.setdefault(dim.dim_param, f"{value.name}:{axis}")
    return found


def _tensor_names(graph: onnx.GraphProto) -> set[str]:
    names = {value.name for value in graph.input}
    for node in graph.node:
        names.update(node.output)
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs:
                names |= _tensor_names(body)
    return names
