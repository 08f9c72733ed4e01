"""Drawings of graphs that are much deeper than wide: layers run downwards, and go on at the top of the next column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

BOX_WIDTH, BOX_HEIGHT = 150, 22
"""Of a vertex. All lengths are pixels of a drawing that is shown in its own size."""

_SLOT, _LAYER, _GUTTER = 168, 40, 90
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
