"""Palette of pages, pictures and graph files: stages, parts of costs and passes."""

from __future__ import annotations

BLUE, AMBER, TEAL, RED, GREY = "#3c5ae1", "#c38700", "#00a596", "#e10f3c", "#7f8b97"
"""Colours of quantities, which no stage has; blue is that of work, grey that of waiting."""

STAGES = (
    "#69691e", "#f05a96", "#00785a", "#d20096", "#a57878", "#9687d2",
    "#785a87", "#969678", "#5a6969", "#c369b4", "#c30f5a", "#0087ff",
)  # fmt: skip
"""Of the first stages in turn.

They and the first four colours of quantities are told apart in pairs, by less with protanopia, deuteranopia and
tritanopia; stages that follow each other by far more. 3 to 1 at least against white and dark paper.
"""

_PALER = 0.3
"""Part of white in the second dozen of stages."""

FORWARD, WEIGHTS, TRANSFER = "#5a87ff", "#e14b87", "#8787b4"

PASSES = {
    "forward": FORWARD,
    "backward": AMBER,
    "backward_input": AMBER,
    "backward_weight": WEIGHTS,
    "synchronisation": TEAL,
    "transfer": TRANSFER,
}
"""Of kinds of passes, and of what stands between them; text on them is dark."""

CRITICAL = RED
"""Of critical paths in pictures on white paper."""

DARK, WHITE = "#14181d", "#ffffff"
"""Text on light fills and on dark ones."""


def stage_colour(stage: int) -> str:
    """Return the colour of a stage: the second dozen has those of the first, paler; then they begin anew."""
    turn, place = divmod(stage, len(STAGES))
    return paler(STAGES[place], _PALER) if turn % 2 else STAGES[place]


def paler(colour: str, part: float) -> str:
    """Return a colour with so large a part of white in it."""
    return "#" + "".join(f"{round(value + (255 - value) * part):02x}" for value in rgb(colour))


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour as ``#rrggbb``, 0 … 255 each."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue


def text_on(fill: str) -> str:
    """Return the colour of text on a fill: the one of dark and white that contrasts more."""
    light = _luminance(fill) + _FLARE
    return DARK if light / (_luminance(DARK) + _FLARE) >= (_luminance(WHITE) + _FLARE) / light else WHITE


_FLARE = 0.05
"""Light that a screen reflects; all of this is of WCAG 2."""


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour."""
    parts = [value / 255 for value in rgb(colour)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
