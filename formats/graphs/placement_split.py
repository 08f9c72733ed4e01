"""Splits of a placement workload over devices: the human experts' ones, and what the authors' programs print.

Format (github.com/msr-fiddle/dnn-partitioning, human-experts)::

    {"fpgas": [{"load": -1, "nodes": [1, 2, 4]}, {"load": -1, "nodes": [3]}],
     "cpus": [{"load": 0.0, "nodes": []}], "maxLoad": -1}

``nodes`` are ids of the workload's nodes. Each accelerator is a stage; which comes first is for the data flow to say.
The loads are passed over: this program computes its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.document_shape import Path, any_array, array, record, refuse
from mtpp.errors import InputError
from mtpp.formats.graphs.numbered_nodes import node_id
from mtpp.formats.io.json_shape import attributed, shaped, shown
from mtpp.inference.graph import CostGraph


def _empty(value: Any, path: Path) -> None:
    any_array(value, path)
    if value:
        refuse("nodes on a CPU", path, "every stage is of one kind here: place the nodes on an accelerator")


_SPLIT = record(
    {"fpgas": array(record({"nodes": array(node_id)}, closed=False))},
    {"cpus": array(record({}, {"nodes": _empty}, closed=False))},
    closed=False,
)


def looks_like_split(document: Any) -> bool:
    """Return whether a JSON document is such a split."""
    return isinstance(document, dict) and isinstance(document.get("fpgas"), list)


def stages_of_split(document: Any, source: str, graph: CostGraph) -> dict[str, int]:
    """Return the stage of every op that the split places, by name; the numbers are those of the accelerators.

    Parameters
    ----------
    graph
        Read from the workload (or converted from it), so that it knows which nodes its ops are made of.

    Raises
    ------
    InputError
        If the graph has not been made from nodes with ids, if a node is none of the workload's, stands on a CPU or in
        two places, or if nodes that share an op are apart; *where* is a JSON pointer.
    """
    with attributed(source):
        ops, elsewhere = _nodes_of(graph)
        placed: dict[int, tuple[int, str]] = {}
        for device, row in enumerate(shaped(_SPLIT, document)["fpgas"]):
            for i, identity in enumerate(row["nodes"]):
                where = f"/fpgas/{device}/nodes/{i}"
                if identity in placed:
                    first = placed[identity][1]
                    raise InputError(f"node {identity} is placed twice, first at {first}", where=where)
                if identity not in ops and identity not in elsewhere:
                    raise InputError(f"the model has no node {identity}", where=where)
                placed[identity] = (device, where)
        stages: dict[str, int] = {}
        first_of: dict[str, int] = {}
        for identity, (device, where) in placed.items():
            op = ops.get(identity)
            if op is None:
                continue
            if stages.setdefault(op, device) != device:
                problem = (
                    f"node {identity} is on accelerator {device} and node {first_of[op]} on {stages[op]}, "
                    f"but both belong to op {shown(op)}"
                )
                raise InputError(problem, where=where, remedy="nodes of one colour class share a device")
            first_of.setdefault(op, identity)
        return stages


def _nodes_of(graph: CostGraph) -> tuple[dict[int, str], set[int]]:
    """Return the op of each node, and the nodes that are in none."""
    ops = ops_of_nodes(graph)
    if ops is None:
        raise InputError(
            "a split by ids of nodes, but the model does not say which nodes its ops are made of",
            remedy="give the placement workload as the model",
        )
    elsewhere = {identity for key in ("parameters", "dropped") for identity in _ids(graph.metadata.get(key))}
    return ops, elsewhere


def ops_of_nodes(graph: CostGraph) -> dict[int, str] | None:
    """Return the name of the op that each node of a graph's file is in; None if the graph does not say."""
    table = graph.metadata.get("nodes")
    if not isinstance(table, Mapping) or not set(table) <= set(graph.op_names):
        return None
    return {identity: op for op, ids in table.items() for identity in _ids(ids)}


def _ids(value: Any) -> list[int]:
    """Return the ids in a list that may come from anybody's file."""
    return [identity for identity in value if isinstance(identity, int)] if isinstance(value, list) else []
