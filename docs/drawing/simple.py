"""Drawing of the simple bound: all work in a row, cut into k equal parts, and the largest op beside it."""

from __future__ import annotations

from docs.drawing.canvas import CLASH, PALE, TAKEN, Canvas
from docs.drawing.example import LADDER

_TICK = 12.0
_HEIGHT = 30.0


def picture() -> str:
    """Draw the simple bound of the ladder."""
    canvas = Canvas()
    proof = LADDER.bound("simple")["lower_proof"]
    total, k = proof["total_work"], proof["k"]
    left = 0.0
    for op, work in LADDER.work.items():
        canvas.rectangle(left, 0, work * _TICK, _HEIGHT, fill="#cfe3f3", edge=TAKEN)
        canvas.text((left + work * _TICK / 2, _HEIGHT / 2), f"{op} {work}")
        left += work * _TICK
    for part in range(1, k + 1):
        at = part * total / k * _TICK
        for begin, end in ((-14, -2), (_HEIGHT + 2, _HEIGHT + 14)):
            canvas.line([(at, begin), (at, end)], colour=CLASH, width=2)
        canvas.text(((part - 0.5) * total / k * _TICK, -22), f"{total / k:.2f}", colour=CLASH)
    largest = max(LADDER.work, key=lambda op: LADDER.work[op])
    canvas.rectangle(0, 62, LADDER.work[largest] * _TICK, _HEIGHT, fill="#eeeeee", edge=PALE)
    canvas.text((LADDER.work[largest] * _TICK / 2, 77), f"{largest} {LADDER.work[largest]}")
    canvas.text((LADDER.work[largest] * _TICK + 10, 77), "the largest op", anchor="start", colour=PALE)
    value = LADDER.bound("simple")["lower"]
    canvas.text((left, 77), f"some stage has {value} ticks of work", anchor="end", colour=CLASH, bold=True)
    return canvas.svg(f"The work of all ops, {total} ticks, cut into {k} equal parts.")
