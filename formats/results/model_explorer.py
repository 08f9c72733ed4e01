"""Stages as custom node data of Google AI Edge Model Explorer: a name and a colour for each node of a model.

The file is what its button *Add node data* takes: graph id → ``results``, and node id → ``value``, ``bgColor`` and
``textColor``. Node ids are those of the adapter that reads the model. For ONNX (the adapter ``model-explorer-onnx``,
0.4) that is the node's name; nodes without one, and those whose name another node has, get ``node``, ``node_1`` and so
on. For exported PyTorch programs (built in) it is the name of the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mtpp.colours import stage_colour, text_on
from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_json
from mtpp.inference.plan import Plan

if TYPE_CHECKING:
    from onnx import GraphProto

    from mtpp.formats.onnx.reader import Reading

PROGRAM_GRAPH = "graph"
"""Id that Model Explorer gives the graph of an exported program."""

_UNNAMED_GRAPH = "<main>"


def write_stages(plan: Plan) -> str:
    """Return the text of a file whose nodes are called as the ops of the plan's graph are."""
    return write_model_explorer(plan, PROGRAM_GRAPH, {name: name for name in plan.graph.op_names})


def write_model_explorer(plan: Plan, graph_id: str, node_ids: Mapping[str, str]) -> str:
    """Return the text of the file.

    Parameters
    ----------
    node_ids
        Id of the node of each op, by its name. Nodes that are no op, constants and what is folded into them, have no
        stage.

    Notes
    -----
    O(n).
    """
    results = {}
    for name, stage in zip(plan.graph.op_names, plan.partition.assignment.tolist(), strict=True):
        if name in node_ids:
            fill = stage_colour(stage)
            results[node_ids[name]] = {"value": f"stage {stage}", "bgColor": fill, "textColor": text_on(fill)}
    data = {"name": f"stages of {plan.graph.name}", "results": results, "showExpandedSummaryOnGroupNode": True}
    return dump_json({graph_id: data})


def onnx_nodes(reading: Reading, *, inlined: bool) -> tuple[str, dict[str, str]]:
    """Return the id of an ONNX model's graph, and that of the node of each op by its name.

    Parameters
    ----------
    inlined
        Whether local functions were replaced by their bodies, whose nodes the adapter shows in graphs of their own.
    """
    graph = reading.model.graph
    given = _unique_names(graph, Counter())
    ids: dict[str, str] = {}
    for name, position in zip(reading.graph.op_names, reading.positions, strict=True):
        own = graph.node[position].name
        if own or not inlined:
            ids[name] = own if inlined else given[position]
    if not ids:
        raise InputError("its nodes are in local functions and have no names", remedy="export it without functions")
    return graph.name or _UNNAMED_GRAPH, ids


def _unique_names(graph: GraphProto, numbers: Counter[str]) -> list[str]:
    """Return the name that the adapter knows each node by: the graph's own, made unique.

    Parameters
    ----------
    numbers
        Last number given to each name; those of branches and loop bodies count along, though each is a scope of names.
    """
    taken: set[str] = set()
    names = []
    for node in graph.node:
        wanted = name = node.name or "node"
        while name in taken:
            numbers[wanted] += 1
            name = f"{wanted}_{numbers[wanted]}"
        taken.add(name)
        names.append(name)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                _unique_names(inner, numbers)
    return names
