"""Pictures as SVG: shapes and texts on white, and the room that they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

INK, PALE, GRID = "#222222", "#777777", "#dddddd"
FLOW, TAKEN, CLASH = "#d55e00", "#0072b2", "#c00000"
"""Colours of flows, of what is singled out, and of what cannot be; the colour-blind tell them apart."""

Point = tuple[float, float]

_CHARACTER = 0.56
"""Width of a character as a part of the size of its letters, about."""

_MARGIN = 14.0


class Canvas:
    """Shapes in the order in which they were added; the picture is as large as they need."""

    def __init__(self) -> None:
        self._shapes: list[str] = []
        self._left = self._top = float("inf")
        self._right = self._bottom = float("-inf")

    def _cover(self, left: float, top: float, right: float, bottom: float) -> None:
        self._left, self._top = min(self._left, left), min(self._top, top)
        self._right, self._bottom = max(self._right, right), max(self._bottom, bottom)

    def text(
        self, at: Point, words: str, *, size: float = 13, colour: str = INK, anchor: str = "middle", bold: bool = False
    ) -> None:
        """Write words at the height of a point, which is their ``start``, ``middle`` or ``end``."""
        width = len(words) * size * _CHARACTER
        left = at[0] - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self._cover(left, at[1] - size * 0.7, left + width, at[1] + size * 0.7)
        weight = ' font-weight="bold"' if bold else ""
        self._shapes.append(
            f'<text x="{_number(at[0])}" y="{_number(at[1] + size * 0.35)}" font-size="{_number(size)}" '
            f'fill="{colour}" text-anchor="{anchor}"{weight}>{escape(words, quote=False)}</text>'
        )

    def rectangle(
        self, left: float, top: float, width: float, height: float, *, fill: str, edge: str = "none", corner: float = 0
    ) -> None:
        """Draw a filled rectangle."""
        self._cover(left, top, left + width, top + height)
        rounded = f' rx="{_number(corner)}"' if corner else ""
        self._shapes.append(
            f'<rect x="{_number(left)}" y="{_number(top)}" width="{_number(width)}" height="{_number(height)}"'
            f'{rounded} fill="{fill}" stroke="{edge}"/>'
        )

    def circle(self, at: Point, radius: float, *, fill: str, edge: str = INK, width: float = 1.2) -> None:
        """Draw a filled circle."""
        self._cover(at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius)
        self._shapes.append(
            f'<circle cx="{_number(at[0])}" cy="{_number(at[1])}" r="{_number(radius)}" fill="{fill}" '
            f'stroke="{edge}" stroke-width="{_number(width)}"/>'
        )

    def line(
        self,
        points: Sequence[Point],
        *,
        colour: str = INK,
        width: float = 1.2,
        dashed: bool = False,
        arrow: bool = False,
        opacity: float = 1,
    ) -> None:
        """Draw a line through points, an arrow at its end if asked for."""
        self._cover_points(points)
        path = "M" + " L".join(f"{_number(x)},{_number(y)}" for x, y in points)
        more = ' stroke-dasharray="5 4"' if dashed else ""
        more += f' opacity="{_number(opacity)}"' if opacity != 1 else ""
        self._shapes.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{_number(width)}"{more}/>')
        if arrow:
            self._arrow_head(points[-2], points[-1], colour, 5 + 1.5 * width)

    def _arrow_head(self, before: Point, tip: Point, colour: str, size: float) -> None:
        along = _unit(before, tip)
        across = (-along[1], along[0])
        back = (tip[0] - along[0] * size, tip[1] - along[1] * size)
        half = size * 0.42
        corners = [
            tip,
            (back[0] + across[0] * half, back[1] + across[1] * half),
            (back[0] - across[0] * half, back[1] - across[1] * half),
        ]
        path = "M" + " L".join(f"{_number(x)},{_number(y)}" for x, y in corners) + " Z"
        self._shapes.append(f'<path d="{path}" fill="{colour}"/>')

    def blob(self, points: Sequence[Point], *, radius: float, fill: str) -> None:
        """Draw the convex hull of points, rounded by a radius."""
        hull = _convex_hull(points)
        self._cover(
            min(x for x, _ in points) - radius,
            min(y for _, y in points) - radius,
            max(x for x, _ in points) + radius,
            max(y for _, y in points) + radius,
        )
        path = "M" + " L".join(f"{_number(x)},{_number(y)}" for x, y in [*hull, hull[0]]) + " Z"
        self._shapes.append(
            f'<path d="{path}" fill="{fill}" stroke="{fill}" stroke-width="{_number(2 * radius)}" '
            'stroke-linejoin="round" stroke-linecap="round"/>'
        )

    def _cover_points(self, points: Iterable[Point]) -> None:
        for x, y in points:
            self._cover(x, y, x, y)

    def svg(self, title: str) -> str:
        """Return the picture; *title* is what screen readers say."""
        left, top = self._left - _MARGIN, self._top - _MARGIN
        width, height = self._right - left + _MARGIN, self._bottom - top + _MARGIN
        box = " ".join(map(_number, (left, top, width, height)))
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{_number(width)}" '
                f'height="{_number(height)}" font-family="system-ui, sans-serif" role="img">',
                f"<title>{escape(title, quote=False)}</title>",
                f'<rect x="{_number(left)}" y="{_number(top)}" width="{_number(width)}" height="{_number(height)}" '
                'fill="white"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


def shortened(begin: Point, end: Point, before: float, behind: float) -> tuple[Point, Point]:
    """Return the ends of the line between two points, *before* and *behind* shorter."""
    x, y = _unit(begin, end)
    return (begin[0] + x * before, begin[1] + y * before), (end[0] - x * behind, end[1] - y * behind)


def beside(begin: Point, end: Point, distance: float) -> tuple[Point, Point]:
    """Return the line between two points moved sideways."""
    x, y = _unit(begin, end)
    return (begin[0] - y * distance, begin[1] + x * distance), (end[0] - y * distance, end[1] + x * distance)


def _unit(begin: Point, end: Point) -> Point:
    x, y = end[0] - begin[0], end[1] - begin[1]
    length = (x * x + y * y) ** 0.5 or 1.0
    return x / length, y / length


def _convex_hull(points: Sequence[Point]) -> list[Point]:
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered

    def chain(some: Iterable[Point]) -> list[Point]:
        found: list[Point] = []
        for x, y in some:
            while len(found) > 1 and _turns_right(found[-2], found[-1], (x, y)):
                found.pop()
            found.append((x, y))
        return found[:-1]

    return chain(ordered) + chain(reversed(ordered))


def _turns_right(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
