"""Reader of GraphML: what :mod:`graphml` writes, and graphs of other programs whose nodes carry their costs.

Without ``tensor`` on its edges, a file means what node-link data mean (:mod:`node_link`): nodes with ``work``, and one
tensor per node with its ``size_out``, ``bytes`` or ``transfer`` along all edges that leave it. Other data, drawings
among them, are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from xml.parsers import expat

from mtpp.errors import InputError
from mtpp.formats.graphs.graphml import NAMESPACE
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

_REFUSED = frozenset(("hyperedge", "port", "locator"))
_SEPARATOR = " "


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
        for key in ("weights", "inputs", "results", "states"):
            if key in graph.data:
                attributes[key] = _json(graph.data[key], key)
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


@dataclass
class Element:
    """A node, an edge, or the graph: its attributes in XML, its data by the name of their key, and its line."""

    line: int = 0
    attributes: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)


@dataclass
class Elements:
    """What a file holds, in file order."""

    graph: Element | None = None
    nodes: list[Element] = field(default_factory=list)
    edges: list[Element] = field(default_factory=list)


@dataclass
class _Key:
    element: str
    name: str
    default: str | None = None


def graphml_elements(data: bytes) -> Elements:
    """Parse a GraphML file."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    handler = _Handler(parser)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"no well-formed XML: {expat.ErrorString(error.code)}",
            where=f"line {error.lineno}, column {error.offset + 1}",
        ) from None
    except InputError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        raise InputError(f"no readable XML: {error}", remedy="save it as UTF-8") from None
    if handler.elements.graph is None:
        raise InputError("no <graph> in it")
    return handler.elements


class _Handler:
    """Takes the events of the parser; only elements in GraphML's namespace, or in none, count."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self.elements = Elements()
        self._parser = parser
        self._keys: dict[str, _Key] = {}
        self._last_key: _Key | None = None
        self._open: list[Element] = []
        self._target: tuple[Element, str] | _Key | None = None
        self._text: list[str] = []
        self._inside = 0
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype

    def _fault(self, problem: str, remedy: str | None = None) -> InputError:
        return InputError(problem, where=f"line {self._parser.CurrentLineNumber}", remedy=remedy)

    def _doctype(self, *_: Any) -> None:
        raise self._fault("a document type (<!DOCTYPE>), whose entities might be anything", "remove it")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._target is not None:  # a drawing, inside the data of a node
            self._inside += 1
            return
        namespace, _, element = tag.rpartition(_SEPARATOR)
        if namespace not in ("", NAMESPACE):
            return
        if element == "data":
            self._start_data(attributes)
        elif element in ("node", "edge"):
            self._start_row(element, attributes)
        elif element == "graph":
            if self.elements.graph is not None:
                raise self._fault("a second graph, or a graph inside another", "give one flat graph")
            self.elements.graph = self._new(attributes)
            self._open.append(self.elements.graph)
        elif element == "key":
            identity = self._required(attributes, "id", element)
            self._last_key = _Key(attributes.get("for", "all"), attributes.get("attr.name", identity))
            self._keys[identity] = self._last_key
        elif element == "default":
            self._target, self._text = self._last_key, []
        elif element in _REFUSED:
            raise self._fault(f"a <{element}>", "write plain edges between nodes")

    def _new(self, attributes: dict[str, str]) -> Element:
        return Element(self._parser.CurrentLineNumber, attributes)

    def _start_row(self, element: str, attributes: dict[str, str]) -> None:
        for name in ("id",) if element == "node" else ("source", "target"):
            self._required(attributes, name, element)
        row = self._new(attributes)
        row.data = {
            key.name: key.default
            for key in self._keys.values()
            if key.default is not None and key.element in (element, "all")
        }
        (self.elements.nodes if element == "node" else self.elements.edges).append(row)
        self._open.append(row)

    def _start_data(self, attributes: dict[str, str]) -> None:
        identity = self._required(attributes, "key", "data")
        if identity not in self._keys:
            raise self._fault(f"no <key> has the id {identity[:60]!r}")
        self._text = []
        self._target = (self._open[-1] if self._open else Element(), self._keys[identity].name)

    def _required(self, attributes: dict[str, str], name: str, element: str) -> str:
        if name not in attributes:
            raise self._fault(f"<{element}> without {name}", "add it")
        return attributes[name]

    def _end(self, tag: str) -> None:
        if self._inside:
            self._inside -= 1
        elif isinstance(self._target, _Key):
            self._target.default = "".join(self._text)
            self._target = None
        elif self._target is not None:
            element, name = self._target
            element.data[name] = "".join(self._text)
            self._target = None
        elif tag.rpartition(_SEPARATOR)[2] in ("node", "edge", "graph") and self._open:
            self._open.pop()

    def _characters(self, text: str) -> None:
        if self._target is not None and not self._inside:
            self._text.append(text)
