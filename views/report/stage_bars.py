"""Stages as bars of work, input, output and overflow, against the bottleneck and the lower bound."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.views.report.colours import ACCENT, INK, PARTS, SURFACE
from mtpp.views.report.drawing import Drawing

NAMES = {"work": "work", "input": "in", "output": "out", "overflow": "overflow"}
"""Parts of a cost, and what tables call them."""

_MOST_BARS_HIGH = 900
_TALLEST, _THINNEST = 34, 7
_ROOM, _NAMES_HIGH = 84, 36
"""Pixels for the axis and the names of lines, and for the latter."""


def bars_height(stages: int) -> int:
    """Return the pixels of a chart of so many stages."""
    return _ROOM + max(_THINNEST * stages, min(_TALLEST * stages, _MOST_BARS_HIGH))


def stage_bars(
    name: str,
    labels: Sequence[str],
    values: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    *,
    bottleneck: float,
    bound: float | None,
    unit: str,
) -> Drawing:
    """Draw a bar for each stage.

    Parameters
    ----------
    labels
        Names of the stages.
    values, texts
        Of each stage its work, input, output and overflow, in the unit of the axis and for people.
    bound
        The lower bound; None: there is none.
    """
    count = len(labels)
    row = (bars_height(count) - _ROOM) / max(count, 1)
    top = -0.5 - _NAMES_HIGH / row
    drawing = Drawing(
        name,
        height=bars_height(count),
        x=(0, max(bottleneck, bound or 0) * 1.04 or 1),
        y=(count - 0.4, top),
        x_label=unit,
        rows=labels,
    )
    left = [0.0] * count
    for p, part in enumerate(NAMES):
        right = [start + row[p] for start, row in zip(left, values, strict=True)]
        columns = {
            "left": left,
            "right": right,
            "top": [s - 0.36 for s in range(count)],
            "bottom": [s + 0.36 for s in range(count)],
            "stage": list(labels),
            "told": [row[p] for row in texts],
        }
        tips = (("stage", "stage"), (NAMES[part], "told"))
        drawing.boxes(columns, name=f"part-{part}", fill=PARTS[part], edge=SURFACE, tips=tips)
        left = right
    _mark(drawing, "bottleneck", bottleneck, "bottleneck", (top, count), ACCENT, "solid", below=4)
    if bound is not None:
        _mark(drawing, "bound", bound, "lower bound", (top, count), INK, "dashed", below=18)
    return drawing


def _mark(
    drawing: Drawing, name: str, at: float, text: str, ys: tuple[float, float], colour: str, dash: str, *, below: int
) -> None:
    """Draw a line down the chart, with its name so many pixels below the top."""
    drawing.lines({"xs": [[at, at]], "ys": [list(ys)]}, name=name, colour=colour, width=2, dash=dash)
    drawing.texts(
        {"x": [at], "y": [ys[0]], "text": [text]},
        name=f"{name}-name", colour=colour, align="right", baseline="top", dx=-6, dy=below, bold=True,
    )  # fmt: skip
