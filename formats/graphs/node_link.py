"""Graphs as ``networkx.node_link_data`` writes them: nodes with costs, and edges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.colours import stage_colour
from mtpp.document_shape import Path, array, mapping, nullable, record, refuse, text
from mtpp.errors import InputError
from mtpp.formats.graphs.native import plain_metadata
from mtpp.formats.io.json_shape import attributed, exact_number, kind_of, pointer, shaped, table, whole_size
from mtpp.formats.io.json_text import dump_lines, parse_json
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Int32Array, Op, Tensor
from mtpp.inference.plan import Plan
from mtpp.inference.states import State
from mtpp.inference.weights import Weight

_ROWS = ("nodes", "edges", "graph.tensors")
_SIZE_KEYS = ("bytes", "size_out")
_PARAM_KEYS = ("param_bytes", "size_param")
_BUILD_POINTER = re.compile(r"/(ops|tensors|weights|inputs|states)/(\d+)(.*)", re.DOTALL)


def _identity(value: Any, path: Path) -> None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        refuse(f"a node's id must be a string or a whole number, not {kind_of(value)}", path)


_FLOW = {"bytes": nullable(whole_size), "transfer": nullable(exact_number)}
_OP = {"work": exact_number, "kind": text, **dict.fromkeys(_PARAM_KEYS, nullable(whole_size))}

_NODES = table({"id": _identity}, {**_OP, **_FLOW, "size_out": nullable(whole_size)}, closed=False)
_OPS = table({"id": _identity}, _OP, closed=False)
"""Rule of the nodes of a file that lists its tensors by itself."""

_EDGES = table({"source": _identity, "target": _identity}, closed=False)
_TENSORS = mapping(record({"producer": _identity, "consumers": array(_identity)}, _FLOW))
_WEIGHTS = mapping(record({"bytes": whole_size, "readers": array(_identity)}))
_STATES = mapping(record({"input": text, "output": text, "bytes": whole_size, "readers": array(_identity)}))
_ENDS = {
    "weights": nullable(_WEIGHTS),
    "inputs": nullable(_WEIGHTS),
    "results": nullable(array(text)),
    "states": nullable(_STATES),
}
_ATTRIBUTES = record({}, {"tensors": nullable(_TENSORS), "name": text}, closed=False)
_OWN_ATTRIBUTES = record({}, _ENDS, closed=False)
"""Rule of attributes beside the tensors of a file that lists these; others may mean anything by them."""

_HEAD = record({}, {"graph": _ATTRIBUTES}, closed=False)


def read_node_link(data: bytes, source: str, *, name: str = "graph", time_unit: str | None = None) -> CostGraph:
    """Read a node-link file; *source* is what messages call it. See :func:`graph_from_node_link`."""
    return graph_from_node_link(parse_json(data, source), source, name=name, time_unit=time_unit)


def graph_from_node_link(document: Any, source: str, *, name: str = "graph", time_unit: str | None = None) -> CostGraph:
    """Make a graph from a parsed node-link document.

    Parameters
    ----------
    document
        ``directed`` must be true. Nodes carry ``work``, and may carry ``kind``, ``size_param`` (or
        ``param_bytes``), and ``size_out`` (or ``bytes``) or ``transfer`` of the one tensor that goes along all
        out-edges of the node; other attributes are passed over. Parallel edges are one edge. Edges stand under
        ``edges`` or, as networkx before 3.4 wrote them, ``links``. The attributes ``name``, ``time_unit``,
        ``metadata``, ``tensors``, ``weights``, ``inputs``, ``results`` and ``states`` of the graph are those of
        :meth:`CostGraph.to_networkx`.
    name
        Name of a graph that brings none.
    time_unit
        Unit of work and transfer; by default the graph's attribute ``time_unit``, else ``"1"``.

    Raises
    ------
    InputError
        With a JSON pointer into this document.
    """
    with attributed(source):
        shaped(_HEAD, document)
        _check_directed(document)
        attributes = document.get("graph", {})
        key = "links" if "edges" not in document and "links" in document else "edges"
        for needed, remedy in (("nodes", "add it"), (key, "add it (or 'links')")):
            if needed not in document:
                raise InputError(f"missing key {needed!r}", where="/", remedy=remedy)
        stored = attributes.get("tensors")
        nodes = shaped(_NODES if stored is None else _OPS, document["nodes"], "nodes")
        index = _index_nodes(nodes)
        successors = _successors(shaped(_EDGES, document[key], key), key, index)
        ops = [_op(identity, row, i) for i, (identity, row) in enumerate(zip(index, nodes, strict=True))]
        if stored is None:
            tensors, places = _node_tensors(nodes, successors)
        else:
            tensors, places = _stored_tensors(stored, successors)
        ends = shaped(_OWN_ATTRIBUTES, attributes, "graph") if stored is not None else {}
        read = {key: _read_rows(ends.get(key) or {}) for key in ("weights", "inputs")}
        states = _state_rows(ends.get("states") or {})
        unit = time_unit or shaped(text, attributes.get("time_unit", "1"), "graph", "time_unit")
        try:
            return CostGraph.build(
                name=attributes.get("name") or name,
                time_unit=unit,
                ops=ops,
                tensors=tensors,
                **read,
                results=ends.get("results") or (),
                states=states,
                metadata=plain_metadata(attributes.get("metadata", {})),
            )
        except InputError as error:
            raise _in_node_link_terms(error, places, {**read, "states": states}) from None


def _check_directed(document: Mapping[str, Any]) -> None:
    if document.get("directed") is not True:
        problem = "the graph is not directed" if "directed" in document else "missing key 'directed'"
        where = "/directed" if "directed" in document else "/"
        raise InputError(problem, where=where, remedy='a computation graph needs "directed": true')


def _index_nodes(nodes: list[Any]) -> dict[str, int]:
    index: dict[str, int] = {}
    for i, row in enumerate(nodes):
        first = index.setdefault(str(row["id"]), i)
        if first != i:
            problem = f"duplicate id {str(row['id'])!r}, first used at /nodes/{first}"
            raise InputError(problem, where=pointer("nodes", i, "id"))
    return index


def _successors(edges: list[Any], key: str, index: Mapping[str, int]) -> dict[str, dict[str, None]]:
    """Return the successors of each node, without repetition and in file order."""
    successors: dict[str, dict[str, None]] = {identity: {} for identity in index}
    for e, row in enumerate(edges):
        producer, consumer = str(row["source"]), str(row["target"])
        for end, identity in (("source", producer), ("target", consumer)):
            if identity not in index:
                raise InputError(f"no node has the id {identity!r}", where=pointer(key, e, end))
        if producer == consumer:
            raise InputError(f"the edge leads from node {producer!r} to itself (self-loop)", where=pointer(key, e))
        successors[producer][consumer] = None
    return successors


def _size(row: Mapping[str, Any], keys: tuple[str, str], *path: str | int) -> int | None:
    given = [row[key] for key in keys if row.get(key) is not None]
    if len(given) > 1 and given[0] != given[1]:
        raise InputError(f"{keys[0]} and {keys[1]} differ", where=pointer(*path), remedy="give one of them")
    return given[0] if given else None


def _op(identity: str, row: Mapping[str, Any], i: int) -> Op:
    if "work" not in row:
        raise InputError("missing key 'work'", where=pointer("nodes", i), remedy="give each node its cost as work")
    return Op(identity, row["work"], row.get("kind", ""), _size(row, _PARAM_KEYS, "nodes", i) or 0)


def _node_tensors(nodes: list[Any], successors: Mapping[str, Mapping[str, None]]) -> tuple[list[Tensor], list[str]]:
    """Return one tensor per node that has a use or a size, and the place of each."""
    tensors, places = [], []
    for i, (identity, row) in enumerate(zip(successors, nodes, strict=True)):
        size, transfer = _size(row, _SIZE_KEYS, "nodes", i), row.get("transfer")
        if successors[identity] or size is not None or transfer is not None:
            tensors.append(Tensor(identity, identity, tuple(successors[identity]), size, transfer))
            places.append(f"/nodes/{i}")
    return tensors, places


def _stored_tensors(
    stored: Mapping[str, Any], successors: Mapping[str, Mapping[str, None]]
) -> tuple[list[Tensor], list[str]]:
    """Return the tensors that the file lists by itself, which must be what its edges say, and the place of each."""
    tensors, places = [], []
    uncovered = {(u, v): None for u, consumers in successors.items() for v in consumers}
    for name, row in stored.items():
        where = pointer("graph", "tensors", name)
        producer, consumers = str(row["producer"]), tuple(map(str, row["consumers"]))
        if producer not in successors:
            raise InputError(f"no node has the id {producer!r}", where=f"{where}/producer")
        for c, consumer in enumerate(consumers):
            if consumer not in successors:
                raise InputError(f"no node has the id {consumer!r}", where=f"{where}/consumers/{c}")
            if consumer not in successors[producer]:
                raise InputError(f"there is no edge from {producer!r} to {consumer!r}", where=where)
            uncovered.pop((producer, consumer), None)
        tensors.append(Tensor(name, producer, consumers, row.get("bytes"), row.get("transfer")))
        places.append(where)
    if uncovered:
        producer, consumer = next(iter(uncovered))
        raise InputError(f"no tensor flows along the edge from {producer!r} to {consumer!r}", where="/graph/tensors")
    return tensors, places


def _read_rows(rows: Mapping[str, Any]) -> list[Weight]:
    return [Weight(name, row["bytes"], list(map(str, row["readers"]))) for name, row in rows.items()]


def _state_rows(rows: Mapping[str, Any]) -> list[State]:
    return [State(name, **{**row, "readers": list(map(str, row["readers"]))}) for name, row in rows.items()]


def _in_node_link_terms(error: InputError, places: list[str], read: Mapping[str, Sequence[Any]]) -> InputError:
    """Translate a JSON pointer into the native format to one into this format."""
    where, remedy = error.where, error.remedy
    if match := _BUILD_POINTER.fullmatch(where or ""):
        what, number, rest = match[1], int(match[2]), match[3]
        if what in read:
            where = pointer("graph", what, read[what][number].name) + rest
        else:
            place = pointer("nodes", number) if what == "ops" else places[number]
            where = place + ("/id" if rest == "/name" else rest)
        if "time unit" in error.problem:
            remedy = 'put "time_unit": "ms" (or ps, ns, us, s) into "graph", or give transfer times'
        elif "no cost" in error.problem and where.startswith("/nodes/"):
            remedy = "give its node size_out or transfer"
    elif (where or "").startswith(("/results", "/weights", "/inputs", "/states")):
        where = f"/graph{where}"
    elif where == "/tensors":
        where = "/edges"
    elif where == "/time_unit":
        where = "/graph/time_unit"
    elif where == "/ops":
        where = "/nodes"
    return InputError(error.problem, source=error.source, where=where, remedy=remedy)


def ends_of(graph: CostGraph) -> dict[str, Any]:
    """Return weights, inputs, results and states of a graph as attributes of it, where there are any."""
    weights, inputs = graph.weights.by_name(graph.op_names), graph.inputs.by_name(graph.op_names)
    states = graph.states.by_name(graph.op_names)
    found = {"weights": weights, "inputs": inputs, "results": graph.result_names, "states": states}
    return {key: rows for key, rows in found.items() if rows}


def write_node_link(graph: CostGraph) -> str:
    """Return the text of a node-link file that ``networkx.node_link_graph`` reads, one node or edge per line.

    Its nodes, edges and graph attributes are those of :meth:`CostGraph.to_networkx`; tensors that go to several
    ops and ops with several tensors stay what they are, and costs keep all their digits.
    """
    return _text(graph, None)


def write_node_link_stages(plan: Plan) -> str:
    """Return the same with the ``stage`` and the ``color`` of every node; reading it gives the graph without them."""
    return _text(plan.graph, plan.partition.assignment)


def _text(graph: CostGraph, assignment: Int32Array | None) -> str:
    edges: dict[tuple[str, str], list[str]] = {}
    tensors: dict[str, dict[str, Any]] = {}
    for t, tensor in enumerate(graph.tensor_names):
        producer = graph.op_names[graph.tensor_producer[t]]
        consumers = [graph.op_names[v] for v in graph.tensor_consumers(t).tolist()]
        size, transfer = int(graph.tensor_bytes[t]), graph.transfer[t]
        tensors[tensor] = {"producer": producer, "consumers": consumers}
        tensors[tensor] |= {} if size == UNKNOWN_BYTES else {"bytes": size}
        tensors[tensor] |= {} if transfer is None else {"transfer": transfer}
        for consumer in consumers:
            edges.setdefault((producer, consumer), []).append(tensor)
    columns = zip(graph.op_names, graph.work, graph.op_kinds, graph.param_bytes.tolist(), strict=True)
    nodes: list[dict[str, Any]] = [{"id": op, "work": w, "kind": kind, "param_bytes": b} for op, w, kind, b in columns]
    for node, stage in zip(nodes, () if assignment is None else assignment.tolist(), strict=assignment is not None):
        node |= {"stage": stage, "color": stage_colour(stage)}
    document = {
        "directed": True,
        "multigraph": False,
        "graph": {
            "name": graph.name,
            "time_unit": graph.time_unit,
            "metadata": dict(graph.metadata),
            "tensors": tensors,
            **ends_of(graph),
        },
        "nodes": nodes,
        "edges": [{"source": u, "target": v, "tensors": flow} for (u, v), flow in edges.items()],
    }
    return dump_lines(document, _ROWS) + "\n"
