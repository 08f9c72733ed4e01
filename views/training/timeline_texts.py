"""Times and channels of a timeline, written for people; times without a unit as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.training.timeline import Timeline
from mtpp.units import PICOSECONDS, format_picoseconds, format_share

_FIGURES = 10
"""Digits of a number without a unit, at most."""

_NAMED = 3
"""Channels that a figure names."""


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


def busiest_channels(channels: Sequence[tuple[int, int, int]], whole: int) -> str | None:
    """Return the figure of channels, each with its ends and busy ticks; None where there is none."""
    if not channels:
        return None
    busy = sorted((one for one in channels if one[2]), key=lambda one: -one[2])
    if not busy:
        return "transfers take no time"
    named = ", ".join(f"{source} → {target} {format_share(ticks, whole)}" for source, target, ticks in busy[:_NAMED])
    return f"busiest {named}" + (f", {len(busy) - _NAMED:,} more" if len(busy) > _NAMED else "")
