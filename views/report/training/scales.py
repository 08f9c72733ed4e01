"""Units of a page's quantities: one unit of time and one of memory, on axes, in tables and in hints alike."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.training.timeline import Timeline
from mtpp.units import PICOSECONDS

_TIMES = ("s", "ms", "µs", "ns")
_SIZES = ("TiB", "GiB", "MiB", "KiB")
_STEP = 1024
_DIGITS = 3
_FIGURES, _KEPT = 4, 10
_LEAST_SHARE = 0.1
"""Of a unit, from which on sizes are written in it."""

_WHOLE = 1000
"""Rates from here on have no digits behind the point."""

FILES_UNIT = "in the unit of the file"


@dataclass(frozen=True)
class TimeScale:
    """A unit of time with the ticks in it; without a name it is that of the file."""

    unit: str
    ticks: Fraction

    @classmethod
    def of(cls, longest: Fraction | int, ticks_per_unit: int, *, timed: bool) -> TimeScale:
        """Return the scale of times up to so many ticks."""
        if not timed:
            return cls("", Fraction(ticks_per_unit))
        for unit in _TIMES:
            if longest >= PICOSECONDS[unit]:
                return cls(unit, Fraction(PICOSECONDS[unit]))
        return cls("ps", Fraction(1))

    @classmethod
    def of_timeline(cls, timeline: Timeline) -> TimeScale:
        """Return the scale of an iteration."""
        return cls.of(timeline.iteration, timeline.ticks_per_unit, timed=timeline.timed)

    @property
    def label(self) -> str:
        """Name of an axis."""
        return f"time ({self.unit})" if self.unit else f"time {FILES_UNIT}"

    def headed(self, name: str) -> str:
        """Return the name of a column, with the unit."""
        return f"{name} ({self.unit})" if self.unit else name

    def value(self, ticks: Fraction | int) -> float:
        """Return a time in the unit, in as many figures as a drawing needs: pages of many passes stay small."""
        return float(f"{float(ticks / self.ticks):.{_KEPT}g}")

    def number(self, ticks: Fraction | float) -> str:
        """Write a time without its unit; one too short for the digits of the rest with two significant ones."""
        value = float(Fraction(ticks) / self.ticks)
        if value and abs(value) < 0.5 * 10**-_DIGITS:
            return f"{value:.2g}"
        return f"{value:,.{_DIGITS}f}" if self.unit != "ps" and self.unit else f"{value:,.6g}"

    def text(self, ticks: Fraction | float) -> str:
        """Write a time with its unit."""
        return f"{self.number(ticks)} {self.unit}".rstrip()


@dataclass(frozen=True)
class SizeScale:
    """A unit of memory with the bytes in it."""

    unit: str
    size: int

    @classmethod
    def of(cls, largest: int) -> SizeScale:
        """Return the scale of sizes up to so many bytes."""
        for place, unit in enumerate(_SIZES):
            size = _STEP ** (len(_SIZES) - place)
            if largest >= size:
                return cls(unit, size)
        return cls("B", 1)

    def headed(self, name: str) -> str:
        """Return the name of a column, with the unit."""
        return f"{name} ({self.unit})"

    def number(self, size: float) -> str:
        """Write a size without its unit."""
        value = size / self.size
        if value and value < 10**-_DIGITS:
            return f"{value:.2g}"
        digits = max(0, _FIGURES - len(f"{int(value)}"))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text

    def text(self, size: float) -> str:
        """Write a size with its unit; one far below or beyond in a unit of its own."""
        near = not size or _LEAST_SHARE * self.size <= size < _STEP * self.size
        own = self if near else SizeScale.of(int(size))
        return f"{own.number(size)} {own.unit}"

    def pair(self, size: float, of: float) -> str:
        """Write a size of a larger one, with one unit where both have it."""
        text, whole = self.text(size), self.text(of)
        number, _, unit = text.partition(" ")
        return f"{number if whole.endswith(f' {unit}') else text} of {whole}"


def rate_text(rate: Any) -> str:
    """Write four figures of a rate, without an exponent."""
    rounded = float(f"{float(rate):.{_FIGURES}g}")
    return f"{rounded:,.0f}" if rounded >= _WHOLE else f"{rounded:.{_FIGURES}g}"
