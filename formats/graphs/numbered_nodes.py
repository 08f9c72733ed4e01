"""Graphs in JSON whose nodes have whole numbers as ids and whose edges name them: what such formats share.

Two of the formats that are read are of this kind: ``{"nodes": [{"id": 7, …}], "edges": [{"sourceId": 7, "destId": 9,
…}]}``. What else nodes and edges carry is the business of each format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.document_shape import Path, Rule, array, record, refuse, text
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import kind_of, pointer

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


def whole_id(what: str) -> Rule:
    """Make the rule of an id, a whole number of 64 bits; *what* is what messages call it."""

    def check(value: Any, path: Path) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(f"{what} must be a whole number, not {kind_of(value)}", path)
        if abs(value) >= _LARGEST_ID:
            refuse(f"{what} must be a whole number, not one of more than 64 bits", path)

    return check


node_id = whole_id("a node's id")


def numbered_graph(
    node: tuple[dict[str, Rule], dict[str, Rule]], edge: Rule, others: dict[str, Rule] | None = None
) -> Rule:
    """Make the rule of a document; keys that it does not know are passed over.

    Parameters
    ----------
    node
        Keys of a node beside ``id`` and ``name``: those that it needs, and those that it may have.
    edge
        Of all of an edge but its ends.
    others
        Keys that the document may have.
    """

    def whole_edge(value: Any, path: Path) -> None:
        _ends(value, path)
        edge(value, path)

    nodes = record({"id": node_id, **node[0]}, {"name": text, **node[1]}, closed=False)
    return record({"nodes": array(nodes), "edges": array(whole_edge)}, others, closed=False)


_ends = record({"sourceId": node_id, "destId": node_id}, closed=False)


def read_nodes(document: Mapping[str, Any]) -> dict[int, NumberedNode]:
    """Return the nodes of a document that follows :func:`numbered_graph` by id, in file order."""
    nodes: dict[int, NumberedNode] = {}
    for i, row in enumerate(document["nodes"]):
        where, identity = pointer("nodes", i), row["id"]
        if identity in nodes:
            raise InputError(f"duplicate id {identity}, first used at {nodes[identity].where}", where=f"{where}/id")
        nodes[identity] = NumberedNode(identity, row.get("name") or f"node {identity}", row, where)
    if not nodes:
        raise InputError("the graph has no nodes", where="/nodes", remedy="give at least one")
    return nodes


def read_edges(document: Mapping[str, Any], nodes: Mapping[int, NumberedNode]) -> list[NumberedEdge]:
    """Return the edges, in file order."""
    edges: dict[tuple[int, int], NumberedEdge] = {}
    for e, row in enumerate(document["edges"]):
        where, source, target = pointer("edges", e), row["sourceId"], row["destId"]
        for key in ("sourceId", "destId"):
            if row[key] not in nodes:
                raise InputError(f"no node has the id {row[key]}", where=f"{where}/{key}")
        if source == target:
            raise InputError(f"the edge leads from node {source} to itself (self-loop)", where=where)
        if (source, target) in edges:
            first = edges[source, target].where
            raise InputError(f"duplicate edge from node {source} to node {target}, first at {first}", where=where)
        edges[source, target] = NumberedEdge(source, target, row, where)
    return list(edges.values())
