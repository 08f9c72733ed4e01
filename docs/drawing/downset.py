"""Drawing of the bound of the downset search: every downset, and the fewest stages that reach it."""

from __future__ import annotations

from docs.drawing.canvas import CLASH, GRID, INK, TAKEN, Canvas, shortened
from docs.drawing.example import LADDER, Example
from docs.drawing.stage_sets import downsets

_STEP_X, _STEP_Y = 136.0, 150.0
_WIDTH, _HEIGHT = 84.0, 40.0


def fewest_stages(example: Example, cutoff: int) -> dict[tuple[str, ...], tuple[int, tuple[str, ...]]]:
    """Return by downset the fewest stages below *cutoff* that lead to it, and the downset before the last of them."""
    sets = downsets(example)
    found: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {(): (0, ())}
    for some in sets[1:]:
        ways = [
            (found[other][0] + 1, other)
            for other in sets
            if other in found
            and set(other) < set(some)
            and example.cost([op for op in some if op not in other]) < cutoff
        ]
        if ways:
            found[some] = min(ways, key=lambda way: (way[0], len(way[1]), way[1]))
    return found


def picture() -> str:
    """Draw the downsets of the ladder."""
    canvas = Canvas()
    row = LADDER.bound("downset")
    cutoff = row["lower"]
    reached = fewest_stages(LADDER, cutoff)
    columns: dict[int, list[tuple[str, ...]]] = {}
    for some in downsets(LADDER):
        columns.setdefault(len(some), []).append(some)
    at = {
        some: (size * _STEP_X, (place - (len(column) - 1) / 2) * _STEP_Y)
        for size, column in columns.items()
        for place, some in enumerate(column)
    }
    for some in at:
        for other in at:
            if set(some) < set(other) and len(other) == len(some) + 1:
                canvas.line([at[some], at[other]], colour=GRID, width=1.5)
    for some, (_, before) in reached.items():
        if some:
            added = [op for op in some if op not in before]
            begin, end = shortened(at[before], at[some], _WIDTH / 2 + 2, _WIDTH / 2 + 4)
            canvas.line([begin, end], colour=TAKEN, width=2, arrow=True)
            middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2 - 10)
            canvas.text(middle, f"{''.join(added)}: {LADDER.cost(added)}", size=11, colour=TAKEN)
    for some, (x, y) in at.items():
        count = reached[some][0]
        late = count > LADDER.k
        canvas.rectangle(
            x - _WIDTH / 2, y - _HEIGHT / 2, _WIDTH, _HEIGHT, fill="white", edge=CLASH if late else INK, corner=8
        )
        canvas.text((x, y - 8), "".join(some) or "∅", bold=True)
        words = "start" if not some else f"{count} stage" + ("s" if count > 1 else "")
        canvas.text((x, y + 9), words, size=12, colour=CLASH if late else INK)
    return canvas.svg(f"The downsets of the ladder and the fewest stages below {cutoff} ticks that reach each.")
