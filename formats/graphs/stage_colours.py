"""Colours for stages in drawings: far apart from one stage to the next, and light enough for black text on them."""

from __future__ import annotations

import colorsys

_GOLDEN_TURN = 0.6180339887498949
"""Part of the circle of hues between two stages that follow each other: multiples of it never come close."""

_SATURATIONS = (0.45, 0.25)
_FIRST_HUE = 0.58


def stage_rgb(stage: int) -> tuple[int, int, int]:
    """Return red, green and blue of a stage, 0 … 255 each: the same for the same number, whatever k is."""
    hue = (_FIRST_HUE + stage * _GOLDEN_TURN) % 1
    parts = colorsys.hsv_to_rgb(hue, _SATURATIONS[stage % len(_SATURATIONS)], 0.96)
    red, green, blue = (round(255 * part) for part in parts)
    return red, green, blue


def stage_colour(stage: int) -> str:
    """Return the colour of a stage as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*stage_rgb(stage))
