"""Cells of a table of certificates as a map: a line for each model, a column for each k, the ratio as colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.views.report.colours import NO_RATIO, ON_FILL, RATIOS, ratio_colour
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Chart, Section
from mtpp.views.report.stated import ratio_text

if TYPE_CHECKING:
    from mtpp.checker.report import Report
    from mtpp.views.report.stated import StatedRow

_ROW, _ROOM = 34, 60

_SIGNS = {"ok": "", "unchecked": " ?", "false": " ✗"}
"""What is written behind the ratio of a cell that was not verified."""


def _fill(row: StatedRow, found: Report) -> str:
    """Return the colour of a cell: none of a ratio that is false, and that of optima for those that were verified."""
    verdict = str(found.verdict)
    if verdict == "false":
        return NO_RATIO[0]
    return ratio_colour(row.ratio, optimal=row.optimal and verdict == "ok")


def cell_map_section(
    rows: Sequence[StatedRow],
    labels: Mapping[str, str],
    reports: Sequence[Report],
    charts: dict[str, Any],
) -> Section:
    """Return the section with the map, which goes to *charts*."""
    paths = list(dict.fromkeys(row.path for row in rows))
    counts = sorted({row.k for row in rows})
    height = _ROOM + _ROW * len(paths)
    drawing = Drawing(
        "cells",
        height=height,
        x=(-0.5, len(counts) - 0.5),
        y=(len(paths) - 0.5, -0.5),
        rows=[labels[path] for path in paths],
        columns=[f"k = {k}" for k in counts],
    )
    x = [counts.index(row.k) for row in rows]
    y = [paths.index(row.path) for row in rows]
    texts = [
        ratio_text(row.ratio) + _SIGNS[str(found.verdict)] for row, found in zip(rows, reports, strict=True)
    ]  # fmt: skip
    columns: dict[str, Any] = {
        "left": [one - 0.48 for one in x],
        "right": [one + 0.48 for one in x],
        "top": [one - 0.46 for one in y],
        "bottom": [one + 0.46 for one in y],
        "fill": [_fill(row, found) for row, found in zip(rows, reports, strict=True)],
        "model": [labels[row.path] for row in rows],
        "k": [str(row.k) for row in rows],
        "ratio": texts,
        "method": [f"{row.method}, tier {row.tier}" for row in rows],
    }
    tips = (("model", "model"), ("k", "k"), ("ratio", "ratio"), ("bound", "method"))
    drawing.boxes(columns, name="cells", tips=tips, clicked=True)
    drawing.texts({"x": x, "y": y, "text": texts}, name="ratios", colour=ON_FILL, align="center")
    charts["cells"] = drawing.item()
    legend = [(colour, name) for _, colour, name in RATIOS]
    legend.append(NO_RATIO)
    caption = (
        "Bottleneck over lower bound of each cell; ? not checked in full, ✗ verification failed. Click one to see it."
    )
    return Section("map-part", "Ratios", [Chart("cells", caption, height, legend)])
