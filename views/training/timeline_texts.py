"""Times of a timeline, written for people; those without a unit as plain numbers."""

from __future__ import annotations

from mtpp.training.timeline import Timeline
from mtpp.units import PICOSECONDS, format_picoseconds

_FIGURES = 10
"""Digits of a number without a unit, at most."""


def time_text(timeline: Timeline, ticks: int) -> str:
    """Write a length of time: ``36.20 ms``, or ``122`` in an abstract unit."""
    return format_picoseconds(ticks) if timeline.timed else plain_time(timeline, ticks)


def axis_text(timeline: Timeline, ticks: int) -> str:
    """Write a time below an axis, in a unit that fits the whole iteration."""
    if not timeline.timed:
        return plain_time(timeline, ticks)
    for unit in ("s", "ms", "µs", "ns"):
        if timeline.iteration >= PICOSECONDS[unit]:
            return f"{ticks / PICOSECONDS[unit]:g} {unit}"
    return f"{ticks} ps"


def plain_time(timeline: Timeline, ticks: int) -> str:
    """Write a time in the file's own unit, without naming it."""
    return f"{ticks / timeline.ticks_per_unit:,.{_FIGURES}g}"
