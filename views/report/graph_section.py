"""The graph of a plan in the colours of its stages, from stages and modules down to ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from mtpp.colours import stage_colour
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_bytes
from mtpp.views.report.colours import ACCENT, LINE, SOFT, by_ink
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.label_places import Box, label_places
from mtpp.views.report.levels import MOST_BOXES, Flow, Level, first_shown, levels_of
from mtpp.views.report.page import GraphLevel, GraphView, Prose, Section
from mtpp.views.report.stated import StatedPlan
from mtpp.views.shown_plan import devices_text

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
"""Flows whose bytes are written beside them, at most; of more, those between stages."""

_SIZE_CHARACTER, _SIZE_HIGH = 7.2, 15
"""Pixels of a character of bytes, at most, and of a line of them."""

_MARGIN = 24

BOX_WIDTH, BOX_HEIGHT = 150, 22
"""Of a vertex. All lengths are pixels of a drawing that is shown in its own size."""

_SLOT, _LAYER, _GUTTER = 168, 40, 116
"""Distances of vertices in a layer, of layers, and of columns."""

_ASPECT = 1.7
"""Width over height that a drawing comes near to."""

_LONGEST_ROUTE = 10
"""Layers that an edge passes between vertices; longer ones are curves behind them."""

_BULGE, _MOST_BULGE = 14, 90
"""Pixels that a curve goes aside, at least and at most."""

Curve = tuple[float, float, float, float, float, float, float, float]
"""Ends and control points: x0, y0, x1, y1, cx0, cy0, cx1, cy1."""

Point = tuple[float, float]
"""Place in a layer, and the layer; one apart."""

_ITERATIONS = 60
"""Rounds that the order of vertices in their layers is improved, at most."""


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
    params = graph.read_bytes.tolist()
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
    named = [row for row in shown.stages if row.keys() & {"device", "devices"}]
    names = {row["index"]: f": {devices_text(row)}" for row in named}
    legend = [(stage_colour(stage), f"stage {stage}{names.get(stage, '')}") for stage in used[:_MOST_IN_LEGEND]]
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
        "params": [format_bytes(size) for size in graph.read_bytes.tolist()],
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
    drawing.boxes(boxes, name="boxes", edge=LINE, tips=tips, clicked=True)
    labels = [_shortened(terminal_safe(group.name)) for group in level.groups]
    texts: dict[str, Any] = {
        "x": [x + BOX_WIDTH / 2 for x in left],
        "y": [y + BOX_HEIGHT / 2 for y in top],
        "text": labels,
    }
    for name_of, ink, own in by_ink(texts, boxes["fill"]):
        drawing.texts(own, name=f"labels{name_of}", colour=ink, align="center")
    crossing = [e for e, one in enumerate(flows) if one.crosses]
    written = range(len(flows)) if len(flows) <= _MOST_SIZES else crossing if len(crossing) <= _MOST_SIZES else []
    if written:
        _write_sizes(drawing, flows, drawn, written)
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


def _write_sizes(drawing: Drawing, flows: Sequence[Flow], drawn: FoldedDrawing, written: Sequence[int]) -> None:
    """Write the bytes of flows beside them where there is room, those of tensors between stages first."""
    paths = [drawn.lines[e] if e in drawn.lines else _points_of(drawn.curves[e]) for e in range(len(flows))]
    texts = [size_text(one) for one in flows]
    half, tall = BOX_WIDTH / 2, BOX_HEIGHT / 2
    boxes = [Box(x - half, y - tall, x + half, y + tall) for x, y in drawn.places]
    order = sorted(written, key=lambda e: (not flows[e].crosses, -(flows[e].size_bytes or 0), e))
    sizes = [(_width(text) * _SIZE_CHARACTER, _SIZE_HIGH) for text in texts]
    at = label_places(paths, sizes, boxes, order)
    drawing.texts(
        {
            "x": [round(x) for x, _ in at.values()],
            "y": [round(y) for _, y in at.values()],
            "text": [texts[e] for e in at],
        },
        name="sizes", colour=SOFT, size=11, align="center", covering=True,
    )  # fmt: skip


def _points_of(curve: Curve, count: int = 12) -> list[_Point]:
    """Return points that a curve passes through."""
    x0, y0, x1, y1, cx0, cy0, cx1, cy1 = curve
    weights = [
        ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3) for t in (i / count for i in range(count + 1))
    ]
    return [(a * x0 + b * cx0 + c * cx1 + d * x1, a * y0 + b * cy0 + c * cy1 + d * y1) for a, b, c, d in weights]


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


@dataclass(frozen=True)
class FoldedDrawing:
    """Places of vertices (their centres; y grows downwards) and of edges, each either a line or a curve."""

    places: Sequence[tuple[float, float]]
    lines: dict[int, list[tuple[float, float]]]
    curves: dict[int, Curve]
    width: float
    height: float


def folded(count: int, edges: Sequence[tuple[int, int]], *, in_line: bool = False) -> FoldedDrawing:
    """Place vertices 0 … *count* − 1, numbered so that most edges go to larger ones.

    Edges to smaller ones, as modules that take turns have, are curves.

    Parameters
    ----------
    in_line
        Whether each vertex is a layer of its own: a line of boxes, and curves around those that an edge passes.

    Notes
    -----
    O(vertices + edges · layers that they pass) apart from ordering the layers.
    """
    ahead = sorted({(u, v) for u, v in edges if u < v})
    layer_of = list(range(count)) if in_line else _layers(count, ahead)
    depth = max(layer_of, default=0) + 1
    columns = _columns(layer_of, depth)
    per_column = -(-depth // columns)
    column_of = [layer // per_column for layer in layer_of]
    longest = 1 if in_line else _LONGEST_ROUTE
    near = [(u, v) for u, v in ahead if column_of[u] == column_of[v] and layer_of[v] - layer_of[u] <= longest]
    places: list[tuple[float, float]] = [(0.0, 0.0)] * count
    routes: dict[tuple[int, int], list[tuple[float, float]]] = {}
    left = 0.0
    for column in range(columns):
        members = [v for v in range(count) if column_of[v] == column]
        index = {v: i for i, v in enumerate(members)}
        own = [(u, v) for u, v in near if u in index]
        points, bends = layered([layer_of[v] for v in members], [(index[u], index[v]) for u, v in own])
        across = [x for x, _ in points] + [x for one in bends for x, _ in one]
        least = min(across, default=0.0)

        def at(x: float, y: float, least: float = least, left: float = left, top: int = column * per_column) -> _Point:
            return left + (x - least) * _SLOT + BOX_WIDTH / 2, (y - top) * _LAYER + BOX_HEIGHT / 2

        for v, point in zip(members, points, strict=True):
            places[v] = at(*point)
        for edge, one in zip(own, bends, strict=True):
            routes[edge] = [at(*point) for point in one]
        left += (max(across, default=0.0) - least) * _SLOT + BOX_WIDTH + _GUTTER
    lines, curves = {}, {}
    for e, (u, v) in enumerate(edges):
        if (u, v) in routes:
            lines[e] = [_below(places[u]), *routes[u, v], _above(places[v])]
        else:
            curves[e] = _curve(places[u], places[v], same_column=column_of[u] == column_of[v])
    return FoldedDrawing(places, lines, curves, left - _GUTTER, (per_column - 1) * _LAYER + BOX_HEIGHT)


_Point = tuple[float, float]


def _layers(count: int, ahead: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each vertex: as late as its readers allow, and right behind its sources if it has none."""
    readers: list[list[int]] = [[] for _ in range(count)]
    sources: list[list[int]] = [[] for _ in range(count)]
    for u, v in ahead:
        readers[u].append(v)
        sources[v].append(u)
    height = [0] * count
    for v in reversed(range(count)):
        height[v] = max((height[w] + 1 for w in readers[v]), default=0)
    deepest = max(height, default=0)
    layer = [deepest - one for one in height]
    for v in range(count):
        if not readers[v] and sources[v]:
            layer[v] = max(layer[u] for u in sources[v]) + 1
    return layer


def _columns(layer_of: Sequence[int], depth: int) -> int:
    """Return the number of columns with which the drawing has about the shape that it should have."""
    widths = [0] * depth
    for layer in layer_of:
        widths[layer] += 1

    def off(columns: int) -> float:
        per_column = -(-depth // columns)
        width = sum(max(widths[i : i + per_column]) * _SLOT + _GUTTER for i in range(0, depth, per_column))
        return abs(log(width / (per_column * _LAYER) / _ASPECT))

    most = min(depth, int((depth * _LAYER * _ASPECT / _SLOT) ** 0.5) + 2)
    return min(range(1, most + 1), key=off)


def _below(place: _Point) -> _Point:
    return place[0], place[1] + BOX_HEIGHT / 2


def _above(place: _Point) -> _Point:
    return place[0], place[1] - BOX_HEIGHT / 2


def _curve(source: _Point, target: _Point, *, same_column: bool) -> Curve:
    """Return a curve around the right side of a column, or from one column to another."""
    (x0, y0), (x1, y1) = source, target
    half = BOX_WIDTH / 2
    if same_column:
        bulge = min(_BULGE + 0.15 * abs(y1 - y0), _MOST_BULGE)
        return x0 + half, y0, x1 + half, y1, x0 + half + bulge, y0, x1 + half + bulge, y1
    side = half if x1 > x0 else -half
    reach = _GUTTER if x1 > x0 else -_GUTTER
    return x0 + side, y0, x1 - side, y1, x0 + side + reach, y0, x1 - side - reach, y1


def layered(layers: Sequence[int], edges: Sequence[tuple[int, int]]) -> tuple[list[Point], list[list[Point]]]:
    """Order vertices in their layers so that few edges cross, and let edges bend where they pass layers.

    Parameters
    ----------
    layers
        Layer of each vertex.
    edges
        Between vertices of different layers, the first in the lower one.

    Returns
    -------
    A place for each vertex, and the bends of each edge. Parts that no edge joins stand beside each other only where
    they have layers in common.

    Notes
    -----
    K. Sugiyama, S. Tagawa and M. Toda (1981), "Methods for visual understanding of hierarchical system structures",
    with the barycentre heuristic. About 0.1 s for 1,500 ops of a model.
    """
    import igraph

    graph = igraph.Graph(n=len(layers), edges=list(edges), directed=True)
    places: list[Point] = [(0.0, 0.0)] * len(layers)
    bends: list[list[Point]] = [[] for _ in edges]
    taken: list[tuple[int, int, float]] = []
    parts = sorted(graph.connected_components(mode="weak"), key=lambda part: min(layers[v] for v in part))
    for part in parts:
        own = graph.induced_subgraph(part, implementation="create_from_scratch")
        first, last = min(layers[v] for v in part), max(layers[v] for v in part)
        layout = own.layout_sugiyama(layers=[layers[v] - first for v in part], hgap=1, vgap=1, maxiter=_ITERATIONS)
        beside = max((right for low, high, right in taken if low <= last and first <= high), default=-1.0) + 1
        points = [(float(x) + beside, float(y) + first) for x, y in layout.coords[: len(part)]]
        own_bends = [[(float(x) + beside, float(y) + first) for x, y in one] for one in layout.edge_routing]
        for v, point in zip(part, points, strict=True):
            places[v] = point
        number = {graph.get_eid(part[e.source], part[e.target]): e.index for e in own.es}
        for e, mine in number.items():
            bends[e] = own_bends[mine]
        right = max([x for x, _ in points] + [x for one in own_bends for x, _ in one])
        taken.append((first, last, right))
    return places, bends
