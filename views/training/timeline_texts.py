"""Times, channels and colours of a timeline, for people; times without a unit are plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpp.colours import CRITICAL, PASSES, paler
from mtpp.training.timeline import Timeline
from mtpp.units import PICOSECONDS, format_picoseconds, format_share

_NAMES = {"backward_input": "gradients of inputs", "backward_weight": "gradients of weights"}
"""Of kinds in a legend, where they are not their own."""

_PALEST = 0.7
"""Part of white in the shade of a device's last loop."""

_MOST_NAMED = 4
"""Loops that a legend names one by one; of more, the first and the last."""

Shade = tuple[str, int]
"""Kind of a bar, and the loop that it is of."""

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


def colour(shade: Shade, loops: int) -> str:
    """Return the colour of bars: the kind's own for the first loop, paler ones for those behind."""
    kind, loop = shade
    if loops == 1 or loop == 0:
        return PASSES[kind]
    return paler(PASSES[kind], _PALEST * loop / (loops - 1))


def shades(timeline: Timeline) -> Sequence[Shade]:
    """Return what there is to be coloured, in the order of the legend."""
    found = {(bar.kind, bar.loop) for row in timeline.rows for bar in row.bars}
    found |= {("transfer", 0) for row in timeline.channels for bar in row.bars if bar.end > bar.start}
    kinds = list(PASSES)
    return sorted(found, key=lambda one: (kinds.index(one[0]), one[1]))


def legend(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Yield the colours of a legend and what they stand for."""
    loops = timeline.loops
    for kind, loop in shades(timeline):
        if loops > _MOST_NAMED and 0 < loop < loops - 1:
            continue
        name = _NAMES.get(kind, kind)
        named = loops > 1 and kind not in ("synchronisation", "transfer")
        yield colour((kind, loop), loops), f"{name}, loop {loop + 1}" if named else name
    if timeline.critical:
        yield CRITICAL, "critical path"
