"""Memory of rows of a schedule over time, each against its limit."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from typing import Any, NamedTuple

from mtpp.colours import BLUE, TEAL
from mtpp.training.timeline import BACKWARD, BACKWARD_WEIGHT, FORWARD, RowMemory, Timeline, TimelineRow
from mtpp.views.report.colours import ACCENT, INK
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Chart, Section
from mtpp.views.report.training.scales import SizeScale, TimeScale

FIXED, KEPT = "held all the time", "kept for micro-batches in flight"
_KEPT, _FIXED = TEAL, BLUE
_ROW, _LOW_ROW, _ROOM = 84, 56, 60
_MOST_HIGH = 16
"""Rows that are high; more are lower."""

_FLOOR, _CEILING = 0.46, -0.18
"""Of the band of a row, whose number is in the middle; its name stands above it."""

_LONGEST_LIMIT = 10
"""A limit that is as many times the peak is named, and not drawn: the rest would be too flat to read."""

_PLACES = 7
_STEPS = (1, 2, 4, 5, 8, 10)
_NOTHING = RowMemory(0, ())


class Held(NamedTuple):
    """Since when, in ticks, so many micro-batches are in flight, and the bytes that are kept for them."""

    at: int
    in_flight: int
    kept: int


def held(row: TimelineRow, memory: RowMemory = _NOTHING) -> list[Held]:
    """Return what a row keeps from the start of each forward pass to the end of its backward pass, in its order.

    A backward pass in halves frees what it keeps with the second one, that of the weights.
    """
    split = any(bar.kind == BACKWARD_WEIGHT for bar in row.bars)
    freeing = (BACKWARD_WEIGHT if split else BACKWARD, BACKWARD)
    in_flight, kept, found = 0, 0, []
    for bar in row.bars:
        size = memory.kept[bar.loop] if memory.kept else 0
        if bar.kind == FORWARD:
            in_flight, kept = in_flight + 1, kept + size
            found.append(Held(bar.start, in_flight, kept))
        elif bar.kind in freeing:
            in_flight, kept = in_flight - 1, kept - size
            found.append(Held(bar.end, in_flight, kept))
    return found


def memory_section(timeline: Timeline, scale: TimeScale, charts: dict[str, Any]) -> Section:
    """Return the section, and add its chart to *charts*."""
    memory = timeline.memory or [_NOTHING] * len(timeline.rows)
    steps = [held(row, one) for row, one in zip(timeline.rows, memory, strict=True)]
    if timeline.memory:
        peaks = [
            one.fixed + max((step.kept for step in row), default=0) for one, row in zip(memory, steps, strict=True)
        ]
        limits = [one.limit for one in memory]
        near = [one for one in limits if one is not None and one <= _LONGEST_LIMIT * max(peaks, default=0)]
        sizes, own = SizeScale.of(max([*peaks, *near], default=0)), SizeScale.of(max(peaks, default=0))
        legend = [(_FIXED, FIXED), (_KEPT, KEPT)]
        caption = f"Memory of a device of each row over time ({sizes.unit}); all rows to one scale"
    else:
        peaks = [max((one.in_flight for one in row), default=0) for row in steps]
        limits = [None] * len(peaks)
        sizes = own = SizeScale("", 1)
        legend = []
        caption = (
            "Micro-batches in flight, whose activations are kept; all rows to one scale. Bytes are not known here."
        )
    drawn = [limit for limit in limits if limit is not None and limit <= _LONGEST_LIMIT * max(peaks, default=0)]
    largest = max([*peaks, *drawn], default=0)
    same = len(set(drawn)) == 1 and drawn[0] == largest
    marks = [0, largest / 2, largest] if same else _marks(largest, sizes.size)
    band = _Band((_FLOOR - _CEILING) / (max([*marks, *peaks, *drawn]) or 1))
    height = _ROOM + (_ROW if len(steps) <= _MOST_HIGH else _LOW_ROW) * len(steps)
    chart = Drawing(
        "in-flight",
        height=height,
        x=(0, scale.value(timeline.iteration) or 1),
        y=(len(steps) - 0.5, -0.5),
        x_label=scale.label,
        ticks=[
            (band.at(r, one), sizes.text(one).strip() if one == marks[-1] else sizes.number(one))
            for r in range(len(steps))
            for one in marks
        ],
        zoom="x",
    )
    _draw(chart, timeline, memory, steps, band, scale, own)
    if drawn:
        _draw_limits(chart, limits, band, scale.value(timeline.iteration), max(drawn))
        caption += "; the dashed line is the limit"
    elif any(limit is not None for limit in limits):
        caption += "; the limit lies too far above to be drawn"
    names: dict[str, Any] = {
        "x": [0.0] * len(steps),
        "y": [r - 0.36 for r in range(len(steps))],
        "text": [_told(row, peak, limit, own) for row, peak, limit in zip(timeline.rows, peaks, limits, strict=True)],
    }
    chart.texts(names, name="names", colour=INK, size=12, dx=4)
    charts["in-flight"] = chart.item()
    title = "Memory over time" if timeline.memory else "Micro-batches in flight"
    return Section("memory-part", title, [Chart("in-flight", caption, height, legend)])


class _Band(NamedTuple):
    """Heights of quantities above the floor of a row: *scale* for each byte, or micro-batch."""

    scale: float

    def at(self, row: int, size: float) -> float:
        """Return the place of so many on the axis of rows."""
        return round(row + _FLOOR - self.scale * size, _PLACES)


def _told(row: TimelineRow, peak: int, limit: int | None, sizes: SizeScale) -> str:
    """Return the name of a row, with what it holds at most."""
    if not sizes.unit:
        return f"{row.short}: at most {peak:,} in flight"
    return f"{row.short}: at most {sizes.text(peak)}" + ("" if limit is None else f" of {sizes.text(limit)}")


def _marks(largest: float, unit: int) -> list[float]:
    """Return round quantities of an axis: zero, a middle one and one that is no less than the largest."""
    whole = largest / unit
    if whole <= 0:
        return [0]
    power = 10.0 ** (ceil(log10(whole)) - 1)
    top = next(step * power for step in _STEPS if step * power >= whole * (1 - 1e-9))
    if unit == 1:
        top = max(1, ceil(top))
        return [0, top // 2, top] if top > 1 and top % 2 == 0 else [0, top]
    return [0, top / 2 * unit, top * unit]


def _draw(
    chart: Drawing,
    timeline: Timeline,
    memory: Sequence[RowMemory],
    steps: Sequence[Sequence[Held]],
    band: _Band,
    scale: TimeScale,
    sizes: SizeScale,
) -> None:
    """Draw what each row holds."""
    keys: tuple[str, ...] = ("left", "right", "top", "bottom", "bytes", "when")
    if not timeline.memory:
        keys = (*keys[:4], "when")
    fixed: dict[str, list[Any]] = {key: [] for key in keys}
    kept: dict[str, list[Any]] = {key: [] for key in (*keys, "flying")}

    def append(columns: dict[str, list[Any]], start: int, end: int, top: float, bottom: float, size: int) -> None:
        told = [sizes.text(size)] if timeline.memory else []
        when = f"{scale.number(start)} to {scale.text(end)}"
        for key, value in zip(keys, (scale.value(start), scale.value(end), top, bottom, *told, when), strict=True):
            columns[key].append(value)

    for r, (own, row) in enumerate(zip(memory, steps, strict=True)):
        if own.fixed:
            append(fixed, 0, timeline.iteration, band.at(r, own.fixed), band.at(r, 0), own.fixed)
        ends = [one.at for one in row[1:]] + [timeline.iteration]
        for one, end in zip(row, ends, strict=True):
            if one.in_flight > 0 and end > one.at:
                top = band.at(r, own.fixed + one.kept) if timeline.memory else band.at(r, one.in_flight)
                append(kept, one.at, end, top, band.at(r, own.fixed), own.fixed + one.kept)
                kept["flying"].append(f"{one.in_flight:,}")
    if timeline.memory:
        chart.boxes(fixed, name="fixed", fill=_FIXED, edge=_FIXED, edge_width=0.5, tips=((FIXED, "bytes"),))
    tips = (("in flight", "flying"), *((("memory", "bytes"),) if timeline.memory else ()), ("time", "when"))
    chart.boxes(kept, name="kept", fill=_KEPT, edge=_KEPT, edge_width=0.5, tips=tips)


def _draw_limits(chart: Drawing, limits: Sequence[int | None], band: _Band, end: float, largest: int) -> None:
    rows = [(r, limit) for r, limit in enumerate(limits) if limit is not None and limit <= largest]
    lines: dict[str, Any] = {
        "xs": [[0, end] for _ in rows],
        "ys": [[band.at(r, limit)] * 2 for r, limit in rows],
    }
    chart.lines(lines, name="limits", colour=ACCENT, width=1.5, dash="dashed")
