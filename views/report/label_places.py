"""Places of labels beside the edges of a drawing, so that none covers a box or another label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Place = tuple[float, float]

_ALONG = (0.5, 0.38, 0.62, 0.26, 0.74, 0.85, 0.15, 0.93, 0.07)
"""Shares of an edge's length at which a label is tried; of edges that leave a box with many others from its end."""

_CELL = 40.0
_GAP = 3.0
_CROWDED = 3
"""Edges that begin in one box, from which on labels are tried near the ends first."""


class Box(NamedTuple):
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two share a point."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class _Taken:
    """Rectangles that are taken, found by the cells of a grid that they lie in."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Box]] = {}

    def add(self, box: Box) -> None:
        for cell in _cells(box):
            self._cells.setdefault(cell, []).append(box)

    def meets(self, box: Box) -> bool:
        return any(box.meets(other) for cell in _cells(box) for other in self._cells.get(cell, ()))


def _cells(box: Box) -> Iterator[tuple[int, int]]:
    for x in range(int(box.left // _CELL), int(box.right // _CELL) + 1):
        for y in range(int(box.top // _CELL), int(box.bottom // _CELL) + 1):
            yield x, y


def label_places(
    edges: Sequence[Sequence[Place]], sizes: Sequence[tuple[float, float]], boxes: Sequence[Box], order: Sequence[int]
) -> dict[int, Place]:
    """Place labels greedily beside their edges.

    Parameters
    ----------
    edges
        Points that each edge passes through.
    sizes
        Width and height of each label.
    boxes
        Rectangles that no label may cover.
    order
        Edges, those first whose labels matter most.

    Returns
    -------
    The centre of each label that has room; the others are left out.

    Notes
    -----
    O(edges · labels and boxes near them).
    """
    taken, found = _Taken(), {}
    for box in boxes:
        taken.add(box)
    starts = [(round(one[0][0]), round(one[0][1])) for one in edges]
    counts = {start: starts.count(start) for start in set(starts)}
    for e in order:
        width, height = sizes[e]
        crowded = counts[starts[e]] >= _CROWDED
        for x, y in _tried(edges[e], width, crowded=crowded):
            box = Box(x - width / 2 - _GAP, y - height / 2, x + width / 2 + _GAP, y + height / 2)
            if not taken.meets(box):
                taken.add(box)
                found[e] = (x, y)
                break
    return found


def _tried(points: Sequence[Place], width: float, *, crowded: bool) -> Iterator[Place]:
    """Yield centres of a label at places along an edge: to its right, to its left, on it.

    Of edges that begin together the end is first, where they are apart.
    """
    lengths = [((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 for (x0, y0), (x1, y1) in pairwise(points)]
    (x0, y0), (x1, y1) = points[-2:]
    if crowded and abs(x1 - x0) > abs(y1 - y0):
        yield x1 - (1 if x1 > x0 else -1) * (width / 2 + 4), y1
    along = sorted(_ALONG, key=lambda share: abs(share - 0.8)) if crowded else _ALONG
    for aside in (width / 2 + 5, -width / 2 - 5, 0.0):
        for share in along:
            x, y = _at(points, lengths, share * sum(lengths))
            yield x + aside, y


def _at(points: Sequence[Place], lengths: Sequence[float], distance: float) -> Place:
    for ((x0, y0), (x1, y1)), length in zip(pairwise(points), lengths, strict=True):
        if distance <= length and length:
            share = distance / length
            return x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        distance -= length
    return points[-1]
