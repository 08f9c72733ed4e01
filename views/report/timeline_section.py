"""Schedules over time: passes and transfers as a Gantt chart with the critical path, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mtpp.training.timeline import BACKWARD, BACKWARD_WEIGHT, FORWARD, Bar, RowMemory, Timeline, TimelineRow
from mtpp.units import PICOSECONDS, format_bytes
from mtpp.views.report.colours import ACCENT, BLUE, ON_FILL, SURFACE, TEAL
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Chart, Prose, Section
from mtpp.views.training.timeline_texts import CRITICAL, colour, legend, time_text

_MOST_BARS = 12_000
"""Bars that are drawn one by one; of more, those that are shortest are drawn together."""

_MOST_NAMED = 4_000
_MOST_CHANNELS = 16
_ROW, _ROOM = 30, 60

_KEPT, _FIXED = TEAL, BLUE
_FIXED_NAME, _KEPT_NAME = "held all the time", "kept for micro-batches in flight"
_MEMORY_ROW, _MEMORY_ROOM = 40, 60
_NOTHING = RowMemory(0, ())


def timeline_sections(timeline: Timeline, charts: dict[str, Any], data: dict[str, Any]) -> list[Section]:
    """Return the sections on a simulated iteration, and add their charts to *charts*."""
    unit, ticks = _unit(timeline)
    channels = _busiest(timeline.channels)
    rows = [*timeline.rows, *channels]
    step = _step(rows)
    merged = [_merged(row.bars, step) for row in rows]
    labels = [row.label for row in timeline.rows] + [f"transfer {row.label}" for row in channels]
    height = _ROOM + _ROW * len(rows)
    chart = Drawing(
        "gantt",
        height=height,
        x=(0, timeline.iteration / ticks or 1),
        y=(len(rows) - 0.5, -0.5),
        x_label=unit,
        rows=labels,
        zoom="x",
    )
    columns: dict[str, list[Any]] = {key: [] for key in ("left", "right", "top", "bottom", "fill", "pass", "time")}
    for r, found in enumerate(merged):
        for bar, name in found:
            columns["left"].append(bar.start / ticks)
            columns["right"].append(bar.end / ticks)
            columns["top"].append(r - 0.4)
            columns["bottom"].append(r + (0.26 if r < len(timeline.rows) else 0.0))
            columns["fill"].append(colour((bar.kind, bar.loop), timeline.loops))
            columns["pass"].append(name)
            columns["time"].append(f"{time_text(timeline, bar.start)} to {time_text(timeline, bar.end)}")
    chart.boxes(columns, name="passes", edge=SURFACE, edge_width=0.5, tips=(("", "pass"), ("", "time")))
    named = [(r, bar) for r, found in enumerate(merged[: len(timeline.rows)]) for bar, _ in found if bar.label]
    if named and len(named) <= _MOST_NAMED:
        texts: dict[str, Any] = {
            "x": [(bar.start + bar.end) / 2 / ticks for _, bar in named],
            "y": [r - 0.07 for r, _ in named],
            "text": [bar.label for _, bar in named],
        }
        chart.texts(texts, name="micro-batches", colour=ON_FILL, size=11, align="center")
        data["gantt"] = {**texts, "widths": [(bar.end - bar.start) / ticks for _, bar in named]}
    if timeline.critical:
        critical: dict[str, Any] = {
            "xs": [[one.start / ticks, one.end / ticks] for one in timeline.critical],
            "ys": [[one.row + 0.36, one.row + 0.36] for one in timeline.critical],
        }
        chart.lines(critical, name="critical", colour=ACCENT, width=4)
    charts["gantt"] = chart.item()
    caption = "Passes of each row and the transfers between them; drag to move, Ctrl and the wheel to zoom"
    if timeline.critical:
        caption += "; the line below the passes is the critical path"
    blocks: list[Block] = [
        Chart("gantt", caption, height, [(c, name) for c, name in legend(timeline) if c != CRITICAL])
    ]
    if len(channels) < sum(any(bar.end > bar.start for bar in row.bars) for row in timeline.channels):
        blocks.append(Prose(f"Of the channels, the {_MOST_CHANNELS} busiest are drawn.", quiet=True))
    if sum(len(row.bars) for row in rows) > sum(map(len, merged)):
        blocks.append(Prose("Passes too short to be told apart are drawn together; their hints name them.", quiet=True))
    return [Section("gantt-part", "Schedule over time", blocks), memory_section(timeline, unit, ticks, charts)]


def _unit(timeline: Timeline) -> tuple[str, int]:
    """Return the label of the axis of time, and the ticks in its unit."""
    if not timeline.timed:
        return "time in the unit of the file", timeline.ticks_per_unit
    for unit in ("s", "ms", "µs", "ns"):
        if timeline.iteration >= 10 * PICOSECONDS[unit]:
            return f"time ({unit})", PICOSECONDS[unit]
    return "time (ps)", 1


def _busiest(channels: Sequence[TimelineRow]) -> list[TimelineRow]:
    busy = [sum(bar.end - bar.start for bar in row.bars) for row in channels]
    shown = sorted((c for c, one in enumerate(busy) if one), key=lambda c: -busy[c])[:_MOST_CHANNELS]
    return [channels[c] for c in sorted(shown)]


def _step(rows: Sequence[TimelineRow]) -> int:
    """Return the ticks below which bars that follow each other are drawn together: 0 where none has to be."""
    if sum(len(row.bars) for row in rows) <= _MOST_BARS:
        return 0
    step = 1
    while sum(len(_merged(row.bars, step)) for row in rows) > _MOST_BARS:
        step *= 2
    return step


def _merged(bars: Sequence[Bar], step: int) -> list[tuple[Bar, str]]:
    """Return bars with what they are called; those that end within *step* of the first one's start are one."""
    found: list[tuple[Bar, str]] = []
    at = 0
    while at < len(bars):
        first, last = at, at
        while last + 1 < len(bars) and bars[last + 1].end - bars[first].start < step:
            last += 1
        bar = bars[first]
        if last > first:
            name = f"{bar.name} … {bars[last].name} ({last - first + 1} passes)"
            found.append((bar._replace(label="", end=bars[last].end), name))
        elif bar.end > bar.start:
            found.append((bar, bar.name))
        at = last + 1
    return found


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


def memory_section(timeline: Timeline, unit: str, ticks: int, charts: dict[str, Any]) -> Section:
    """Return the section, and add its chart to *charts*; time is in *unit* of so many *ticks*."""
    memory = timeline.memory or [_NOTHING] * len(timeline.rows)
    steps = [held(row, one) for row, one in zip(timeline.rows, memory, strict=True)]
    if timeline.memory:
        peaks = [own.fixed + max((one.kept for one in row), default=0) for own, row in zip(memory, steps, strict=True)]
        texts = [format_bytes(size) for size in peaks]
        legend = [(_FIXED, _FIXED_NAME), (_KEPT, _KEPT_NAME)]
        caption = "Memory of each device over time; all rows to one scale"
    else:
        peaks = [max((one.in_flight for one in row), default=0) for row in steps]
        texts = [f"{count:,}" for count in peaks]
        legend = []
        caption = (
            "Micro-batches in flight, whose activations are kept; all rows to one scale. Bytes are not known here."
        )
    height = _MEMORY_ROOM + _MEMORY_ROW * len(steps)
    chart = Drawing(
        "in-flight",
        height=height,
        x=(0, timeline.iteration / ticks or 1),
        y=(len(steps) - 0.5, -0.5),
        x_label=unit,
        rows=[f"{row.short}, at most {text}" for row, text in zip(timeline.rows, texts, strict=True)],
        zoom="x",
    )
    _draw(chart, timeline, memory, steps, 0.9 / (max(peaks, default=0) or 1), ticks)
    charts["in-flight"] = chart.item()
    return Section("memory-part", "Memory over time", [Chart("in-flight", caption, height, legend)])


def _draw(
    chart: Drawing,
    timeline: Timeline,
    memory: Sequence[RowMemory],
    steps: Sequence[Sequence[Held]],
    scale: float,
    ticks: int,
) -> None:
    """Draw what each row holds, *scale* being the height of a byte, or of a micro-batch."""
    fixed: dict[str, list[Any]] = {key: [] for key in ("left", "right", "top", "bottom", "bytes")}
    kept: dict[str, list[Any]] = {key: [] for key in (*fixed, "flying")}
    for r, (own, row) in enumerate(zip(memory, steps, strict=True)):
        floor = r + 0.45
        base = floor - scale * own.fixed
        if own.fixed:
            _append(fixed, 0, timeline.iteration / ticks, base, floor, format_bytes(own.fixed))
        ends = [one.at for one in row[1:]] + [timeline.iteration]
        for one, end in zip(row, ends, strict=True):
            if one.in_flight > 0 and end > one.at:
                top = base - scale * (one.kept if timeline.memory else one.in_flight)
                told = format_bytes(own.fixed + one.kept)
                _append(kept, one.at / ticks, end / ticks, top, base, told)
                kept["flying"].append(f"{one.in_flight:,}")
    if timeline.memory:
        chart.boxes(fixed, name="fixed", fill=_FIXED, edge=_FIXED, edge_width=0.5, tips=((_FIXED_NAME, "bytes"),))
    tips = (("in flight", "flying"), *((("memory", "bytes"),) if timeline.memory else ()))
    chart.boxes(kept, name="kept", fill=_KEPT, edge=_KEPT, edge_width=0.5, tips=tips)


def _append(columns: dict[str, list[Any]], left: float, right: float, top: float, bottom: float, text: str) -> None:
    for key, value in (("left", left), ("right", right), ("top", top), ("bottom", bottom), ("bytes", text)):
        columns[key].append(value)
