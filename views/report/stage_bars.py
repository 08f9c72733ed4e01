"""Rows of a chart as bars of several parts: stages or devices, against marks such as the bottleneck and a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mtpp.views.report.colours import ACCENT, INK, PARTS, SURFACE
from mtpp.views.report.drawing import Drawing

NAMES = {"work": "work", "input": "in", "output": "out", "overflow": "overflow"}
"""Parts of a stage's cost, and what tables call them."""

_MOST_BARS_HIGH = 900
_TALLEST, _THINNEST = 34, 7
_ROOM, _NAMES_HIGH = 84, 36
"""Pixels for the axis and the names of lines, and for the latter."""


class BarPart(NamedTuple):
    """A part of all bars: its key, what it is called, and its colour."""

    key: str
    title: str
    colour: str


COST_PARTS = [BarPart(part, title, PARTS[part]) for part, title in NAMES.items()]
"""Of the bars of a plan's stages."""


def bars_height(rows: int) -> int:
    """Return the pixels of a chart of so many rows."""
    return _ROOM + max(_THINNEST * rows, min(_TALLEST * rows, _MOST_BARS_HIGH))


def bars(
    name: str,
    labels: Sequence[str],
    parts: Sequence[BarPart],
    values: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    *,
    x_label: str,
    first: tuple[str, float] | None = None,
    second: tuple[str, float] | None = None,
) -> Drawing:
    """Draw a bar for each row.

    Parameters
    ----------
    labels
        Names of the rows.
    values, texts
        Of each row its parts, in the unit of the axis and for people.
    first, second
        Names and places of a solid and a dashed line: the bottleneck, and a bound on it.
    """
    count = len(labels)
    row = (bars_height(count) - _ROOM) / max(count, 1)
    top = -0.5 - _NAMES_HIGH / row if count else -1.5
    longest = max([sum(one) for one in values] + [mark[1] for mark in (first, second) if mark], default=0.0)
    drawing = Drawing(
        name,
        height=bars_height(count),
        x=(0, longest * 1.04 or 1),
        y=(count - 0.4, top),
        x_label=x_label,
        rows=labels,
    )
    left = [0.0] * count
    for p, part in enumerate(parts):
        right = [start + one[p] for start, one in zip(left, values, strict=True)]
        columns: dict[str, Any] = {
            "left": left,
            "right": right,
            "top": [s - 0.36 for s in range(count)],
            "bottom": [s + 0.36 for s in range(count)],
            "row": list(labels),
            "told": [one[p] for one in texts],
        }
        tips = (("", "row"), (part.title, "told"))
        drawing.boxes(columns, name=f"part-{part.key}", fill=part.colour, edge=SURFACE, tips=tips)
        left = right
    marks = [
        (name, *mark, colour, dash, below)
        for name, mark, colour, dash, below in (
            ("bottleneck", first, ACCENT, "solid", 4),
            ("bound", second, INK, "dashed", 18),
        )
        if mark is not None
    ]
    for name_of, _, at, colour, dash, _ in marks:
        drawing.lines({"xs": [[at, at]], "ys": [[top, count]]}, name=name_of, colour=colour, width=2, dash=dash)
    for name_of, text, at, colour, _, below in marks:  # names lie over both lines
        drawing.texts(
            {"x": [at], "y": [top], "text": [text]},
            name=f"{name_of}-name", colour=colour, align="right", baseline="top", dx=-6, dy=below, bold=True,
            covering=True,
        )  # fmt: skip
    return drawing
