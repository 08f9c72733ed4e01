"""Reader of GraphML: what :mod:`graphml` writes, and graphs of other programs whose nodes carry their costs.

Without ``tensor`` on its edges, a file means what node-link data mean (:mod:`node_link`): nodes with ``work``, and one
tensor per node with its ``size_out``, ``bytes`` or ``transfer`` along all edges that leave it. Other data, drawings
among them, are passed over.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs.graphml_events import Element, Elements, graphml_elements
from mtpp.formats.graphs.node_link import graph_from_node_link
from mtpp.formats.io.json_shape import attributed, kind_of
from mtpp.formats.io.json_text import no_garbage_collection, parse_json
from mtpp.inference.graph import CostGraph
from mtpp.units import Exact, exact_decimal

_NODE_NUMBERS = ("work", "param_bytes", "size_param", "size_out", "bytes", "transfer")
_EDGE_NUMBERS = ("bytes", "transfer")
_LONGEST_SHOWN = 60
_PLAIN = re.compile("[0-9]{1,18}")
_POINTER = re.compile(r"/(nodes|edges)/(\d+)(.*)", re.DOTALL)
_NODE = re.compile(r"(?<=first used at )/nodes/(\d+)")
_TENSOR_POINTER = "/graph/tensors/"
_ROOT = re.compile(rb"\s*(?>(?:<(?:\?.*?\?|!--.*?--|!DOCTYPE[^>\[]*)>\s*)*)<(?:[\w.-]+:)?graphml[\s/>]", re.DOTALL)
_BOM = b"\xef\xbb\xbf"


def looks_like_graphml(data: bytes) -> bool:
    """Return whether the first element of an XML document is ``graphml``; cheap."""
    head = data[:4096].removeprefix(_BOM)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16
        head = head[2:].replace(b"\0", b"")
    return _ROOT.match(head) is not None


def read_graphml(data: bytes, source: str, *, name: str = "graph", time_unit: str | None = None) -> CostGraph:
    """Read a GraphML file.

    Parameters
    ----------
    source
        What messages call the file.
    name
        Name of a graph that brings none.
    time_unit
        Unit of work and transfer; by default the graph's own, else ``"1"``.

    Raises
    ------
    InputError
        If it is no XML, has a document type (whose entities may grow without limit, or be other files), or is no
        directed graph with costs; *where* names the line.

    Notes
    -----
    O(length) time and memory.
    """
    with attributed(source), no_garbage_collection():
        elements = graphml_elements(data)
        document = _node_link(elements)
        try:
            return graph_from_node_link(document, source, name=name, time_unit=time_unit)
        except InputError as error:
            raise _in_graphml_terms(error, elements) from None


def _node_link(elements: Elements) -> dict[str, Any]:
    """Return what the elements say as a node-link document."""
    graph = elements.graph or Element()
    if graph.attributes.get("edgedefault") != "directed":
        raise InputError(
            "the graph is not directed",
            where=f"line {graph.line}",
            remedy='a computation graph is edgedefault="directed"',
        )
    attributes: dict[str, Any] = {key: graph.data[key] for key in ("name", "time_unit") if key in graph.data}
    if "metadata" in graph.data:
        attributes["metadata"] = _json(graph.data["metadata"], "metadata")
    named = ["tensor" in edge.data for edge in elements.edges]
    if any(named) or "unread" in graph.data:
        if not all(named):
            line = elements.edges[named.index(False)].line
            raise InputError("an edge without tensor, though others have one", where=f"line {line}")
        attributes["tensors"] = _tensors(elements.edges, graph.data.get("unread"))
    return {
        "directed": True,
        "graph": attributes,
        "nodes": [_node(element) for element in elements.nodes],
        "edges": [_edge(element) for element in elements.edges],
    }


def _node(element: Element) -> dict[str, Any]:
    row: dict[str, Any] = {"id": element.attributes["id"], "kind": element.data.get("kind", "")}
    return row | _numbers(element, _NODE_NUMBERS)


def _edge(element: Element) -> dict[str, Any]:
    if element.attributes.get("directed") == "false":
        raise InputError("the edge is not directed", where=f"line {element.line}")
    return {end: element.attributes[end] for end in ("source", "target")}


def _numbers(element: Element, names: tuple[str, ...]) -> dict[str, Exact]:
    found: dict[str, Exact] = {}
    for name in names:
        if text := element.data.get(name, "").strip():
            try:
                found[name] = int(text) if _PLAIN.fullmatch(text) else exact_decimal(text)
            except ValueError as error:
                raise InputError(f"{name}: {error}", where=f"line {element.line}") from None
    return found


def _tensors(edges: list[Element], unread: str | None) -> dict[str, dict[str, Any]]:
    """Return the tensors by name: those of edges in the order of their first edges, those without at their places."""
    tensors: dict[str, dict[str, Any]] = {}
    first: dict[str, Element] = {}
    for edge in edges:
        name, producer = edge.data["tensor"], edge.attributes["source"]
        if name not in tensors:
            tensors[name] = {"producer": producer, "consumers": [], **_numbers(edge, _EDGE_NUMBERS)}
            first[name] = edge
        row = tensors[name]
        if row["producer"] != producer or (edge.data != first[name].data and _differ(edge, first[name])):
            problem = f"tensor {name[:_LONGEST_SHOWN]!r} has another source, bytes or transfer on another edge"
            raise InputError(problem, where=f"line {edge.line}", remedy="give all edges of a tensor the same")
        row["consumers"].append(edge.attributes["target"])
    if unread is None:
        return tensors
    placed: dict[str, dict[str, Any]] = {}
    read = iter(tensors.items())
    for place, name, producer, size, transfer in sorted(_unread_rows(unread), key=lambda row: row[0]):
        placed.update(islice(read, min(max(0, place - len(placed)), len(tensors))))
        if name in tensors or name in placed:
            raise InputError(f"tensor {name[:_LONGEST_SHOWN]!r} is listed twice, or an op reads it", where="unread")
        costs = {"bytes": size, "transfer": transfer}
        given = {key: value for key, value in costs.items() if value is not None}
        placed[name] = {"producer": producer, "consumers": [], **given}
    return placed | dict(read)


def _differ(one: Element, other: Element) -> bool:
    return _numbers(one, _EDGE_NUMBERS) != _numbers(other, _EDGE_NUMBERS)


def _unread_rows(text: str) -> list[tuple[int, str, str, Any, Any]]:
    rows = _json(text, "unread")
    if not isinstance(rows, list):
        raise InputError(f"must be an array, not {kind_of(rows)}", where="unread")
    for row in rows:
        match row:
            case [int(place), str(), str(), _, _] if place >= 0:
                continue
            case _:
                problem = "a row is not [place in the list of tensors, name, producer, bytes, transfer]"
                raise InputError(problem, where="unread")
    return [tuple(row) for row in rows]


def _json(text: str, where: str) -> Any:
    try:
        return parse_json(text.encode(), "")
    except InputError as error:
        place = ", ".join(part for part in (where, error.where) if part)
        raise InputError(error.problem, where=place, remedy=error.remedy) from None


def _in_graphml_terms(error: InputError, elements: Elements) -> InputError:
    """Translate a pointer into node-link data to a line of the file."""
    where, remedy = error.where or "", error.remedy
    problem = _NODE.sub(lambda found: f"line {elements.nodes[int(found[1])].line}", error.problem)
    if "time unit" in problem:
        remedy = "give the graph the data time_unit, one of ps, ns, us, ms, s"
    if match := _POINTER.fullmatch(where):
        rows = elements.nodes if match[1] == "nodes" else elements.edges
        where = f"line {rows[int(match[2])].line}{match[3].replace('/', ', ', 1)}"
    elif where.startswith(_TENSOR_POINTER):
        name, _, key = where.removeprefix(_TENSOR_POINTER).partition("/")
        name = name.replace("~1", "/").replace("~0", "~")
        where = f"tensor {name[:_LONGEST_SHOWN]!r}" + (f", {key}" if key else "")
    else:
        where = where.removeprefix("/graph").strip("/")
    return InputError(problem, source=error.source, where=where or None, remedy=remedy)
