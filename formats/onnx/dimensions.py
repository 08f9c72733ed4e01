"""Symbolic dimensions: which ones a model has, and the sizes a user gives them.

A size is given by the symbol's name (``batch``), or, for a dimension without a name, by the tensor and the axis
(``input_ids:0``); the latter works for any tensor, so that sizes that depend on data can be fixed as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import onnx

from mtpp.errors import InputError
from mtpp.formats.modelled.open_sizes import AUTO_FLAG, Basis, OpenedSize, UnknownSize
from mtpp.formats.modelled.size_terms import OTHERS, SizeTerms, loop_of, size_of_others
from mtpp.formats.onnx.tensor_type import Dim, PartialType, TensorType, partial_type
from mtpp.formats.onnx.topology import loop_name, loop_names
from mtpp.terminal_safe import shell_word
from mtpp.wording import did_you_mean

FLAG = "‹dims›"

LARGEST_DIM = 2**31 - 1

NAMELESS = frozenset(("", "-1", "?", "None", "unknown"))
"""Names that exporters give to every size that they do not know: two of them need not be the same."""


class OpenTensor(UnknownSize):
    """A tensor whose type stays open, with what a reader who looks for sizes needs to know (exit code 2).

    Attributes
    ----------
    tensor, known
        Its name, and its type as far as it is known.
    likely
        Size to try first of an open axis, by axis: the largest that it can have, where there is one.
    """

    tensor: str = ""
    known: PartialType = PartialType()
    likely: Mapping[int, int] = MappingProxyType({})


class Dimensions:
    """The sizes a user gives, checked against the model once.

    Parameters
    ----------
    graph
        The main graph; symbols are collected from its inputs, outputs and value_info.
    parameters
        Names of its initializers: a graph input among them is no input.
    given
        Size by symbol, or by ``TENSOR:AXIS``; under :data:`mtpp.formats.modelled.size_terms.OTHERS` the size of all
        that stay open.
    spare
        Whether sizes for what the model does not have are left aside.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        parameters: Collection[str],
        given: SizeTerms,
        source: str,
        *,
        spare: bool = False,
    ) -> None:
        self.source = source
        self.symbols = _symbols(graph, parameters)
        self.given: dict[str, int] = {}
        self._by_axis: dict[str, dict[int, int]] = {}
        self._trips: dict[str, int] = {}
        self._others = size_of_others(given)
        if self._others is not None:
            _check_size(OTHERS, self._others)
        named = {key: size for key, size in given.items() if key != OTHERS}
        if not named:
            return
        tensors = _tensor_names(graph)
        for key, size in named.items():
            _check_size(key, size)
            tensor, colon, axis = key.rpartition(":")
            if key not in self.symbols:
                if (loop := loop_of(key)) is not None and loop in loop_names(graph):
                    self._trips[loop] = int(size)
                    self.given[key] = int(size)
                    continue
                if not (colon and tensor in tensors and axis.isdecimal() and len(axis) < 3):
                    if spare:
                        continue
                    raise self._no_such_dimension(key, graph)
                self._by_axis.setdefault(tensor, {})[int(axis)] = int(size)
            self.given[key] = int(size)

    def trips_of(self, node: onnx.NodeProto) -> int | None:
        """Return how often the body of a loop runs as the caller says; None if it does not."""
        return self._trips.get(loop_name(node)) if node.op_type == "Loop" else None

    def _no_such_dimension(self, key: str, graph: onnx.GraphProto) -> InputError:
        if (loop := loop_of(key)) is not None:
            names = loop_names(graph)
            remedy = f"it has: {', '.join(names)}" if names else "it has none"
            return InputError(f"the model has no loop {loop!r}", source=self.source, where="‹trips›", remedy=remedy)
        if self.symbols:
            remedy = did_you_mean(key, self.symbols, f"it has: {', '.join(self.symbols)}")
        else:
            remedy = "it has no symbolic dimensions; an unnamed one is given as TENSOR:AXIS"
        return InputError(f"the model has no dimension {key!r}", source=self.source, where=FLAG, remedy=remedy)

    def applied(self, tensor: str, known: PartialType, *, others: bool = True) -> PartialType:
        """Put the given sizes into a type.

        Parameters
        ----------
        others
            Whether the size of all others goes where none is given by name.
        """
        filled = self._named(tensor, known)
        if others and self._others is not None and filled.dims is not None:
            size = self._others
            for key in self.keys_of(tensor, filled):
                self.given.setdefault(key, size)
            filled = PartialType(filled.dtype, tuple(dim if isinstance(dim, int) else size for dim in filled.dims))
        return filled

    def _named(self, tensor: str, known: PartialType) -> PartialType:
        """Put the sizes that are given by name into a type."""
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

    def opened_sizes(
        self, tensor: str, kind: TensorType, axes: Iterable[int], declared: onnx.TypeProto | None
    ) -> dict[str, OpenedSize]:
        """Return the sizes that costs rest on of axes that are open, by ``TENSOR:AXIS``, with what each is based on."""
        said = PartialType() if declared is None else partial_type(declared)
        dims = said.dims if isinstance(said, PartialType) and said.dims is not None else ()
        found = {}
        for axis in axes:
            place, size = f"{tensor}:{axis}", kind.shape[axis]
            dim = dims[axis] if len(dims) == kind.rank else None
            key = next((one for one in (place, dim) if isinstance(one, str) and one in self.given), "")
            basis = Basis.GIVEN if key else Basis.DECLARED if dim == size else Basis.ESTIMATED
            found[place] = OpenedSize(size, basis, key)
        return found

    def unknown(
        self,
        tensor: str,
        known: PartialType,
        where: str,
        reason: str = "",
        *,
        misfit: bool = False,
        likely: Mapping[int, int] | None = None,
    ) -> OpenTensor:
        """Return the error for a tensor whose type stayed incomplete: it names the dimension and the flag.

        Parameters
        ----------
        reason
            Why it is not known.
        misfit
            Whether the operands do not fit, so that no size of the tensor would help.
        likely
            Size to try first of an open axis, by axis.
        """
        problem, remedy = self._told(tensor, known, reason)
        if misfit:
            remedy = self.remedy_of_misfit()
        error = OpenTensor(problem, source=self.source, where=where, remedy=remedy, misfit=misfit)
        error.tensor, error.known, error.likely = tensor, known, likely or {}
        return error

    def remedy_of_misfit(self) -> str:
        """Return what to do about a node that cannot run with the sizes of the model."""
        if self.given:
            return f"other sizes may fit: {AUTO_FLAG} auto takes some that do"
        return "check the model with onnx.checker"

    def _told(self, tensor: str, known: PartialType, reason: str) -> tuple[str, str]:
        """Return what is wrong with a tensor, and what to do about it."""
        because = f" ({reason})" if reason else ""
        if known.dims is None:
            axes = " ".join(f"{FLAG} {shell_word(f'{tensor}:{axis}={size}')}" for axis, size in ((0, "1"), (1, "…")))
            remedy = f"give all its axes: {axes}, or run ONNX shape inference on it"
            return f"tensor {tensor!r} has an unknown shape{because}", remedy
        open_axes = [(axis, dim) for axis, dim in enumerate(known.dims) if not isinstance(dim, int)]
        if not open_axes:
            return f"tensor {tensor!r} has an unknown element type{because}", "declare it in value_info"
        keys = self.keys_of(tensor, known)
        key, (axis, dim) = keys[0], open_axes[0]
        name = f" {dim!r}" if dim in self.symbols else ""
        others = ", ".join(dict.fromkeys(shell_word(other) for other in keys if other != key))
        remedy = f"set it with {FLAG} {shell_word(f'{key}=1')}" + (f" (likewise: {others})" if others else "")
        return f"tensor {tensor!r} has an unknown dimension{name} (axis {axis}){because}", remedy

    def keys_of(self, tensor: str, known: PartialType) -> list[str]:
        """Return what the flag has to name for each open dimension of a type of known rank."""
        open_axes = [(axis, dim) for axis, dim in enumerate(known.dims or ()) if not isinstance(dim, int)]
        return [
            dim if dim is not None and dim in self.symbols and dim not in NAMELESS else f"{tensor}:{axis}"
            for axis, dim in open_axes
        ]


def _check_size(key: str, size: object) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= LARGEST_DIM:
        raise InputError(f"{size!r} is not a positive size up to {LARGEST_DIM:,}", source=FLAG, where=str(key))


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
