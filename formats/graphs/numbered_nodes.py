"""Graphs in JSON whose nodes have whole numbers as ids and whose edges name them: what such formats share.

Two of the formats that are read are of this kind: ``{"nodes": [{"id": 7, …}], "edges": [{"sourceId": 7, "destId": 9,
…}]}``. What else nodes and edges carry is the business of each format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import kind_of, pointer, require_list, require_object, require_text

_LARGEST_ID = 2**63


@dataclass(frozen=True)
class NumberedNode:
    """One node: its place in the file and what stands there.

    Attributes
    ----------
    name
        What the file calls it, else ``node 7``; several may have one name.
    """

    id: int
    name: str
    row: Mapping[str, Any]
    where: str


@dataclass(frozen=True)
class NumberedEdge:
    """One edge between two nodes, by id."""

    source: int
    target: int
    row: Mapping[str, Any]
    where: str


def looks_like(document: Any, node_key: str, top_keys: Collection[str]) -> bool:
    """Return whether a document has nodes, and either one of *top_keys* beside them or *node_key* in the first."""
    if not isinstance(document, dict) or "nodes" not in document:
        return False
    if any(key in document for key in top_keys):
        return True
    nodes = document["nodes"]
    first = nodes[0] if isinstance(nodes, list) and nodes else None
    return isinstance(first, dict) and node_key in first


def required(row: Mapping[str, Any], key: str, where: str) -> Any:
    """Return what a row has under *key*.

    Raises
    ------
    InputError
        If it has nothing there.
    """
    if key not in row:
        raise InputError(f"missing key {key!r}", where=where or "/", remedy="add it")
    return row[key]


def node_id(value: Any, where: str, what: str = "a node's id") -> int:
    """Return an id; *what* is what messages call it.

    Raises
    ------
    InputError
        If it is no whole number of 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _LARGEST_ID:
        found = "one of more than 64 bits" if isinstance(value, int) and not isinstance(value, bool) else kind_of(value)
        raise InputError(f"{what} must be a whole number, not {found}", where=where)
    return value


def read_nodes(document: Mapping[str, Any]) -> dict[int, NumberedNode]:
    """Return the nodes by id, in file order.

    Raises
    ------
    InputError
        If there are none, or if one has no id or that of another; *where* is a JSON pointer.
    """
    nodes: dict[int, NumberedNode] = {}
    for i, row in enumerate(require_list(required(document, "nodes", ""), "/nodes")):
        where = pointer("nodes", i)
        identity = node_id(required(require_object(row, where), "id", where), f"{where}/id")
        if identity in nodes:
            raise InputError(f"duplicate id {identity}, first used at {nodes[identity].where}", where=f"{where}/id")
        name = require_text(row.get("name", ""), f"{where}/name") or f"node {identity}"
        nodes[identity] = NumberedNode(identity, name, row, where)
    if not nodes:
        raise InputError("the graph has no nodes", where="/nodes", remedy="give at least one")
    return nodes


def read_edges(document: Mapping[str, Any], nodes: Mapping[int, NumberedNode]) -> list[NumberedEdge]:
    """Return the edges, in file order.

    Raises
    ------
    InputError
        If one leads from or to no node, from a node to itself, or where another one leads; *where* is a JSON pointer.
    """
    edges: dict[tuple[int, int], NumberedEdge] = {}
    for e, row in enumerate(require_list(required(document, "edges", ""), "/edges")):
        where = pointer("edges", e)
        require_object(row, where)
        ends = []
        for key in ("sourceId", "destId"):
            identity = node_id(required(row, key, where), f"{where}/{key}")
            if identity not in nodes:
                raise InputError(f"no node has the id {identity}", where=f"{where}/{key}")
            ends.append(identity)
        source, target = ends
        if source == target:
            raise InputError(f"the edge leads from node {source} to itself (self-loop)", where=where)
        if (source, target) in edges:
            first = edges[source, target].where
            raise InputError(f"duplicate edge from node {source} to node {target}, first at {first}", where=where)
        edges[source, target] = NumberedEdge(source, target, row, where)
    return list(edges.values())
