"""Drawing of all bounds on one graph: the graph in its best stages, and how far each bound gets."""

from __future__ import annotations

import mtpp
from docs.drawing.canvas import CLASH, GRID, TAKEN, Canvas
from docs.drawing.example import LADDER
from docs.drawing.graph_picture import STEP, GraphPicture

_TICK = 16.0
_ROW = 22.0
_FILLS = {"exact": "#9ecae1", "enumerated": "#c7e9c0", "solver": "#eeeeee"}


def all_bounds() -> list[tuple[str, int, str]]:
    """Return name, ticks and tier of each bound that proves something of the ladder, the lowest first."""
    rows = [row for row in mtpp.bound(str(LADDER.path), LADDER.k) if row.ticks is not None]
    return sorted(((row.bound, row.ticks, str(row.tier)) for row in rows), key=lambda row: row[1])


def picture() -> str:
    """Draw the ladder and its bounds."""
    canvas = Canvas()
    graph = GraphPicture(canvas, LADDER)
    graph.stages(LADDER.best)
    graph.draw()
    left, top = 6.4 * STEP, -0.45 * STEP
    rows = all_bounds()
    for number, (name, ticks, tier) in enumerate(rows):
        y = top + number * _ROW
        canvas.text((left - 8, y + 9), name, anchor="end", size=12)
        canvas.rectangle(left, y, ticks * _TICK, 18, fill=_FILLS[tier], edge=TAKEN)
        canvas.text((left + ticks * _TICK - 6, y + 9), str(ticks), anchor="end", size=12, bold=True)
    bottleneck = max(LADDER.cost([op for op in LADDER.ops if LADDER.best[op] == stage]) for stage in range(LADDER.k))
    at = left + bottleneck * _TICK
    bottom = top + len(rows) * _ROW
    canvas.line([(left, top - 8), (left, bottom + 4)], colour=GRID)
    canvas.line([(at, top - 8), (at, bottom + 4)], colour=CLASH, dashed=True, width=1.6)
    canvas.text((at, top - 18), f"OPT = {bottleneck}", colour=CLASH, bold=True)
    return canvas.svg("The ladder cut into three stages, and what each lower bound proves of it.")
