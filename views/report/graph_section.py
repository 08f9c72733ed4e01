"""The graph of a plan in the colours of its stages, from stages and modules down to ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from mtpp.formats.graphs.stage_colours import stage_colour
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_bytes
from mtpp.views.report.colours import ACCENT, LINE, ON_FILL, SOFT, SURFACE
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.folded import BOX_HEIGHT, BOX_WIDTH, FoldedDrawing, folded
from mtpp.views.report.levels import MOST_BOXES, Flow, Level, first_shown, levels_of
from mtpp.views.report.page import GraphLevel, GraphView, Prose, Section
from mtpp.views.report.stated import StatedPlan

if TYPE_CHECKING:
    from mtpp.inference.instance import Instance

_MOST_NAMED = 20_000
"""Ops that the page can search; their names alone are a megabyte."""

_MOST_IN_LEGEND = 24

HEIGHT = 560
"""Pixels of the drawing on the page."""

_LABEL = 19
"""Characters of a label, at most."""

_MOST_SIZES = 60
"""Flows whose bytes are written beside them, at most."""

_MARGIN = 24


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


def graph_drawing(name: str, level: Level, work: Sequence[str]) -> tuple[Drawing, tuple[float, float, float, float]]:
    """Draw a level, and return the edges of the drawing as well: left, top, right, bottom.

    Parameters
    ----------
    name
        Of the element of the page.
    work
        Work of each group, for people.
    """
    flows = level.flows
    pairs = [(one.source, one.target) for one in flows]
    drawn = folded(len(level.groups), pairs, in_line=level.title != "Ops")
    bounds = (-_MARGIN, -_MARGIN, drawn.width + _MARGIN + 60, drawn.height + _MARGIN)
    drawing = Drawing(name, height=HEIGHT, x=(bounds[0], bounds[2]), y=(bounds[3], bounds[1]), axes=False, zoom="both")
    largest = max((one.size_bytes or 0 for one in flows if one.crosses), default=0)
    for crosses in (False, True):
        look: dict[str, Any] = {"colour": ACCENT if crosses else LINE, "width": "width", "alpha": "alpha"}
        suffix = "-crossing" if crosses else ""
        curves = {e: c for e, c in drawn.curves.items() if flows[e].crosses == crosses}
        keys = ("x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1")
        places: dict[str, Any] = {key: [round(c[i]) for c in curves.values()] for i, key in enumerate(keys)}
        drawing.curves(places | _weights(flows, curves, largest), name=f"curves{suffix}", **look)
        lines = {e: points for e, points in drawn.lines.items() if flows[e].crosses == crosses}
        drawing.lines(
            {
                "xs": [[round(x) for x, _ in one] for one in lines.values()],
                "ys": [[round(y) for _, y in one] for one in lines.values()],
                **_weights(flows, lines, largest),
            },
            name=f"lines{suffix}",
            **look,
        )
    drawing.boxes(
        {key: [] for key in ("left", "right", "top", "bottom")}, name="marks", fill=ACCENT, edge=ACCENT, edge_width=1
    )
    left = [round(x - BOX_WIDTH / 2) for x, _ in drawn.places]
    top = [round(y - BOX_HEIGHT / 2) for _, y in drawn.places]
    boxes: dict[str, Any] = {
        "left": left,
        "right": [x + BOX_WIDTH for x in left],
        "top": top,
        "bottom": [y + BOX_HEIGHT for y in top],
        "fill": [stage_colour(group.stage) for group in level.groups],
        "name": [group.name for group in level.groups],
        "stage": [str(group.stage) for group in level.groups],
        "work": list(work),
    }
    tips = [("", "name"), ("stage", "stage"), ("work", "work")]
    if level.title != "Ops":
        boxes["ops"] = [f"{len(group.ops):,}" for group in level.groups]
        tips.insert(2, ("ops", "ops"))
    drawing.boxes(boxes, name="boxes", edge=SURFACE, tips=tips, clicked=True)
    labels = [_shortened(terminal_safe(group.name)) for group in level.groups]
    drawing.texts(
        {"x": [x + BOX_WIDTH / 2 for x in left], "y": [y + BOX_HEIGHT / 2 for y in top], "text": labels},
        name="labels", colour=ON_FILL, align="center",
    )  # fmt: skip
    if len(flows) <= _MOST_SIZES:
        _write_sizes(drawing, flows, drawn)
    return drawing, bounds


def _weights(flows: Sequence[Flow], drawn: Iterable[int], largest: int) -> dict[str, list[float]]:
    """Return widths and opacities: what crosses between stages is drawn the stronger the more bytes it has."""
    widths, alphas = [], []
    for e in drawn:
        size = flows[e].size_bytes
        share = 0.5 if size is None else (size / largest) ** 0.5 if largest else 0.0
        widths.append(round(0.9 + 2.3 * share, 2) if flows[e].crosses else 1.1)
        alphas.append(round(0.3 + 0.65 * share, 2) if flows[e].crosses else 0.6)
    return {"width": widths, "alpha": alphas}


def size_text(flow: Flow) -> str:
    """Write the bytes of a flow, or how many tensors it has where not all sizes are known."""
    if flow.size_bytes is not None:
        return format_bytes(flow.size_bytes)
    return "1 tensor" if flow.tensors == 1 else f"{flow.tensors:,} tensors"


def _write_sizes(drawing: Drawing, flows: Sequence[Flow], drawn: FoldedDrawing) -> None:
    """Write the bytes of flows beside the middle of their first stretches, or of their curves."""
    at = {e: ((one[0][0] + one[1][0]) / 2, (one[0][1] + one[1][1]) / 2) for e, one in drawn.lines.items()}
    for e, (x0, y0, x1, y1, cx0, cy0, cx1, cy1) in drawn.curves.items():
        at[e] = ((x0 + 3 * cx0 + 3 * cx1 + x1) / 8, (y0 + 3 * cy0 + 3 * cy1 + y1) / 8)
    drawing.texts(
        {
            "x": [round(x) for x, _ in at.values()],
            "y": [round(y) for _, y in at.values()],
            "text": [size_text(flows[e]) for e in at],
        },
        name="sizes", colour=SOFT, size=11, dx=5,
    )  # fmt: skip


def _shortened(name: str) -> str:
    """Leave out the middle of a name that is too long for its box; wide characters count twice."""
    if _width(name) <= _LABEL:
        return name
    first, last = name[: _LABEL // 2 - 2], name[-(_LABEL // 2 + 2) :]
    while _width(first) + _width(last) >= _LABEL:
        first, last = (first[:-1], last) if _width(first) > _width(last) else (first, last[1:])
    return f"{first}…{last}"


def _width(text: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
