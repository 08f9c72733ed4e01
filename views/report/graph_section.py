"""The graph of a plan in the colours of its stages, from stages and modules down to ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.formats.graphs.stage_colours import stage_colour
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.units import format_bytes
from mtpp.views.report.graph_drawing import HEIGHT, graph_drawing
from mtpp.views.report.levels import MOST_BOXES, Level, first_shown, levels_of
from mtpp.views.report.page import GraphLevel, GraphView, Prose, Section
from mtpp.views.report.stated import StatedPlan

if TYPE_CHECKING:
    from mtpp.inference.instance import Instance

_MOST_NAMED = 20_000
"""Ops that the page can search; their names alone are a megabyte."""

_MOST_IN_LEGEND = 24


def graph_section(
    graph: CostGraph,
    shown: StatedPlan,
    instance: Instance,
    stages: Sequence[int],
    modules: Mapping[str, str] | None,
    charts: dict[str, Any],
    data: dict[str, Any],
) -> Section:
    """Return the section, and add its charts to *charts* and what its search and details take to *data*."""
    if graph.op_count > _MOST_NAMED:
        text = f"Not drawn: {graph.op_count:,} ops are more than the {_MOST_NAMED:,} that a page can hold."
        return Section("graph", "Graph", [Prose(text)])
    work = instance.work.tolist()
    params = graph.param_bytes.tolist()
    levels = levels_of(graph, stages, modules)
    views, described = [], []
    for number, level in enumerate(levels):
        name = f"graph-{number}"
        texts = [shown.describe(sum(work[v] for v in group.ops)) for group in level.groups]
        drawing, bounds = graph_drawing(name, level, texts)
        charts[name] = drawing.item()
        views.append(GraphLevel(name, level.title, f"{len(level.groups):,}"))
        described.append({"name": name, "bounds": bounds, "groups": _groups(level, texts, params)})
        if level.title == "Ops":
            described[-1]["order"] = [group.ops[0] for group in level.groups]
    drawn_ops = bool(levels) and levels[-1].title == "Ops"
    data["graph"] = {
        "levels": described,
        "ops_level": len(levels) - 1 if drawn_ops else None,
        **_details(graph, shown, stages, work, instance.transfer.tolist()),
    }
    note = ""
    if any(level.title.startswith("Modules") for level in levels):
        note = "A module that is cut is a box in each of its stages."
        if modules is not None and any(name not in modules for name in graph.op_names):
            note += (
                " Ops whose module the file does not say are drawn in the module around those before and behind them."
            )
    if not drawn_ops:
        note += f" Single ops are not drawn: {graph.op_count:,} are more than {MOST_BOXES:,}."
    used = sorted(set(stages))
    legend = [(stage_colour(stage), f"stage {stage}") for stage in used[:_MOST_IN_LEGEND]]
    if len(used) > _MOST_IN_LEGEND:
        legend.append(("transparent", f"and {len(used) - _MOST_IN_LEGEND:,} more stages"))
    return Section("graph", "Graph", [GraphView(views, first_shown(levels), HEIGHT, legend, note)])


def _groups(level: Level, work: Sequence[str], params: Sequence[int]) -> list[dict[str, Any]]:
    """Return what is told of each box that is clicked; single ops are described once for all levels."""
    if level.title == "Ops":
        return []
    return [
        {
            "name": group.name,
            "stage": group.stage,
            "ops": list(group.ops),
            "work": text,
            "params": format_bytes(sum(params[v] for v in group.ops)),
        }
        for group, text in zip(level.groups, work, strict=True)
    ]


def _details(
    graph: CostGraph, shown: StatedPlan, stages: Sequence[int], work: Sequence[int], transfer: Sequence[int]
) -> dict[str, Any]:
    """Return what is told of ops and tensors, by their numbers in the graph."""
    kinds = sorted(set(graph.op_kinds))
    number = {kind: i for i, kind in enumerate(kinds)}
    ops = {
        "names": list(graph.op_names),
        "kinds": [number[kind] for kind in graph.op_kinds],
        "stages": list(stages),
        "work": [shown.describe(ticks) for ticks in work],
        "params": [format_bytes(size) for size in graph.param_bytes.tolist()],
    }
    tensors = []
    for t, producer in enumerate(graph.tensor_producer.tolist()):
        readers = graph.tensor_consumers(t).tolist()
        size = int(graph.tensor_bytes[t])
        moved = shown.describe(transfer[t])
        tensors.append(
            {
                "name": graph.tensor_names[t],
                "producer": producer,
                "consumers": readers,
                "size": moved if size == UNKNOWN_BYTES else f"{format_bytes(size)}, {moved}",
                "crosses": any(stages[v] != stages[producer] for v in readers),
            }
        )
    return {"kinds": kinds, "ops": ops, "tensors": tensors}
