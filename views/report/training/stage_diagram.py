"""Stages of a training plan as boxes, and what flows between them as arrows: a graph, or a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mtpp.colours import stage_colour, text_on
from mtpp.views.report.diagram import MARGIN, Arrow, Box, Diagram, Place, Route
from mtpp.views.report.graph_section import layered
from mtpp.views.report.training.stage_flows import StageFlow
from mtpp.views.report.training.stage_rows import StageRows

MOST_STAGES = 120
"""Of a drawing."""

_WIDTH, _GAP = 168, 76
_WIDEST_GAP, _PAGE = 200, 1190
"""Pixels between the layers of a graph at most, and of a page's width."""

_LINE, _PAD = 15, 8
_BETWEEN = 26
_THICKEST, _THINNEST = 4.5, 1.2


class DrawnStage(NamedTuple):
    """A stage with its number and lines of text, the first of which is its name, and the whole of it as a hint."""

    number: int
    lines: Sequence[str]
    told: str


def stage_diagram(stages: Sequence[DrawnStage], flows: Sequence[StageFlow], caption: str) -> Diagram:
    """Draw stages from left to right; those of a line that is too long for a row go on in the next one."""
    height = _PAD * 2 + _LINE * max((len(stage.lines) for stage in stages), default=1)
    flows = [one for one in flows if one.source < one.target < len(stages)]
    pairs = [(one.source, one.target) for one in flows]
    if {(s, s + 1) for s in range(len(stages) - 1)} <= set(pairs):
        places, routes = StageRows(len(stages), pairs, _WIDTH, _GAP, height).laid_out()
        lowest = 0.0
    else:
        places, routes, lowest = _layered(len(stages), pairs, height)
    boxes = [
        Box(place.x, place.y, _WIDTH, height, fill, text_on(fill), stage.lines, stage.told)
        for stage, place, fill in zip(stages, places, (stage_colour(one.number) for one in stages), strict=True)
    ]
    largest = max((one.forward_bytes or 0 for one in flows), default=0)
    arrows = []
    for flow, route in zip(flows, routes, strict=True):
        share = ((flow.forward_bytes or 0) / largest) ** 0.5 if largest else 0
        width = round(_THINNEST + (_THICKEST - _THINNEST) * share, 2)
        arrows.append(
            Arrow(route.path, width, flow.size_text(), route.x, route.y, _told(flow), flow.forward_bytes == 0)
        )
    width = max((place.x for place in places), default=0) + _WIDTH + MARGIN
    depth = max([place.y + height for place in places] + [lowest], default=0) + MARGIN
    return Diagram("stage-diagram", caption, round(width), round(depth), boxes, arrows)


def _layered(count: int, pairs: Sequence[tuple[int, int]], height: int) -> tuple[list[Place], list[Route], float]:
    """Return the places of stages in the layers of their graph, the routes of arrows, and the lowest of their bends."""
    depths = _depths(count, pairs)
    points, found = layered(depths, pairs)
    gap = max(_GAP, min(_WIDEST_GAP, (_PAGE - 2 * MARGIN - _WIDTH) // (max(depths, default=0) or 1) - _WIDTH))
    least = min([x for x, _ in points] + [x for one in found for x, _ in one])
    step = height + _BETWEEN

    def at(across: float, along: float) -> Place:
        return Place(MARGIN + along * (_WIDTH + gap), MARGIN + (across - least) * step)

    places = [at(*point) for point in points]
    middle = height / 2
    bends = [[Place(at(*point).x + _WIDTH / 2, at(*point).y + middle) for point in one] for one in found]
    routes = [_curve(places[u], places[v], own, middle) for (u, v), own in zip(pairs, bends, strict=True)]
    return places, routes, max((bend.y for one in bends for bend in one), default=0.0)


def _depths(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each stage: as late as its readers allow, so that arrows are short."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for u, v in pairs:
        after[u].append(v)
        waiting[v] += 1
    order = [v for v in range(count) if not waiting[v]]
    for u in order:
        for v in after[u]:
            waiting[v] -= 1
            if not waiting[v]:
                order.append(v)
    height = [0] * count
    for u in reversed(order):
        height[u] = max((height[v] + 1 for v in after[u]), default=0)
    deepest = max(height, default=0)
    return [deepest - one for one in height]


def _curve(source: Place, target: Place, bends: Sequence[Place], middle: float) -> Route:
    """Return the route of an arrow from the right side of a box to the left side of another."""
    points = [Place(source.x + _WIDTH, source.y + middle), *bends, Place(target.x - 2, target.y + middle)]
    path = f"M{points[0].x:.1f},{points[0].y:.1f}"
    for one, other in pairwise(points):
        half = (other.x - one.x) / 2
        path += f"C{one.x + half:.1f},{one.y:.1f} {other.x - half:.1f},{other.y:.1f} {other.x:.1f},{other.y:.1f}"
    return Route(path, *_label_at(points))


def _label_at(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the place of a label: nearer to the source, where arrows that end together are still apart."""
    (ax, ay), (bx, by) = points[0], points[1]
    share = 0.36 if by != ay else 0.5
    curve = share * share * (3 - 2 * share)
    return ax + (bx - ax) * share, ay + (by - ay) * curve - 6


def _told(flow: StageFlow) -> str:
    of = "" if flow.samples is None else f" of {flow.samples:,} samples"
    text = f"stage {flow.source} → stage {flow.target}"
    if flow.forward_bytes is None:
        return text
    return f"{text}: {flow.size_text()} for each micro-batch{of}"
