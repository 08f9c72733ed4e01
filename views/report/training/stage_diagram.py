"""Stages of a training plan as boxes, and what flows between them as arrows: a graph, or a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from mtpp.views.report.colours import stage_colour, text_on
from mtpp.views.report.diagram import Arrow, Box, Diagram
from mtpp.views.report.graph_section import layered
from mtpp.views.report.training.stage_flows import StageFlow

MOST_STAGES = 120
"""Of a drawing."""

_WIDTH, _GAP = 168, 76
_LINE, _PAD = 15, 8
_BETWEEN = 26
_IN_ROW = 5
"""Stages of a line that stand beside each other."""

_MARGIN, _ARC, _MOST_ARC = 12, 18, 120
_TURN = 34
"""Pixels between rows of a line, for the arrow that turns."""

_THICKEST, _THINNEST = 4.5, 1.2


class DrawnStage(NamedTuple):
    """A stage with its number and lines of text, the first of which is its name, and the whole of it as a hint."""

    number: int
    lines: Sequence[str]
    told: str


@dataclass(frozen=True)
class _Place:
    x: float
    y: float


def stage_diagram(stages: Sequence[DrawnStage], flows: Sequence[StageFlow], caption: str) -> Diagram:
    """Draw stages from left to right; those of a line that is too long for a row go on in the next one."""
    height = _PAD * 2 + _LINE * max((len(stage.lines) for stage in stages), default=1)
    pairs = [(one.source, one.target) for one in flows]
    in_line = all(v == u + 1 for u, v in pairs)
    straight = in_line or _is_path(len(stages), pairs)
    bends: list[list[tuple[float, float]]] = [[] for _ in pairs]
    top = float(_MARGIN)
    if in_line and len(stages) > _IN_ROW:
        places = [
            _Place(_MARGIN + (s % _IN_ROW) * (_WIDTH + _GAP), _MARGIN + (s // _IN_ROW) * (height + _TURN))
            for s in range(len(stages))
        ]
    elif straight:
        reach = max([v - u for u, v in pairs], default=1)
        top += 0 if reach == 1 else _arc(reach)
        places = [_Place(_MARGIN + s * (_WIDTH + _GAP), top) for s in range(len(stages))]
    else:
        layer = _depths(len(stages), pairs)
        points, found = layered(layer, pairs)
        least = min(x for x, _ in points)
        step = height + _BETWEEN

        def at(across: float, along: float) -> tuple[float, float]:
            return _MARGIN + along * (_WIDTH + _GAP), _MARGIN + (across - least) * step

        places = [_Place(*at(*point)) for point in points]
        middle = height / 2
        bends = [[(at(*point)[0] + _WIDTH / 2, at(*point)[1] + middle) for point in one] for one in found]
        lowest = min([place.y for place in places] + [y - middle for one in bends for _, y in one])
        places = [_Place(place.x, place.y - lowest + _MARGIN) for place in places]
        bends = [[(x, y - lowest + _MARGIN) for x, y in one] for one in bends]
    boxes = [
        Box(place.x, place.y, _WIDTH, height, fill, text_on(fill), stage.lines, stage.told)
        for stage, place, fill in zip(stages, places, (stage_colour(one.number) for one in stages), strict=True)
    ]
    largest = max((one.forward_bytes or 0 for one in flows), default=0)
    arrows = []
    for flow, own in zip(flows, bends, strict=True):
        source, target = places[flow.source], places[flow.target]
        path, label = _path(source, target, own, height, arc=straight and flow.target - flow.source > 1)
        share = ((flow.forward_bytes or 0) / largest) ** 0.5 if largest else 0
        width = round(_THINNEST + (_THICKEST - _THINNEST) * share, 2)
        arrows.append(Arrow(path, width, flow.size_text(), *label, _told(flow), flow.forward_bytes == 0))
    width = max((place.x for place in places), default=0) + _WIDTH + _MARGIN
    below = [y for one in bends for _, y in one]
    depth = max([place.y + height for place in places] + below, default=0) + _MARGIN
    return Diagram("stage-diagram", caption, round(width), round(depth), boxes, arrows)


def _is_path(count: int, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether each stage hands something to the next one: a line, along which other flows are arcs."""
    return {(s, s + 1) for s in range(count - 1)} <= set(pairs)


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


def _arc(reach: int) -> float:
    return min(_ARC * reach, _MOST_ARC)


def _path(
    source: _Place, target: _Place, bends: Sequence[tuple[float, float]], height: float, *, arc: bool
) -> tuple[str, tuple[float, float]]:
    """Return the path of an arrow, and the middle of its label."""
    x0, y0 = source.x + _WIDTH, source.y + height / 2
    x1, y1 = target.x, target.y + height / 2
    if arc:
        x0, y0, x1, y1 = source.x + _WIDTH * 0.75, source.y, target.x + _WIDTH * 0.25, target.y
        rise = _arc(round((target.x - source.x) / (_WIDTH + _GAP)))
        above = y0 - rise * 1.3
        path = f"M{x0:.1f},{y0:.1f}C{x0 + _GAP:.1f},{above:.1f} {x1 - _GAP:.1f},{above:.1f} {x1:.1f},{y1 - 2:.1f}"
        return path, ((x0 + x1) / 2, y0 - rise * 0.975)
    if target.y != source.y and target.x < source.x:  # on to the next row of a line
        between = source.y + height + _TURN / 2
        right, left = x0 + _MARGIN - 3, x1 - _MARGIN + 3
        path = f"M{x0:.1f},{y0:.1f}H{right:.1f}V{between:.1f}H{left:.1f}V{y1:.1f}H{x1 - 2:.1f}"
        return path, ((x0 + x1) / 2, between - 5)
    points = [(x0, y0), *bends, (x1 - 2, y1)]
    path = f"M{x0:.1f},{y0:.1f}"
    for (ax, ay), (bx, by) in pairwise(points):
        half = (bx - ax) / 2
        path += f"C{ax + half:.1f},{ay:.1f} {bx - half:.1f},{by:.1f} {bx:.1f},{by:.1f}"
    return path, _label_at(points)


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
