"""Ranges of whole numbers that a model's inputs may hold, where they are made up: rows of tables, lengths, modes.

A number that picks a row must be one of the table's; one that says how long something is, no more than it is; one that
is compared with a constant picks a way through the model, and should pick one that its sizes allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mtpp.formats.modelled.size_roles import InputShape, Role, roles_of, words_of
from mtpp.formats.onnx.scope import Scope
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, partial_type
from mtpp.formats.onnx.topology import subgraphs

Range = tuple[int, int]
"""Least and most."""

_WHOLE = frozenset(
    (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16,
     TensorProto.UINT32, TensorProto.UINT64)
)  # fmt: skip
_PASSING = frozenset(
    ("Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")
)
"""Ops whose output holds numbers of their first input and no others."""
_TAKING = frozenset(("Gather", "Slice"))
"""Ops among these that may leave some of the numbers out."""

_PICKING = {"Gather": 1, "GatherElements": 1, "com.microsoft:EmbedLayerNormalization": 0, "OneHot": 0}
_LENGTHS = {"GRU": 4, "LSTM": 4, "RNN": 4}
_LENGTH_WORDS = frozenset(("len", "length", "lengths", "lens"))
_ALONG = frozenset((Role.FRAMES, Role.SAMPLES, Role.TOKENS))
_MOST_CONSTANTS = 8192


@dataclass
class _Found:
    """What is known of the numbers of one input."""

    below: list[int] = field(default_factory=list)
    least: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    wanted: list[tuple[int, bool]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


TypeOf = Callable[[str], TensorType | None]
"""Returns the type of a tensor of the main graph; None if it is not known, or is no tensor."""


def ranges_of(graph: onnx.GraphProto, scope: Scope, runnable: Mapping[str, str]) -> dict[str, Range]:
    """Return the ranges of the inputs of a model that was read; see :func:`value_ranges`."""

    def type_of(name: str) -> TensorType | None:
        known = scope.find(name)
        return known.type if known is not None and isinstance(known.type, TensorType) else None

    return value_ranges(graph, type_of, runnable)


def value_ranges(
    graph: onnx.GraphProto, type_of: TypeOf, runnable: Mapping[str, str] | None = None
) -> dict[str, Range]:
    """Return the least and the largest number of each input that holds whole numbers, where something is known of them.

    Parameters
    ----------
    runnable
        By the first output of an If of the main graph, the only branch that can run with these sizes.

    Notes
    -----
    O(size of the graph). What is computed from an input is not followed: such numbers are made up as before.
    """
    stored = {tensor.name for tensor in graph.initializer}
    kinds = {value.name: type_of(value.name) for value in graph.input if value.name not in stored}
    inputs = {name: kind for name, kind in kinds.items() if kind is not None and kind.dtype in _WHOLE}
    if not inputs:
        return {}
    found = _Search(graph, type_of, runnable or {}, inputs).found
    longest = _longest(graph, type_of)
    ranges = {name: _range(name, kind, found[name], longest) for name, kind in inputs.items()}
    return {name: limits for name, limits in ranges.items() if limits is not None}


def row_limits(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the most that each input of whole numbers can be that picks rows of stored tables: beyond, a run ends.

    Notes
    -----
    By nodes of the main graph, which always run.
    """
    kinds = {value.name: partial_type(value.type) for value in graph.input}
    inputs = {
        name: TensorType(kind.dtype, (1,) * len(kind.dims))
        for name, kind in kinds.items()
        if isinstance(kind, PartialType) and kind.dtype in _WHOLE and kind.dims is not None
    }
    if not inputs:
        return {}
    nodes = [node for node in graph.node if not any(True for _ in subgraphs(node))]
    found = _Search(graph, lambda name: None, {}, inputs, nodes).found
    return {name: min(one.rows) - 1 for name, one in found.items() if one.rows}


class _Search:
    def __init__(
        self,
        graph: onnx.GraphProto,
        type_of: TypeOf,
        runnable: Mapping[str, str],
        inputs: Mapping[str, TensorType],
        nodes: Iterable[onnx.NodeProto] | None = None,
    ) -> None:
        self._type_of, self._runnable, self._inputs = type_of, runnable, inputs
        self._passing = _PASSING if nodes is None else _PASSING - _TAKING
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._origin = {name: name for name in inputs}
        self._offset: dict[str, Range] = {}
        self._conditions: dict[str, tuple[str, int]] = {}
        self.found = {name: _Found() for name in inputs}
        for node in _nodes(graph) if nodes is None else nodes:
            self._node(node)

    def _node(self, node: onnx.NodeProto) -> None:
        kind = f"{node.domain}:{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        if kind == "Constant" and node.output:
            self._stored.update((node.output[0], one.t) for one in node.attribute if one.name == "value")
            return
        if kind == "If":
            self._choose(node)
            return
        sources = [self._origin.get(name) for name in node.input]
        if not any(sources):
            if kind in _PASSING and node.input and node.input[0] in self._conditions:
                self._conditions[node.output[0]] = self._conditions[node.input[0]]
            return
        if kind in self._passing and sources[0] is not None:
            self._origin[node.output[0]] = sources[0]
            self._offset[node.output[0]] = self._offset_of(node.input[0])
        if kind in ("Add", "Sub"):
            self._shift(kind, node)
        picked = sources[_PICKING[kind]] if kind in _PICKING and _PICKING[kind] < len(sources) else None
        if picked is not None:
            self._pick(kind, node, self.found[picked], self._offset_of(node.input[_PICKING[kind]]))
        where = _LENGTHS.get(kind)
        length = sources[where] if where is not None and where < len(sources) else None
        if length is not None and (x := self._type_of(node.input[0])) is not None:
            self.found[length].lengths.append(x.shape[0])
        if kind == "com.microsoft:GroupQueryAttention":
            self._attend(node, sources)
        if kind == "Equal":
            self._compare(node)

    def _attend(self, node: onnx.NodeProto, sources: list[str | None]) -> None:
        """Note how many keys there are, those of the past included: the last position, and their number."""
        keys = self._shape(node.input[1] or node.input[0])  # packed with the queries where there are none
        past = self._shape(node.input[3]) if len(node.input) > 3 and node.input[3] else None
        if keys is None or len(keys) < 3:
            return
        count = keys[1] + (past[2] if past is not None and len(past) == 4 else 0)
        for name, number in zip(sources[5:7], (count - 1, count), strict=False):
            if name is not None:
                self.found[name].lengths.append(number)

    def _offset_of(self, name: str) -> Range:
        return self._offset.get(name, (0, 0))

    def _shift(self, kind: str, node: onnx.NodeProto) -> None:
        """Note what is added to an input, or taken from it, before it picks: positions begin behind some rows."""
        for own, other in (node.input, reversed(node.input)) if kind == "Add" else (node.input,):
            constants = self._constants(other)
            if own in self._origin and constants:
                first, last = self._offset_of(own)
                low, high = min(constants), max(constants)
                self._origin[node.output[0]] = self._origin[own]
                if kind == "Sub":
                    low, high = -high, -low
                self._offset[node.output[0]] = first + low, last + high
                return

    def _pick(self, kind: str, node: onnx.NodeProto, found: _Found, offset: Range) -> None:
        """Note how many rows there are to pick from, *offset* rows further on."""
        found.least.append(-offset[0])
        if kind == "OneHot":
            depth = self._constants(node.input[1])
            found.below += [one - offset[1] for one in depth[:1]]
            return
        table = node.input[2] if kind.endswith("EmbedLayerNormalization") else node.input[0]
        shape = self._shape(table)
        axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
        if shape and -len(shape) <= axis < len(shape):
            found.below.append(shape[axis] - offset[1])
            found.rows.append(shape[axis] - offset[0])

    def _compare(self, node: onnx.NodeProto) -> None:
        """Note constants that an input is compared with: one is a mode, many are an alphabet."""
        for own, other in (node.input, reversed(node.input)):
            name = self._origin.get(own)
            constants = self._constants(other)
            if name is None or not constants:
                continue
            first, last = self._offset_of(own)
            if len(constants) > 1:
                self.found[name].below.append(max(constants) + 1 - last)
            elif first != last:
                continue
            elif self._inputs[name].count == 1:
                self.found[name].modes.append(constants[0] - first)
                self._conditions[node.output[0]] = name, constants[0] - first

    def _choose(self, node: onnx.NodeProto) -> None:
        """Note which mode the only branch that can run asks for."""
        condition = self._conditions.get(node.input[0]) if node.input else None
        branch = self._runnable.get(node.output[0]) if node.output else None
        if condition is not None and branch is not None:
            name, constant = condition
            self.found[name].wanted.append((constant, branch == "then_branch"))

    def _shape(self, name: str) -> tuple[int, ...] | None:
        stored = self._stored.get(name)
        if stored is not None:
            return tuple(stored.dims)
        known = self._type_of(name)
        return None if known is None else known.shape

    def _constants(self, name: str) -> list[int]:
        """Return the whole numbers of a stored tensor; none if it is no such one, or large."""
        tensor = self._stored.get(name)
        if tensor is None or tensor.data_type not in _WHOLE or tensor.data_location == TensorProto.EXTERNAL:
            return []
        try:
            array = numpy_helper.to_array(tensor)
        except (ValueError, TypeError):
            return []
        return [int(one) for one in array.reshape(-1)] if array.size <= _MOST_CONSTANTS else []


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        for _, body in subgraphs(node):
            yield from _nodes(body)
        yield node


def _longest(graph: onnx.GraphProto, type_of: TypeOf) -> int | None:
    """Return the size of the first open axis of an input that counts tokens, frames or samples."""
    for value in graph.input:
        kind, known = partial_type(value.type), type_of(value.name)
        if not isinstance(kind, PartialType) or kind.dims is None or known is None:
            continue
        roles = roles_of(InputShape(value.name, kind.dtype not in _WHOLE, kind.dims))
        for size, dim, role in zip(known.shape, kind.dims, roles, strict=True):
            if role in _ALONG and not isinstance(dim, int):
                return size
    return None


def _range(name: str, kind: TensorType, found: _Found, longest: int | None) -> Range | None:
    if found.wanted:
        constant, equal = found.wanted[0]
        others = [one for one in found.modes if one != constant]
        mode = constant if equal else others[0] if others else 0 if constant else 1
        return mode, mode
    if found.modes:
        return found.modes[0], found.modes[0]
    if found.lengths:
        return found.lengths[0], found.lengths[0]
    if found.below and min(found.below) > 0:
        largest = np.iinfo(helper.tensor_dtype_to_np_dtype(kind.dtype)).max
        most = min(*found.below, int(largest) + 1) - 1
        return min(most, max(0, *found.least, 0)), most
    if longest is not None and kind.rank < 2 and words_of(name) & _LENGTH_WORDS:
        return longest, longest
    if words_of(name) >= {"attention", "mask"}:
        return 1, 1
    return None
