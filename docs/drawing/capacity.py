"""Drawing of the capacity bound: all work in a row, and under it the most that each stage has room for."""

from __future__ import annotations

from docs.drawing.canvas import CLASH, FLOW, PALE, TAKEN, Canvas
from docs.drawing.chosen_stages import AREA, Set, cost_words, work_of
from docs.drawing.example import LADDER, Example
from docs.drawing.stage_sets import convex_sets

_TICK = 12.0
_HEIGHT = 30.0


def largest_within(example: Example, limit: int) -> Set:
    """Return the convex set with most work of those that cost at most so much, the cheapest of several."""
    within = [some for some in convex_sets(example) if example.cost(some) <= limit]
    return max(within, key=lambda some: (work_of(example, some), -example.cost(some)))


def picture() -> str:
    """Draw the capacity bound of the ladder."""
    canvas = Canvas()
    limit, total = LADDER.bound("capacity")["lower"] - 1, sum(LADDER.work.values())
    some = largest_within(LADDER, limit)
    room = work_of(LADDER, some)
    left = 0.0
    for op, work in LADDER.work.items():
        canvas.rectangle(left, 0, work * _TICK, _HEIGHT, fill="#cfe3f3", edge=TAKEN)
        canvas.text((left + work * _TICK / 2, _HEIGHT / 2), f"{op} {work}")
        left += work * _TICK
    for stage in range(LADDER.k):
        canvas.rectangle(stage * room * _TICK, 62, room * _TICK, _HEIGHT, fill=AREA, edge=FLOW)
        canvas.text(((stage + 0.5) * room * _TICK, 77), f"stage {stage + 1}: {room}")
    end = LADDER.k * room * _TICK
    canvas.line([(end, 77), (left, 77)], colour=CLASH, width=2)
    canvas.text(((end + left) / 2, 62), f"{total - LADDER.k * room} left over", colour=CLASH, bold=True)
    words = f"of all sets within {limit} ticks, {{{', '.join(some)}}} has most work: {cost_words(LADDER, some)}"
    canvas.text((0, 112), words, anchor="start", colour=PALE)
    return canvas.svg(
        f"All work, {total} ticks, and the most that {LADDER.k} stages of at most {limit} ticks have of it."
    )
