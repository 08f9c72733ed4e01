"""Stages as custom node data of Google AI Edge Model Explorer: a name and a colour for each node of a model.

The file is what its button *Add node data* takes: graph id → ``results``, and node id → ``value``, ``bgColor`` and
``textColor``. Node ids are those of the adapter that reads the model. For ONNX (the adapter ``model-explorer-onnx``)
that is the node's name, or ``<node_7>`` for the eighth node where it has none; for exported PyTorch programs (built in)
the name of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.formats.graphs.stage_colours import stage_colour
from mtpp.formats.io.json_text import dump_json
from mtpp.inference.plan import Plan

if TYPE_CHECKING:
    from mtpp.formats.onnx.reader import Reading

PROGRAM_GRAPH = "graph"
"""Id that Model Explorer gives the graph of an exported program."""

_UNNAMED_GRAPH = "<main>"
_TEXT = "#14181d"


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
            value = {"value": f"stage {stage}", "bgColor": stage_colour(stage), "textColor": _TEXT}
            results[node_ids[name]] = value
    data = {"name": f"stages of {plan.graph.name}", "results": results, "showExpandedSummaryOnGroupNode": True}
    return dump_json({graph_id: data})


def onnx_nodes(reading: Reading, *, inlined: bool) -> tuple[str, dict[str, str]]:
    """Return the id of an ONNX model's graph, and that of the node of each op by its name.

    Parameters
    ----------
    inlined
        Whether local functions were replaced by their bodies, whose nodes the adapter shows in graphs of their own.

    Raises
    ------
    InputError
        If that leaves no node to be told by its name.
    """
    graph = reading.model.graph
    ids: dict[str, str] = {}
    for name, position in zip(reading.graph.op_names, reading.positions, strict=True):
        own = graph.node[position].name
        if own or not inlined:
            ids[name] = own or f"<node_{position}>"
    if not ids:
        raise InputError("its nodes are in local functions and have no names", remedy="export it without functions")
    return graph.name or _UNNAMED_GRAPH, ids
