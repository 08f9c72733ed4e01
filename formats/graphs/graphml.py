"""GraphML, as yEd, Gephi, Cytoscape, igraph and networkx read it: written here, and read in :mod:`graphml_reader`.

A ``<node>`` is an op: its ``id`` is the op's name, its data are ``label`` (the name again, for programs that hide ids),
``kind``, ``work`` and ``param_bytes``. An ``<edge>`` is one use of a tensor by one op: ``tensor`` (the name), ``bytes``
and ``transfer``. So a tensor that three ops read is three edges with one name in a row, and two tensors between the
same ops are two parallel edges. The ``<graph>`` carries ``name``, ``time_unit``, ``metadata`` (JSON), and ``unread``:
the tensors that no op reads, as JSON rows ``[place in the list of tensors, name, producer, bytes, transfer]``. Weights
that several ops read are its ``weights``, a JSON object of ``{"bytes", "readers"}`` by name; so are its ``inputs`` and
``states``, and ``results`` is a JSON array of names of tensors.
Numbers are exact decimals, however many digits they have.

With a partition, a node has its ``stage`` too, its colour as ``r``, ``g`` and ``b`` (Gephi's names) and as a shape of
yFiles (yEd).

GraphML Primer, http://graphml.graphdrawing.org/primer/graphml-primer.html; the kinds of data that programs know by name
are Gephi's (https://gephi.org/users/supported-graph-formats/graphml-format/) and yFiles' (``y:ShapeNode``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from mtpp.colours import rgb, stage_colour, text_on
from mtpp.errors import InputError
from mtpp.formats.graphs.node_link import ends_of
from mtpp.formats.io.json_text import decimal_text, dump_json
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Int32Array
from mtpp.inference.plan import Plan
from mtpp.units import Exact

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
YFILES = "http://www.yworks.com/xml/graphml"

_GRAPH_KEYS = (("name", "string"), ("time_unit", "string"), ("metadata", "string"), ("unread", "string"))
_NODE_KEYS = (("label", "string"), ("kind", "string"), ("work", "double"), ("param_bytes", "long"))
_STAGE_KEYS = (("stage", "int"), ("r", "int"), ("g", "int"), ("b", "int"))
_EDGE_KEYS = (("tensor", "string"), ("bytes", "long"), ("transfer", "double"))

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may hold, escaped or not (https://www.w3.org/TR/xml/#charsets)."""

_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
"""Line ends and tabs too: a parser may turn them into spaces, or into each other."""


def write_graphml(graph: CostGraph) -> str:
    """Return the text of a GraphML file from which :func:`read_graphml` makes the same graph.

    Notes
    -----
    O(n + pins) time and memory.
    """
    return _text(graph, None)


def write_graphml_stages(plan: Plan) -> str:
    """Return the same with the stage and the colour of every op; reading it gives the graph without them."""
    return _text(plan.graph, plan.partition.assignment)


def _text(graph: CostGraph, assignment: Int32Array | None) -> str:
    return "\n".join(_lines(graph, assignment)) + "\n"


def _lines(graph: CostGraph, assignment: Int32Array | None) -> Iterator[str]:
    names = [_escaped(name, f"op {v}") for v, name in enumerate(graph.op_names)]
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<graphml xmlns="{NAMESPACE}" xmlns:y="{YFILES}">'
    node_keys = _NODE_KEYS + (() if assignment is None else _STAGE_KEYS)
    ends = ends_of(graph)
    graph_keys = (*_GRAPH_KEYS, *((key, "string") for key in ends))
    for element, keys in (("graph", graph_keys), ("node", node_keys), ("edge", _EDGE_KEYS)):
        for name, kind in keys:
            yield f' <key id="{element}.{name}" for="{element}" attr.name="{name}" attr.type="{kind}"/>'
    if assignment is not None:
        yield ' <key id="node.graphics" for="node" yfiles.type="nodegraphics"/>'
    yield ' <graph edgedefault="directed">'
    yield "  " + _data("graph", "name", _escaped(graph.name, "the graph"))
    yield "  " + _data("graph", "time_unit", graph.time_unit)
    yield "  " + _data("graph", "metadata", _escaped(dump_json(dict(graph.metadata)), "metadata"))
    if unread := _unread(graph):
        yield "  " + _data("graph", "unread", _escaped(dump_json(unread), "unread tensors"))
    for key, rows in ends.items():
        yield "  " + _data("graph", key, _escaped(dump_json(rows), key))
    yield from _nodes(graph, names, assignment)
    yield from _edges(graph, names)
    yield " </graph>"
    yield "</graphml>"


def _nodes(graph: CostGraph, names: list[str], assignment: Int32Array | None) -> Iterator[str]:
    stages = None if assignment is None else assignment.tolist()
    drawn = [] if stages is None else [_stage_data(stage) for stage in range(max(stages) + 1)]
    kinds = {kind: _escaped(kind, "a kind of ops") for kind in set(graph.op_kinds)}
    columns = zip(names, graph.op_kinds, graph.work, graph.param_bytes.tolist(), strict=True)
    for v, (name, kind, work, size) in enumerate(columns):
        data = _data("node", "label", name)
        if kind:
            data += _data("node", "kind", kinds[kind])
        data += _data("node", "work", _decimal(work)) + _data("node", "param_bytes", str(size))
        if stages is not None:
            before, after = drawn[stages[v]]
            data += f"{before}{name}{after}"
        yield f'  <node id="{name}">{data}</node>'


def _stage_data(stage: int) -> tuple[str, str]:
    """Return what stands before and after the name of every op of a stage."""
    fill = stage_colour(stage)
    data = _data("node", "stage", str(stage))
    for key, value in zip("rgb", rgb(fill), strict=True):
        data += _data("node", key, str(value))
    label = f'<y:NodeLabel textColor="{text_on(fill)}">'
    shape = f'<y:ShapeNode><y:Fill color="{fill}" transparent="false"/>{label}'
    return f'{data}<data key="node.graphics">{shape}', "</y:NodeLabel></y:ShapeNode></data>"


def _edges(graph: CostGraph, names: list[str]) -> Iterator[str]:
    consumers, offsets = graph.consumers.tolist(), graph.consumer_offsets.tolist()
    columns = zip(
        graph.tensor_names, graph.tensor_producer.tolist(), graph.tensor_bytes.tolist(), graph.transfer, strict=True
    )
    edge = 0
    for t, (tensor, producer, size, transfer) in enumerate(columns):
        data = _data("edge", "tensor", _escaped(tensor, f"tensor {t}"))
        if size != UNKNOWN_BYTES:
            data += _data("edge", "bytes", str(size))
        if transfer is not None:
            data += _data("edge", "transfer", _decimal(transfer))
        for v in consumers[offsets[t] : offsets[t + 1]]:
            yield f'  <edge id="e{edge}" source="{names[producer]}" target="{names[v]}">{data}</edge>'
            edge += 1


def _unread(graph: CostGraph) -> list[list[Any]]:
    offsets = graph.consumer_offsets.tolist()
    rows: list[list[Any]] = []
    for t, tensor in enumerate(graph.tensor_names):
        if offsets[t] == offsets[t + 1]:
            size = int(graph.tensor_bytes[t])
            known = None if size == UNKNOWN_BYTES else size
            rows.append([t, tensor, graph.op_names[graph.tensor_producer[t]], known, graph.transfer[t]])
    return rows


def _data(element: str, name: str, text: str) -> str:
    return f'<data key="{element}.{name}">{text}</data>'


def _decimal(value: Exact) -> str:
    return decimal_text(value) if isinstance(value, Fraction) else str(value)


def _escaped(text: str, where: str) -> str:
    if found := _ILLEGAL.search(text):
        raise InputError(
            f"{text[:60]!r} holds the character U+{ord(found[0]):04X}, which XML cannot hold",
            where=where,
            remedy="choose another format: native and node-link files hold every name",
        )
    return text.translate(_ESCAPES)
