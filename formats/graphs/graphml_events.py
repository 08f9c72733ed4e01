"""The elements of a GraphML file, picked out of its XML one by one; no document types, so no entities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from mtpp.errors import InputError
from mtpp.formats.graphs.graphml import NAMESPACE

_REFUSED = frozenset(("hyperedge", "port", "locator"))
_SEPARATOR = " "


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
