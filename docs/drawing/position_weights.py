"""Drawing of the bound by position weights: the worth of each label at each stage, and the best labelling of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from docs.drawing.canvas import CLASH, GRID, INK, PALE, TAKEN, Canvas
from docs.drawing.example import Example
from docs.drawing.graph_picture import STEP, GraphPicture
from docs.drawing.stage_sets import followers

CROSSED = Example("crossed", 2)
LABELS = ("before", "inside", "after")

Worths = dict[str, tuple[int | None, int | None, int | None]]
"""Worth of each label of an op, None where the windows leave it out."""

_COLUMN, _ROW = 56.0, 24.0
_BEST = "#cfe3f3"


def windows(example: Example, limit: int) -> dict[str, tuple[int, int]]:
    """First and last stage of each op, from the work of all that leads to it and of all that it leads to."""
    after = followers(example)
    found = {}
    for op in example.ops:
        behind = example.work[op] + sum(example.work[other] for other in after[op])
        ahead = example.work[op] + sum(example.work[other] for other in example.ops if op in after[other])
        found[op] = max(1, -(-ahead // limit)), min(example.k, example.k + 1 + -behind // limit)
    return found


def step_weights(example: Example) -> dict[str, list[int]]:
    """Weights of each op by stage, in the first step of the proof."""
    (step,) = example.bound("position-weights")["lower_proof"]["tree"]["steps"]
    given = {example.ops[op]: row for op, row in step["weights"]}
    return {op: given.get(op, [0] * example.k) for op in example.ops}


def worths(example: Example, weights: Mapping[str, Sequence[int]], limit: int, stage: int) -> Worths:
    """Worth of the labels of each op at a stage, counted from 1."""
    found: Worths = {}
    for op, (first, last) in windows(example, limit).items():
        row = weights[op]
        before = row[stage - 1] - row[stage - 2] if first < stage else None
        inside = row[stage - 1] if first <= stage <= last else None
        found[op] = before, inside, 0 if last > stage else None
    return found


def labellings(example: Example, rows: Worths, limit: int) -> Iterator[tuple[int, dict[str, int]]]:
    """Worth and labels of each monotone labelling whose inside costs no more than *limit*."""
    for labels in product(range(3), repeat=len(example.ops)):
        of = dict(zip(example.ops, labels, strict=True))
        inside = [op for op, label in of.items() if label == 1]
        amounts = [rows[op][label] for op, label in of.items()]
        if any(of[one.producer] > of[op] for one in example.tensors for op in one.consumers):
            continue
        if example.cost(inside) <= limit and None not in amounts:
            yield sum(amount or 0 for amount in amounts), of


def best_labelling(example: Example, rows: Worths, limit: int) -> tuple[int, dict[str, int]]:
    """Worth and labels of the labelling of a stage that is worth most."""
    return max(labellings(example, rows, limit), key=lambda one: one[0])


def _draw_stage(canvas: Canvas, left: float, rows: Worths, best: tuple[int, dict[str, int]], title: str) -> None:
    """Draw a table of worths, the best labelling in blue, with what it is worth below."""
    canvas.text((left + 1.5 * _COLUMN, -56), title, bold=True)
    for label, word in enumerate(LABELS):
        canvas.text((left + (label + 0.5) * _COLUMN, -34), word, size=12, colour=PALE)
    for number, (op, amounts) in enumerate(rows.items()):
        y = number * _ROW - 20
        for label, amount in enumerate(amounts):
            chosen = best[1][op] == label
            canvas.rectangle(left + label * _COLUMN, y, _COLUMN, _ROW, fill=_BEST if chosen else "white", edge=GRID)
            middle = left + (label + 0.5) * _COLUMN, y + _ROW / 2
            canvas.text(middle, "–" if amount is None else str(amount), colour=INK if chosen else PALE, bold=chosen)
    canvas.text((left + 1.5 * _COLUMN, len(rows) * _ROW - 2), f"at most {best[0]}", bold=True, colour=TAKEN)


def picture() -> str:
    """Draw the bound by position weights of two pairs of ops."""
    canvas = Canvas()
    example = CROSSED
    limit = example.bound("position-weights")["lower"] - 1
    weights = step_weights(example)
    GraphPicture(canvas, example).draw()
    left = 2.35 * STEP
    for number, op in enumerate(weights):
        canvas.text((left - 14, number * _ROW - 8), op, bold=True)
    total = 0
    for stage in range(1, example.k + 1):
        rows = worths(example, weights, limit, stage)
        best = best_labelling(example, rows, limit)
        total += best[0]
        _draw_stage(canvas, left, rows, best, f"stage {stage}")
        left += 3 * _COLUMN + 28
    needed = sum(row[-1] for row in weights.values())
    canvas.text((left + 50, -56), "any partition", bold=True)
    canvas.text((left + 50, -34), "all stages together", size=12, colour=PALE)
    for number, row in enumerate(weights.values()):
        canvas.text((left + 50, number * _ROW - 8), str(row[-1]))
    low = len(weights) * _ROW - 2
    canvas.text((left + 50, low), str(needed), bold=True, colour=CLASH)
    words = f"{limit} ticks: the stages are worth {total} together at most, and any partition is worth {needed}"
    canvas.text((left + 110, low + 30), words, anchor="end", bold=True, colour=CLASH)
    return canvas.svg(f"Worths of labels by stage; two stages reach {total} at most, and a partition has {needed}.")
