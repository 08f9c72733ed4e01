"""Indivisible parts of a split model: nodes, and calls of local functions that no cut goes through.

A plan is about the nodes of the model with all its functions inlined. The body of a call becomes a run of consecutive
nodes in the order of the function, so the file's own nodes can be laid over the inlined ones. A call all of whose ops
are in one stage stays a call there; one that is cut is replaced by its body, in which calls may again stay calls. If
the two do not match node by node, no call stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx

from mtpp.formats.onnx.local_functions.attributes import (
    FunctionKey,
    bound_attribute,
    called_key,
    function_key,
    with_defaults,
)
from mtpp.formats.onnx.scope import Scope
from mtpp.formats.onnx.stages.contents import Contents
from mtpp.formats.onnx.topology import reads, subgraphs
from mtpp.inference.topological import first_come_order


@dataclass(frozen=True)
class Unit:
    """One node of a stage's file.

    Attributes
    ----------
    reads, outputs
        Names of tensors of the main graph, each once; what the node's bodies capture is read by it.
    stage
        None for a folded node: every stage that needs its outputs gets a copy.
    ops
        How many ops of the plan it stands for.
    name
        What the plan calls it if it is one op, else its own name, which need not be unique.
    """

    node: onnx.NodeProto
    name: str
    reads: tuple[str, ...]
    outputs: tuple[str, ...]
    stage: int | None
    ops: int


@dataclass(frozen=True)
class Units:
    """The units of a model in topological order.

    Attributes
    ----------
    calls_kept, calls_inlined
        Calls in the main graph that stayed, and that were replaced by their bodies.
    """

    units: tuple[Unit, ...]
    calls_kept: int
    calls_inlined: int


class _Mismatch(Exception):
    """The inlined nodes are not the bodies of the calls, one after the other."""


@dataclass
class _Entry:
    """A node of the file laid over the inlined nodes *start* … *stop* − 1; *parts* are the body of a call."""

    node: onnx.NodeProto
    start: int
    stop: int
    parts: list[_Entry] | None = None
    keepable: bool = True


@dataclass
class _Frame:
    """Names and attributes inside one call: what they are outside."""

    names: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)


def called_functions(
    nodes: Iterable[onnx.NodeProto], functions: Mapping[FunctionKey, onnx.FunctionProto]
) -> set[FunctionKey]:
    """Return the functions that *nodes* call, directly, in bodies of control flow, or through other functions."""
    found: set[FunctionKey] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        key = called_key(node)
        if key in functions and key not in found:
            found.add(key)
            waiting += functions[key].node
        for _, body in subgraphs(node):
            waiting += body.node
    return found


class PlacedOp(NamedTuple):
    """An op of the plan: its name and its stage."""

    name: str
    stage: int


def units_of(contents: Contents, scope: Scope, ops: Mapping[int, PlacedOp]) -> Units:
    """Lay the plan over the file's nodes.

    Parameters
    ----------
    scope
        What is known of the tensors of the main graph.
    ops
        By position in ``contents.nodes``; what is missing is folded.
    """
    if contents.model.functions:
        try:
            return _Overlay(contents, scope, ops).units()
        except _Mismatch:
            pass
    entries = [_Entry(node, i, i + 1) for i, node in enumerate(contents.nodes)]
    units = [_unit(entry, ops) for entry in entries]
    return Units(tuple(units[i] for i in _sorted(units)), 0, 0)


def _unit(entry: _Entry, ops: Mapping[int, PlacedOp]) -> Unit:
    inside = [ops[position] for position in range(entry.start, entry.stop) if position in ops]
    outputs = tuple(dict.fromkeys(name for name in entry.node.output if name))
    name = inside[0].name if inside and entry.parts is None else entry.node.name
    return Unit(entry.node, name, tuple(reads(entry.node)), outputs, inside[0].stage if inside else None, len(inside))


def _sorted(units: Sequence[Unit]) -> list[int]:
    producer = {name: i for i, unit in enumerate(units) for name in unit.outputs}
    edges = [(producer[name], i) for i, unit in enumerate(units) for name in unit.reads if name in producer]
    return first_come_order(len(units), edges)


class _Overlay:
    def __init__(self, contents: Contents, scope: Scope, ops: Mapping[int, PlacedOp]) -> None:
        self._graph = contents.model.graph
        self._nodes = contents.nodes
        self._functions = {function_key(function): function for function in contents.model.functions}
        self._scope = scope
        self._ops = ops
        self._readers: dict[str, list[int]] = {value.name: [-1] for value in self._graph.output}
        for position, node in enumerate(self._nodes):
            for name in reads(node):
                self._readers.setdefault(name, []).append(position)

    def units(self) -> Units:
        entries, stop = self._walk(self._graph.node, None, 0)
        if stop != len(self._nodes):
            raise _Mismatch
        units = [_unit(entry, self._ops) for top in entries for entry in self._chosen(top)]
        order = _sorted(units)
        if len(order) < len(units):
            raise _Mismatch
        calls = [top for top in entries if top.parts is not None]
        kept = sum(self._may_stay(top) for top in calls)
        return Units(tuple(units[i] for i in order), kept, len(calls) - kept)

    def _walk(self, nodes: Iterable[onnx.NodeProto], frame: _Frame | None, position: int) -> tuple[list[_Entry], int]:
        """Lay some nodes over the inlined ones from *position* on; *frame* is None in the main graph."""
        entries = []
        for node in nodes:
            function = self._functions.get(called_key(node))
            if function is not None:
                entry = self._call(node, function, frame, position)
                position = entry.stop
            else:
                if position >= len(self._nodes):
                    raise _Mismatch
                inlined = self._nodes[position]
                if inlined.op_type != node.op_type or len(inlined.output) != len(node.output):
                    raise _Mismatch
                if frame is None:
                    if list(inlined.output) != list(node.output):
                        raise _Mismatch
                    entry = _Entry(node, position, position + 1)
                else:
                    frame.names.update(zip(node.output, inlined.output, strict=True))
                    entry = _Entry(inlined, position, position + 1)
                position += 1
            entries.append(entry)
        return entries, position

    def _call(self, node: onnx.NodeProto, function: onnx.FunctionProto, frame: _Frame | None, position: int) -> _Entry:
        call, keepable = node, True
        if frame is not None:
            call, keepable = _actual(node, frame)
        inner = _Frame({"": ""}, with_defaults(function, call.attribute))
        if len(call.input) > len(function.input) or len(call.output) > len(function.output):
            raise _Mismatch
        inner.names.update(zip(function.input, [*call.input, *[""] * len(function.input)], strict=False))
        parts, stop = self._walk(function.node, inner, position)
        for i, name in enumerate(node.output):
            if not name:
                continue
            made = inner.names.get(function.output[i])
            if made is None or (frame is None and made != name):
                raise _Mismatch
            if frame is not None:
                frame.names[name] = made
                call.output[i] = made
        return _Entry(call, position, stop, parts, keepable)

    def _chosen(self, entry: _Entry) -> Iterator[_Entry]:
        if entry.parts is None or self._may_stay(entry):
            yield entry
        else:
            for part in entry.parts:
                yield from self._chosen(part)

    def _may_stay(self, entry: _Entry) -> bool:
        """Say whether a call reads and makes in its stage what its ops do, and nothing else."""
        inside = range(entry.start, entry.stop)
        ops = [position for position in inside if position in self._ops]
        if not entry.keepable or len({self._ops[position].stage for position in ops}) != 1:
            return False
        read = {name for position in ops for name in reads(self._nodes[position])}
        for name in reads(entry.node):
            known = self._scope.find(name)
            if name not in read and (known is None or known.parameter is None):
                return False  # only its shape matters, and it may be made in a later stage
        for name in entry.node.output:
            known = self._scope.find(name) if name else None
            folded = known is not None and known.parameter is not None
            if folded and any(reader not in inside for reader in self._readers.get(name, ())):
                return False  # other stages need a copy of what makes it
        return True


def _actual(node: onnx.NodeProto, frame: _Frame) -> tuple[onnx.NodeProto, bool]:
    """Return a call in a function's body with the names and attributes of the graph around; and whether it can stay."""
    call = onnx.NodeProto()
    call.CopyFrom(node)
    del call.attribute[:]
    for attribute in node.attribute:
        bound = bound_attribute(attribute, frame.attributes)
        if bound is not None:
            call.attribute.add().CopyFrom(bound)
    for i, name in enumerate(node.input):
        if name not in frame.names:
            raise _Mismatch
        call.input[i] = frame.names[name]
    # The names in a body would have to be replaced as well.
    return call, not any(attribute.HasField("g") or attribute.graphs for attribute in call.attribute)
