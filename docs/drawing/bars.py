"""Rows of bars, each a sum of parts, against a line that is the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from docs.drawing.canvas import CLASH, GRID, INK, PALE, TAKEN, Canvas

WORK, MOVE, WAIT = "#cfe3f3", "#fde0c8", "#eeeeee"
"""Fills of work, of transfers, and of what comes before or behind."""

_HEIGHT = 24.0
_ROW = 30.0


class Bar(NamedTuple):
    """A row: what it is of, sizes of its parts with words and fills, and words in place of the sum."""

    name: str
    parts: Sequence[tuple[float, str, str]]
    strong: bool = False
    words: str = ""


def draw_bars(
    canvas: Canvas,
    rows: Sequence[Bar],
    unit: float,
    bound: float,
    bound_words: str,
    *,
    total: str = "{:g}",
    gaps: Sequence[int] = (),
) -> None:
    """Draw rows from top to bottom, with the sum behind each.

    Parameters
    ----------
    unit
        Pixels for one.
    bound
        Where the line of the bound is.
    gaps
        Rows before which there is some room.
    """
    y, top = 0.0, 0.0
    for number, row in enumerate(rows):
        y += 12 if number in gaps else 0
        canvas.text((-10, y + _HEIGHT / 2), row.name, anchor="end", bold=row.strong)
        x = 0.0
        for size, words, fill in row.parts:
            canvas.rectangle(x, y, size * unit, _HEIGHT, fill=fill, edge=TAKEN if fill == WORK else PALE)
            canvas.text((x + size * unit / 2, y + _HEIGHT / 2), words, size=11, colour=INK)
            x += size * unit
        sum_words = row.words or total.format(sum(size for size, _, _ in row.parts))
        canvas.text((x + 8, y + _HEIGHT / 2), sum_words, anchor="start", bold=row.strong)
        y += _ROW
    canvas.line([(0, top - 8), (0, y)], colour=GRID)
    canvas.line([(bound * unit, top - 12), (bound * unit, y)], colour=CLASH, dashed=True, width=1.6)
    canvas.text((bound * unit, top - 22), bound_words, colour=CLASH, bold=True)
