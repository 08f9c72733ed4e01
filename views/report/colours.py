"""Colours of reports: of parts of a stage's cost, of ratios, and names of those that follow the reader's scheme."""

from __future__ import annotations

PARTS = {"work": "#3b7dd8", "input": "#c8750f", "output": "#8a63c9", "overflow": "#d1495b"}
"""Of the parts of a stage's cost: 3 to 1 at least against both backgrounds."""

INK, SOFT, LINE, GRID, SURFACE, ACCENT = "ink", "soft", "line", "grid", "surface", "accent"
"""Colours that the style sheet has for light and dark schemes: text, quieter text, edges, grids, paper, marks."""

ON_FILL = "#14181d"
"""Text on the fills of stages and cells, all of which are light."""

RATIOS: tuple[tuple[float | None, str, str], ...] = (
    (1.0, "#7bd0a4", "1, optimal"),
    (1.01, "#bfe3b4", "up to 1.01"),
    (1.05, "#e9edb0", "up to 1.05"),
    (1.1, "#f7dc9a", "up to 1.1"),
    (1.25, "#f6bd85", "up to 1.25"),
    (None, "#ee9f95", "above 1.25"),
)
"""Largest ratio, colour and name of each class of cells; None: no limit."""

NO_RATIO = ("#cfd4da", "no ratio, or a false one")


def ratio_colour(ratio: float | None, *, optimal: bool) -> str:
    """Return the colour of a cell with a ratio; that of 1 is for proven optima alone."""
    if ratio is None:
        return NO_RATIO[0]
    for limit, colour, _ in RATIOS[0 if optimal else 1 :]:
        if limit is None or ratio <= limit:
            return colour
    raise AssertionError("the last class has no limit")
