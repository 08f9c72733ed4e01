"""Diagrams of boxes and arrows, which need no script: the page's template writes them as pictures of text and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

MARGIN = 12
"""Pixels around a diagram."""


class Place(NamedTuple):
    """Left and top of a box."""

    x: float
    y: float


class Route(NamedTuple):
    """Path of an arrow, and the middle of its label."""

    path: str
    x: float
    y: float


class Box(NamedTuple):
    """A box with lines of text in a colour, *ink*; the first line is its name."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    ink: str
    lines: Sequence[str]
    told: str


class Arrow(NamedTuple):
    """An arrow along a path, with a label whose middle is at *x*, *y*; one of *quiet* carries nothing."""

    path: str
    width: float
    label: str
    x: float
    y: float
    told: str
    quiet: bool = False


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows, in pixels."""

    block: ClassVar[str] = "diagram"
    name: str
    caption: str
    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
