"""Drawing of the exact program: a partition as it sees it, op by op and stage by stage."""

from __future__ import annotations

from docs.drawing.canvas import CLASH, GRID, INK, Canvas
from docs.drawing.example import LADDER
from docs.drawing.graph_picture import STEP, GraphPicture
from mtpp.colours import paler, stage_colour

_TICK = 11.0


def picture() -> str:
    """Draw the optimum of the ladder."""
    canvas = Canvas()
    graph = GraphPicture(canvas, LADDER)
    best = LADDER.best
    graph.stages(best)
    cut = [one.name for one in LADDER.tensors if len({best[op] for op in one.touching}) > 1]
    graph.draw(cut=cut)
    left, top = 5 * STEP, 0.1 * STEP
    bottleneck = 0
    for stage in range(LADDER.k):
        ops = [op for op in LADDER.ops if best[op] == stage]
        y, x = top + stage * 46, left
        canvas.text((left - 10, y + 14), f"stage {stage}", anchor="end")
        for words, ticks, fill in [(op, LADDER.work[op], paler(stage_colour(stage), 0.6)) for op in ops] + [
            (str(one.transfer), one.transfer, "#eeeeee") for one in LADDER.cut(ops)
        ]:
            canvas.rectangle(x, y, ticks * _TICK, 28, fill=fill, edge=INK)
            canvas.text((x + ticks * _TICK / 2, y + 14), words, size=11)
            x += ticks * _TICK
        canvas.text((x + 8, y + 14), str(LADDER.cost(ops)), anchor="start", bold=True)
        bottleneck = max(bottleneck, LADDER.cost(ops))
    at = left + bottleneck * _TICK
    canvas.line([(left, top - 10), (left, top + 46 * LADDER.k)], colour=GRID)
    canvas.line([(at, top - 10), (at, top + 46 * LADDER.k)], colour=CLASH, dashed=True, width=1.6)
    canvas.text((at, top - 22), f"OPT = {bottleneck}", colour=CLASH, bold=True)
    return canvas.svg(f"A partition of the ladder into {LADDER.k} stages with a bottleneck of {bottleneck} ticks.")
