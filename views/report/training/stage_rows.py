"""A line of stages in rows below each other: arrows between neighbours, and others in lanes between the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.views.report.diagram import MARGIN, Place, Route

IN_ROW = 5
"""Stages beside each other."""

_LANE, _ROOM = 16, 22
"""Pixels between lanes, and above the first of a gutter."""

_TURN, _SIDE = 9, 5
"""Pixels that a turn to the next row, and a lane at the side, stand off the boxes."""


@dataclass(frozen=True)
class StageRows:
    """Rows of boxes of one size, with gutters above and between them as high as their lanes need.

    Attributes
    ----------
    pairs
        Stages that an arrow leads from and to, the second behind the first.
    """

    count: int
    pairs: Sequence[tuple[int, int]]
    width: int
    gap: int
    height: int

    def laid_out(self) -> tuple[list[Place], list[Route]]:
        """Return the places of the stages, and the routes of the arrows."""
        lanes: list[list[int]] = []
        taken: Counter[int] = Counter()
        sides = 0
        for u, v in self.pairs:
            own = []
            for gutter in self._gutters(u, v):
                own.append(taken[gutter])
                taken[gutter] += 1
            if len(own) == 2:
                own.append(sides)
                sides += 1
            lanes.append(own)
        left = MARGIN + (_SIDE * (sides + 1) if sides else 0)
        top, tops = float(MARGIN), []
        for row in range(-(-self.count // IN_ROW)):
            top += (_ROOM + _LANE * (taken[row] - 1) + 8) if taken[row] else 0 if row == 0 else _ROOM
            tops.append(top)
            top += self.height
        places = [Place(left + (s % IN_ROW) * (self.width + self.gap), tops[s // IN_ROW]) for s in range(self.count)]
        arriving = Counter(v for u, v in self.pairs if v - u > 1)
        seen: Counter[int] = Counter()
        routes = []
        for (u, v), own in zip(self.pairs, lanes, strict=True):
            share = 0.5
            if v - u > 1:
                seen[v] += 1
                share = 0.9 - 0.8 * seen[v] / (arriving[v] + 1)
            routes.append(self._route(places, (u, v), own, tops, share))
        return places, routes

    def _gutters(self, u: int, v: int) -> list[int]:
        """Return the gutters, each above the row of its number, that an arrow runs in."""
        first, last = u // IN_ROW, v // IN_ROW
        if first == last:
            return [first] if v - u > 1 else []
        return [last] if last == first + 1 else [first + 1, last]

    def _route(
        self, places: Sequence[Place], pair: tuple[int, int], lanes: Sequence[int], tops: Sequence[float], share: float
    ) -> Route:
        (u, v), source, target = pair, places[pair[0]], places[pair[1]]
        middle = self.height / 2
        if not lanes:
            y = source.y + middle
            return Route(
                f"M{source.x + self.width:.1f},{y:.1f}H{target.x - 2:.1f}",
                (source.x + self.width + target.x) / 2,
                y - 6,
            )
        levels = [tops[gutter] - 8 - _LANE * lane for gutter, lane in zip(self._gutters(u, v), lanes, strict=False)]
        if v - u == 1:  # on to the next row
            right, side = source.x + self.width + _TURN, target.x - _TURN
            path = f"M{source.x + self.width:.1f},{source.y + middle:.1f}H{right:.1f}V{levels[0]:.1f}H{side:.1f}"
            return Route(f"{path}V{target.y + middle:.1f}H{target.x - 2:.1f}", (right + side) / 2, levels[0] - 4)
        start = source.x + self.width * 0.8
        end = target.x + self.width * share
        begin = source.y if u // IN_ROW == v // IN_ROW else source.y + self.height
        path = f"M{start:.1f},{begin:.1f}V{levels[0]:.1f}"
        middle_x = (start + end) / 2
        if len(levels) > 1:
            side = MARGIN + _SIDE * lanes[2]
            path += f"H{side:.1f}V{levels[1]:.1f}"
            middle_x = (start + side) / 2
        return Route(f"{path}H{end:.1f}V{target.y - 2:.1f}", middle_x, levels[0] - 4)
