"""Graphs with costs as TensorFlow writes them, ``CostGraphDef`` as protobuf text: the REGAL data set's format.

Format (tensorflow/core/framework/cost_graph.proto; the text is that of :mod:`mtpp.formats.io.protobuf_text`)::

    node {
      name: "conv"
      id: 7
      input_info { preceding_node: 3 preceding_port: 0 }
      output_info { size: 802816 alias_input_port: -1 dtype: DT_FLOAT shape { dim { size: 1 } } }
      control_input: 2
      compute_cost: 125
      temporary_memory_size: 0
    }

What has the value zero may be left out: the first node often has no ``id``, and an input from its first output is
``input_info { }``. Other fields of the format may be there, unknown ones may not. The text may also be that of a
``RunMetadata`` with one ``cost_graph``.

What becomes of it
------------------
* Work is ``compute_cost``, in microseconds.
* Every ``output_info`` is a tensor of ``size`` bytes; a size below zero says that it is not known, and counts as none.
  One that is listed for a node's n-th port and read from there has these bytes; a port that is not listed has none.
* A control input is an edge without bytes: one tensor of no bytes for all of a node's, unless data flows there anyway.
* The graph of a run on several devices is one per device in a row, each with a ``_SOURCE`` and a ``_SINK`` of its own:
  nodes of one name get their ids behind it.
* ``persistent_memory_size`` (or ``device_persistent_memory_size``) are the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.io.json_shape import attributed, shown
from mtpp.formats.io.json_text import no_garbage_collection
from mtpp.formats.io.protobuf_text import Message, Token, parse_text
from mtpp.formats.io.text_lines import cost_of, decoded, size_of
from mtpp.formats.modelled.naming import distinct_names, untaken
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.units import Exact
from mtpp.wording import did_you_mean

TIME_UNIT = "us"

_BEGINNING = re.compile(rb"(?:\s|#[^\n]*\n)*(?:node|cost_graph|cost|step_stats)\s*:?\s*[{<]")
_NODE_FIELDS = frozenset(
    (
        *("name", "device", "id", "input_info", "output_info", "control_input", "is_final", "inaccurate"),
        *("compute_cost", "compute_time", "memory_time", "temporary_memory_size", "persistent_memory_size"),
        *("host_temp_memory_size", "device_temp_memory_size"),
        *("host_persistent_memory_size", "device_persistent_memory_size"),
    )
)
_INPUT_FIELDS = frozenset(("preceding_node", "preceding_port"))
_OUTPUT_FIELDS = frozenset(("size", "alias_input_port", "shape", "dtype"))
_WHOLE = re.compile(r"-?\s*\d{1,18}")


class _Input(NamedTuple):
    node: int
    port: int
    line: int


@dataclass(frozen=True)
class _Node:
    id: int
    name: str
    work: Exact
    parameter_bytes: int
    inputs: list[_Input]
    controls: list[_Input]
    sizes: list[int]
    line: int


def looks_like_cost_graph(data: bytes) -> bool:
    """Return whether it begins like such a text."""
    return bool(_BEGINNING.match(data[:4096].removeprefix(b"\xef\xbb\xbf")))


def read_cost_graph(data: bytes, source: str, *, name: str = "graph", time_unit: str | None = None) -> CostGraph:
    """Read a cost graph, as the module says.

    Parameters
    ----------
    time_unit
        Unit of the file's costs; by default :data:`TIME_UNIT`.

    Raises
    ------
    InputError
        With the number of a line; :class:`UnrecognisedInput` for a ``GraphDef``, which has no costs.
    """
    with attributed(source), no_garbage_collection():
        nodes = _nodes(parse_text(decoded(data, source)))
        tensors = _tensors(nodes)
        unknown = sum(size < 0 for node in nodes.values() for size in node.sizes)
        assumptions = [f"{unknown} outputs of unknown size have no bytes"] if unknown else []
        try:
            return CostGraph.build(
                name=name,
                time_unit=time_unit or TIME_UNIT,
                ops=[Op(node.name, node.work, "", node.parameter_bytes) for node in nodes.values()],
                tensors=tensors,
                metadata={"source_format": "tensorflow", "assumptions": assumptions},
            )
        except InputError as error:
            raise InputError(error.problem, where=None, remedy=error.remedy) from None


def _nodes(document: Message) -> dict[int, _Node]:
    graphs = [value for value in document.fields.get("cost_graph", ()) if isinstance(value, Message)]
    if len(graphs) > 1:
        where = f"line {graphs[1].line}"
        raise InputError("a second cost_graph", where=where, remedy="give a file with one")
    rows = (graphs[0] if graphs else document).fields.get("node", [])
    nodes: dict[int, _Node] = {}
    for row in rows:
        node = _node(_message(row, "node"))
        where = f"line {node.line}"
        if node.id in nodes:
            raise InputError(f"duplicate id {node.id}, first used in line {nodes[node.id].line}", where=where)
        nodes[node.id] = node
    if not nodes:
        raise InputError("the graph has no nodes", remedy="give at least one")
    for node in nodes.values():
        for incoming in (*node.inputs, *node.controls):
            if incoming.node not in nodes:
                raise InputError(f"no node has the id {incoming.node}", where=f"line {incoming.line}")
            if incoming.node == node.id:
                problem = f"node {shown(node.name)} reads its own output (self-loop)"
                raise InputError(problem, where=f"line {incoming.line}")
    names = distinct_names({node.id: node.name for node in nodes.values()})
    return {identity: replace(node, name=names[identity]) for identity, node in nodes.items()}


def _node(row: Message) -> _Node:
    if "op" in row.fields and "compute_cost" not in row.fields:
        raise UnrecognisedInput(
            "a GraphDef, not a CostGraphDef: it has no costs",
            where=f"line {row.line}",
            remedy="give the cost_graph of its RunMetadata, or an ONNX model",
        )
    _check_fields(row, _NODE_FIELDS)
    inputs: list[_Input] = []
    controls = [_Input(_whole(value, "control_input"), 0, value.line) for value in _all(row, "control_input")]
    for value in _all(row, "input_info"):
        incoming = _message(value, "input_info")
        _check_fields(incoming, _INPUT_FIELDS)
        port = _whole(_one(incoming, "preceding_port"), "preceding_port")
        kind = controls if port < 0 else inputs  # TensorFlow's number for the output that carries no data
        kind.append(_Input(_whole(_one(incoming, "preceding_node"), "preceding_node"), port, incoming.line))
    name = _one(row, "name")
    if not isinstance(name, Token) or name.kind != "string" or not name.text:
        raise InputError("a node without a name", where=f"line {row.line}", remedy='give it name: "…"')
    return _Node(
        id=_whole(_one(row, "id"), "id"),
        name=name.text,
        work=_cost(row, "compute_cost"),
        parameter_bytes=_held(row),
        inputs=inputs,
        controls=controls,
        sizes=[_output_size(_message(value, "output_info")) for value in _all(row, "output_info")],
        line=row.line,
    )


def _all(row: Message, key: str) -> Iterable[Token | Message]:
    return row.fields.get(key, ())


def _one(row: Message, key: str) -> Token | Message | None:
    values = row.fields.get(key, [])
    if len(values) > 1:
        raise InputError(f"{key} is given twice", where=f"line {values[1].line}")
    return values[0] if values else None


def _message(value: Token | Message, key: str) -> Message:
    if not isinstance(value, Message):
        raise InputError(f"{key} must be a message", where=f"line {value.line}", remedy=f"write {key} {{ … }}")
    return value


def _check_fields(row: Message, known: frozenset[str]) -> None:
    for key, values in row.fields.items():
        if key not in known:
            remedy = did_you_mean(key, sorted(known), "") or None
            raise InputError(f"unknown field {shown(key)}", where=f"line {values[0].line}", remedy=remedy)


def _whole(value: Token | Message | None, key: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, Token) or value.kind != "number" or not _WHOLE.fullmatch(value.text):
        found = shown(value.text) if isinstance(value, Token) else "a message"
        raise InputError(f"{key} is {found}, not a whole number within reason", where=f"line {value.line}")
    return int("".join(value.text.split()))


def _cost(row: Message, key: str) -> Exact:
    value = _one(row, key)
    if value is None:
        return 0
    if not isinstance(value, Token) or value.kind != "number":
        raise InputError(f"{key} must be a number", where=f"line {value.line}")
    return cost_of("".join(value.text.split()), key, f"line {value.line}")


def _held(row: Message) -> int:
    for key in ("persistent_memory_size", "device_persistent_memory_size"):
        value = _one(row, key)
        if value is not None:
            return size_of(str(_whole(value, key)), key, f"line {value.line}")
    return 0


def _output_size(row: Message) -> int:
    _check_fields(row, _OUTPUT_FIELDS)
    return _whole(_one(row, "size"), "size")


def _tensors(nodes: Mapping[int, _Node]) -> list[Tensor]:
    readers: dict[int, dict[int, dict[str, None]]] = {identity: {} for identity in nodes}
    waiting: dict[int, dict[str, None]] = {identity: {} for identity in nodes}
    for node in nodes.values():
        for incoming in node.inputs:
            readers[incoming.node].setdefault(incoming.port, {})[node.name] = None
    for node in nodes.values():
        for incoming in node.controls:
            if not any(node.name in names for names in readers[incoming.node].values()):
                waiting[incoming.node][node.name] = None
    tensors, taken = [], set[str]()
    for node in nodes.values():
        listed = range(len(node.sizes))
        for port in (*listed, *sorted(readers[node.id].keys() - set(listed))):
            name = untaken(f"{node.name}:{port}" if port else node.name, taken)
            size = max(node.sizes[port], 0) if port in listed else 0
            tensors.append(Tensor(name, node.name, tuple(readers[node.id].get(port, ())), size))
        if waiting[node.id]:
            tensors.append(Tensor(untaken(f"^{node.name}", taken), node.name, tuple(waiting[node.id]), 0))
    return tensors
