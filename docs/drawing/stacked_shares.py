"""A row of shares, one an op, that add up to more than there are stages."""

from __future__ import annotations

from collections.abc import Sequence

from docs.drawing.canvas import CLASH, GRID, PALE, TAKEN, Canvas

_STAGE = 180.0
_HEIGHT = 40.0
_FILLS = ("#cfe3f3", "#e4f0f9")


def draw_shares(canvas: Canvas, shares: Sequence[tuple[str, float, str]], k: int, total: str) -> None:
    """Draw shares of a stage side by side, with what k stages can hold.

    Parameters
    ----------
    shares
        Name, size as a part of a stage, and the size in words, of each.
    total
        What all are together, in words.
    """
    left = 0.0
    for number, (name, size, words) in enumerate(shares):
        width = size * _STAGE
        canvas.rectangle(left, 0, width, _HEIGHT, fill=_FILLS[number % 2], edge=TAKEN)
        canvas.text((left + width / 2, 12), name, bold=True)
        canvas.text((left + width / 2, 28), words, size=12)
        left += width
    for stage in range(k + 1):
        last = stage == k
        colour = CLASH if last else GRID
        canvas.line([(stage * _STAGE, -8), (stage * _STAGE, _HEIGHT + 14)], colour=colour, width=2 if last else 1)
        canvas.text(
            (stage * _STAGE, _HEIGHT + 24), str(stage), size=11, colour=CLASH if last else PALE, anchor="middle"
        )
    canvas.text((k * _STAGE / 2, _HEIGHT + 40), "stages", size=12, colour=PALE)
    canvas.text((left, -20), total, anchor="end", bold=True, colour=CLASH)
