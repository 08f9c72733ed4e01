"""Drawing of the configuration bound: values of ops, of which no set that can be a stage holds more than 100 %."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from docs.drawing.canvas import INK, PALE, Canvas
from docs.drawing.example import LADDER, Example
from docs.drawing.stacked_shares import draw_shares
from docs.drawing.stage_sets import convex_sets

_ROW = 22.0


def values(example: Example, proof: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return the value of each op as a part of the capacity."""
    given = {example.ops[op]: Fraction(value, proof["capacity"]) for op, value in proof["weights"]}
    return {op: given.get(op, Fraction(0)) for op in example.ops}


def percent(part: Fraction | int, digits: int = 1) -> str:
    """Return a part as a percentage, without its sign."""
    return f"{float(100 * part):.{digits}f}"


def possible_stages(example: Example, limit: int) -> list[tuple[str, ...]]:
    """Return the largest sets that can be a stage of a partition in which none costs more than *limit*.

    They are convex and cost no more, and the rest, with what they cut, fits into the other stages.
    """
    total = sum(example.work.values())
    fitting = [
        some
        for some in convex_sets(example)
        if example.cost(some) <= limit
        and total - 2 * sum(example.work[op] for op in some) + example.cost(some) <= (example.k - 1) * limit
    ]
    return [some for some in fitting if not any(set(some) < set(other) for other in fitting)]


def picture() -> str:
    """Draw the configuration bound of the ladder."""
    canvas = Canvas()
    row = LADDER.bound("configuration")
    proof = row["lower_proof"]
    parts = values(LADDER, proof)
    total = sum(parts.values())
    shares = [(op, float(part), f"{percent(part)} %") for op, part in parts.items() if part > 0]
    draw_shares(canvas, shares, proof["stages"], f"together {percent(total, 3)} % of a stage")
    limit = row["lower"] - 1
    canvas.text((0, 116), f"The largest sets that can be a stage at {limit} ticks:", anchor="start")
    stages = sorted(possible_stages(LADDER, limit), key=lambda some: -sum(parts[op] for op in some))
    for number, some in enumerate(stages):
        x, y = (number % 2) * 330.0, 140 + number // 2 * _ROW
        held = " + ".join(percent(parts[op]) for op in some if parts[op] > 0)
        canvas.text((x, y), "{" + ", ".join(some) + "}", anchor="start", bold=True)
        canvas.text((x + 70, y), f"cost {LADDER.cost(some)}", anchor="start", colour=PALE)
        whole = f" = {percent(sum(parts[op] for op in some))}" if "+" in held else ""
        canvas.text((x + 130, y), f"{held}{whole} %", anchor="start", colour=INK)
    return canvas.svg(f"Values of the ops of the ladder, {percent(total, 3)} % of what a stage can hold.")
