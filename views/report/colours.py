"""Colours of reports: quantities in those of the palette, ratios, and names that follow the scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mtpp.colours import AMBER, BLUE, DARK, GREY, PASSES, RED, TEAL, WHITE, text_on

PARTS = {"work": BLUE, "input": AMBER, "output": TEAL, "overflow": RED}
"""Of the parts of a stage's cost."""

MEMORY = {"weights": BLUE, "states": AMBER, "activations": TEAL}
"""Of the parts of what a stage holds."""

ITERATION = {
    "forward": PASSES["forward"],
    "backward": PASSES["backward"],
    "gradients": PASSES["synchronisation"],
    "edges": PASSES["transfer"],
    "busy": BLUE,
    "idle": GREY,
}
"""Of what stages and devices do in an iteration of a training."""

INK, SOFT, LINE, GRID, SURFACE, ACCENT = "ink", "soft", "line", "grid", "surface", "accent"
"""Colours that the style sheet has for light and dark schemes: text, quieter text, edges, grids, paper, marks."""

ON_FILL, ON_DARK_FILL = DARK, WHITE
"""Text on light fills, as those of cells are, and on dark ones."""

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


def by_ink(texts: Mapping[str, Sequence[Any]], fills: Sequence[str]) -> Iterator[tuple[str, str, dict[str, list[Any]]]]:
    """Yield the columns of texts on fills for each colour of text, with the ending of the name of that part.

    BokehJS fails where texts of one part differ in their colour and some of them are out of view.
    """
    for ending, ink in (("", ON_FILL), ("-light", ON_DARK_FILL)):
        own = [i for i, fill in enumerate(fills) if text_on(fill) == ink]
        yield ending, ink, {key: [column[i] for i in own] for key, column in texts.items()}


def ratio_colour(ratio: float | None, *, optimal: bool) -> str:
    """Return the colour of a cell with a ratio; that of 1 is for proven optima alone."""
    if ratio is None:
        return NO_RATIO[0]
    for limit, colour, _ in RATIOS[0 if optimal else 1 :]:
        if limit is None or ratio <= limit:
            return colour
    raise AssertionError("the last class has no limit")
