"""Workloads of the device placement algorithms of Tarnawski et al. (NeurIPS 2020), as JSON.

Format (github.com/msr-fiddle/dnn-partitioning, README)::

    {"maxSizePerFPGA": bytes, "maxFPGAs": 6, "maxCPUs": 1,
     "nodes": [{"id": 7, "name": "MatMul_7", "supportedOnFpga": 1, "cpuLatency": 6.9, "fpgaLatency": 0.7,
                "isBackwardNode": 0, "colorClass": 3, "size": bytes}, …],
     "edges": [{"sourceId": 7, "destId": 9, "cost": 0.4, "size": bytes}, …]}

``name``, ``colorClass`` and the ``size`` of an edge are optional, other keys are passed over. "FPGA" stands for any
accelerator. The files do not name their unit of time; those of the authors are in milliseconds.

What becomes of it
------------------
* An op's work is the ``fpgaLatency``.
* All out-edges of a node carry the same tensor, so each of them has the node's output as one tensor with the edge's
  ``size``; fractions of a byte are rounded up. Out-edges of different sizes are different tensors. The system's
  bandwidth says what a transfer takes: ``cost`` is in seconds in the authors' layer graphs, in milliseconds in their
  operator graphs, both for 2 GiB/s, and is used only where edges have no ``size``.
* Nodes of one ``colorClass`` have to be on one device: they are one op. Where that makes ops wait for each other, they
  have to be on one device as well, and are one op.
* Forward nodes without inputs, time and purpose but to hold bytes are parameters: weights and constants. An op that
  reads one holds it, and it is never transferred.
* ``size`` of a node is "memory taken by this node on an accelerator". It becomes the op's parameters, those that it
  reads included: the format has no other word for memory, and no peak.
* Nodes with ``isBackwardNode`` are the backward pass of a training workload. They are left out, or, with *backward*,
  share an op with the forward nodes of their class.

``metadata["nodes"]`` lists the ids of the nodes in each op, ``metadata["parameters"]`` those that were folded and
``metadata["dropped"]`` those left out: :mod:`mtpp.formats.graphs.placement_split` needs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.document_shape import Path, nullable, refuse
from mtpp.errors import InputError
from mtpp.formats.graphs.numbered_nodes import (
    NumberedEdge,
    NumberedNode,
    looks_like,
    numbered_graph,
    read_edges,
    read_nodes,
    whole_id,
)
from mtpp.formats.io.json_shape import attributed, cost_number, kind_of, shaped, size_number, whole_bytes
from mtpp.formats.modelled.naming import distinct_names, untaken
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.topological import cycle_text, find_cycle, first_come_order
from mtpp.units import Exact

TIME_UNIT = "ms"


@dataclass(frozen=True)
class _Node:
    id: int
    name: str
    work: Exact
    size: int
    colour: int | None
    backward: bool


@dataclass(frozen=True)
class _Edge:
    source: int
    target: int
    size: int | None
    cost: Exact | None


def _flag(value: Any, path: Path) -> None:
    if value not in (0, 1):  # true and false are
        refuse(f"must be true or false, or 0 or 1, not {kind_of(value)}", path)


def _size_or_cost(value: dict[str, Any], path: Path) -> None:
    if value.get("size") is not None:
        size_number(value["size"], (*path, "size"))
    elif "cost" in value:
        cost_number(value["cost"], (*path, "cost"))
    else:
        refuse("the edge has neither a size nor a cost", path, "give one of them")


_WORKLOAD = numbered_graph(
    (
        {"fpgaLatency": cost_number},
        {"size": size_number, "colorClass": nullable(whole_id("a colour class")), "isBackwardNode": _flag},
    ),
    _size_or_cost,
)


def looks_like_placement(document: Any) -> bool:
    """Return whether a JSON document is a workload of this kind."""
    return looks_like(document, "fpgaLatency", ("maxFPGAs", "maxSizePerFPGA"))


def graph_from_placement(
    document: Any, source: str, *, name: str = "graph", time_unit: str | None = None, backward: bool = False
) -> CostGraph:
    """Make a graph of ops from a parsed document, as the module says.

    Parameters
    ----------
    time_unit
        Unit of the file's times; by default :data:`TIME_UNIT`.
    backward
        Whether the backward nodes of a training workload count.

    Raises
    ------
    InputError
        With a JSON pointer into this document.

    Notes
    -----
    O(n + m) time, apart from sorting.
    """
    with attributed(source):
        shaped(_WORKLOAD, document)
        rows = read_nodes(document)
        edges = [_edge(edge) for edge in read_edges(document, rows)]
        names = distinct_names({identity: node.name for identity, node in rows.items()})
        nodes = {identity: _node(row, names[identity]) for identity, row in rows.items()}
        dropped = [] if backward else [node.id for node in nodes.values() if node.backward]
        kept = {identity: node for identity, node in nodes.items() if not node.backward or backward}
        if not kept:
            raise InputError("all nodes are backward nodes", where="/nodes", remedy="read them with ‹backward›")
        edges = [edge for edge in edges if edge.source in kept and edge.target in kept]
        _check_order(kept, edges)
        parameters = _parameters(kept, edges)
        data_edges = [edge for edge in edges if edge.source not in parameters]
        op_of = _merged(kept, data_edges, parameters)
        members = _members(kept, op_of)
        taken: set[str] = set()
        ops = {op: untaken(_op_name(ids, kept, parameters), taken) for op, ids in members.items()}
        held = _held_bytes(kept, edges, op_of, members, parameters)
        return CostGraph.build(
            name=name,
            time_unit=time_unit or TIME_UNIT,
            ops=[Op(ops[op], sum(kept[v].work for v in ids), "", held[op]) for op, ids in members.items()],
            tensors=_tensors(kept, data_edges, op_of, ops),
            metadata={
                "source_format": "placement",
                "nodes": {ops[op]: ids for op, ids in members.items()},
                "parameters": sorted(parameters),
                "dropped": dropped,
                "assumptions": _assumptions(rows, kept, edges, members, parameters, dropped),
            },
        )


def _node(node: NumberedNode, name: str) -> _Node:
    row = node.row
    backward = bool(row.get("isBackwardNode", False))
    return _Node(node.id, name, row["fpgaLatency"], whole_bytes(row.get("size", 0)), row.get("colorClass"), backward)


def _edge(edge: NumberedEdge) -> _Edge:
    size = edge.row.get("size")
    if size is not None:
        return _Edge(edge.source, edge.target, whole_bytes(size), None)
    return _Edge(edge.source, edge.target, None, edge.row["cost"])


def _check_order(nodes: Mapping[int, _Node], edges: Sequence[_Edge]) -> None:
    """Check that the file's own edges have no cycle, before merging hides it."""
    ids = list(nodes)
    position = {identity: i for i, identity in enumerate(ids)}
    pairs = [(position[edge.source], position[edge.target]) for edge in edges]
    order = first_come_order(len(ids), pairs)
    if len(order) < len(ids):
        cycle = [nodes[ids[i]].name for i in find_cycle(len(ids), pairs, order)]
        raise InputError(f"the graph has a cycle: {cycle_text(cycle)}", where="/edges")


def _parameters(nodes: Mapping[int, _Node], edges: Iterable[_Edge]) -> set[int]:
    """Return the forward nodes without inputs and time that hold bytes and are read."""
    fed = {edge.target for edge in edges}
    read = {edge.source for edge in edges}
    return {
        node.id
        for node in nodes.values()
        if node.id not in fed and node.id in read and not node.backward and not node.work and node.size
    }


def _merged(nodes: Mapping[int, _Node], data_edges: Sequence[_Edge], parameters: set[int]) -> dict[int, int]:
    """Return the op that each node goes into, numbered from 0 in file order; a parameter may go into none.

    Classes first, then ops that wait for each other.
    """
    group: dict[int, int] = {}
    of_colour: dict[int, int] = {}
    for i, node in enumerate(nodes.values()):
        group[node.id] = i if node.colour is None else of_colour.setdefault(node.colour, i)
    pairs = [(group[e.source], group[e.target]) for e in data_edges if group[e.source] != group[e.target]]
    if len(first_come_order(len(nodes), pairs)) < len(nodes):
        import networkx as nx

        quotient: nx.DiGraph = nx.DiGraph(pairs)
        joined = {v: min(ring) for ring in nx.strongly_connected_components(quotient) for v in ring}
        group = {identity: joined.get(i, i) for identity, i in group.items()}
    working = {group[identity] for identity in nodes if identity not in parameters}
    return {identity: i for identity, i in group.items() if i in working}


def _members(nodes: Mapping[int, _Node], op_of: Mapping[int, int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for identity in nodes:
        if identity in op_of:
            members[op_of[identity]].append(identity)
    return dict(members)


def _op_name(ids: Sequence[int], nodes: Mapping[int, _Node], parameters: set[int]) -> str:
    """Return the name of the node that takes the longest, and how many others are with it."""
    working = [identity for identity in ids if identity not in parameters]
    longest = max(working, key=lambda identity: nodes[identity].work)
    others = len(working) - 1
    return nodes[longest].name + (f" (+{others})" if others else "")


def _held_bytes(
    nodes: Mapping[int, _Node],
    edges: Iterable[_Edge],
    op_of: Mapping[int, int],
    members: Mapping[int, Sequence[int]],
    parameters: set[int],
) -> dict[int, int]:
    """Return the bytes that each op holds: of its nodes, and of the parameters that they read."""
    held = {op: set(ids) for op, ids in members.items()}
    for edge in edges:
        if edge.source in parameters and edge.target in op_of:
            held[op_of[edge.target]].add(edge.source)
    return {op: sum(nodes[identity].size for identity in ids) for op, ids in held.items()}


def _tensors(
    nodes: Mapping[int, _Node], edges: Iterable[_Edge], op_of: Mapping[int, int], ops: Mapping[int, str]
) -> list[Tensor]:
    readers: dict[tuple[int, int | None, Exact | None], dict[str, None]] = defaultdict(dict)
    for edge in edges:
        producer, consumer = op_of[edge.source], op_of[edge.target]
        if producer != consumer:
            readers[edge.source, edge.size, edge.cost][ops[consumer]] = None
    several: dict[int, int] = defaultdict(int)
    taken: set[str] = set()
    tensors = []
    for (identity, size, cost), consumers in readers.items():
        name = nodes[identity].name + (f":{several[identity]}" if several[identity] else "")
        several[identity] += 1
        tensors.append(Tensor(untaken(name, taken), ops[op_of[identity]], tuple(consumers), size, cost))
    return tensors


def _assumptions(
    rows: Mapping[int, NumberedNode],
    kept: Mapping[int, _Node],
    edges: Sequence[_Edge],
    members: Mapping[int, Sequence[int]],
    parameters: set[int],
    dropped: Sequence[int],
) -> list[str]:
    """Return what the reader's users should know, most important first."""
    texts = []
    if dropped:
        texts.append(f"{len(dropped)} backward nodes left out")
    if parameters:
        texts.append(f"{len(parameters)} weights and constants held by the ops that read them")
    merged = sum(len(ids) > 1 for ids in members.values())
    if merged:
        texts.append(f"{sum(map(len, members.values()))} nodes merged into {len(members)} ops, one per colour class")
    if any(edge.size is None for edge in edges):
        texts.append("edges without a size take their cost, whatever the bandwidth")
    elsewhere = sum(not rows[identity].row.get("supportedOnFpga", True) for identity in kept)
    if elsewhere:
        texts.append(f"{elsewhere} nodes that no accelerator supports are taken as if one did")
    return texts
