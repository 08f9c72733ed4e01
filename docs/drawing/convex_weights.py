"""Drawing of the bound by convex weights: weights of ops, the convex sets below the cutoff, and the order of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from docs.drawing.canvas import GRID, INK, PALE, TAKEN, Canvas, Point
from docs.drawing.example import LADDER, Example
from docs.drawing.stacked_shares import draw_shares
from docs.drawing.stage_sets import convex_sets

_ROW = 22.0
_STEP = 78.0
_LIVE = 17.0
_RADIUS = 14.0


def weights(example: Example, proof: Mapping[str, Any]) -> dict[str, int]:
    """Weight of each op."""
    given = {example.ops[op]: amount for op, amount in proof["weights"]}
    return {op: given.get(op, 0) for op in example.ops}


def largest_sets(example: Example, limit: int) -> list[tuple[str, ...]]:
    """Convex sets that cost no more than *limit*, without any that is part of another one."""
    fitting = [some for some in convex_sets(example) if example.cost(some) <= limit]
    return [some for some in fitting if not any(set(some) < set(other) for other in fitting)]


def spans(example: Example, order: list[str]) -> dict[str, tuple[int, int]]:
    """Places of the producer and of the last reader of each tensor in an order of the ops."""
    place = {op: i for i, op in enumerate(order)}
    return {one.name: (place[one.producer], max(place[op] for op in one.consumers)) for one in example.tensors}


def _draw_scan(canvas: Canvas, example: Example, order: list[str], corner: Point) -> None:
    """Draw the ops of an order in a row, and below it each tensor from its producer to its last reader."""
    left, top = corner
    canvas.text((left, top), "The scan:", anchor="start")
    at = {op: left + 110 + i * _STEP for i, op in enumerate(order)}
    rows = spans(example, order)
    for number, (name, (begin, end)) in enumerate(rows.items(), start=1):
        y = top + _RADIUS + number * _LIVE
        ends = at[order[begin]], at[order[end]]
        for x in ends:
            canvas.line([(x, top), (x, y)], colour=GRID)
        canvas.line([(ends[0], y), (ends[1], y)], colour=TAKEN, width=2)
        canvas.text((ends[1] + 8, y), name, anchor="start", size=11, colour=PALE)
    for op, x in at.items():
        canvas.circle((x, top), _RADIUS, fill="white")
        canvas.text((x, top), op, bold=True)


def picture() -> str:
    """Draw the bound by convex weights of the ladder."""
    canvas = Canvas()
    row = LADDER.bound("convex-weights")
    proof = row["lower_proof"]
    weight, capacity = weights(LADDER, proof), proof["capacity"]
    total = sum(weight.values())
    shares = [(op, float(Fraction(amount, capacity)), str(amount)) for op, amount in weight.items()]
    k = proof["stages"]
    draw_shares(canvas, shares, k, f"together {total}, and {k} stages hold {k} · {capacity} = {k * capacity}")
    limit = row["lower"] - 1
    canvas.text((0, 116), f"The largest convex sets at {limit} ticks:", anchor="start")
    found = sorted(largest_sets(LADDER, limit), key=lambda some: -sum(weight[op] for op in some))
    for number, some in enumerate(found):
        x, y = (number % 2) * 330.0, 140 + number // 2 * _ROW
        canvas.text((x, y), "{" + ", ".join(some) + "}", anchor="start", bold=True)
        canvas.text((x + 70, y), f"cost {LADDER.cost(some)}", anchor="start", colour=PALE)
        held = " + ".join(str(weight[op]) for op in some)
        whole = f" = {sum(weight[op] for op in some)}" if len(some) > 1 else ""
        canvas.text((x + 130, y), f"weight {held}{whole}", anchor="start", colour=INK)
    below = 140 + (len(found) + 1) // 2 * _ROW + 24
    _draw_scan(canvas, LADDER, [LADDER.ops[op] for op in proof["scan"]], (0.0, below))
    return canvas.svg(f"Weights of the ops of the ladder, {total}, of which no convex set holds more than {capacity}.")
