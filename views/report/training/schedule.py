"""Schedules over time: passes as a Gantt chart with the critical path, and transfers that fold behind a switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.colours import CRITICAL
from mtpp.training.timeline import BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, Bar, Timeline, TimelineRow
from mtpp.views.report.colours import ACCENT, ON_FILL, SURFACE
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Chart, Prose, Section
from mtpp.views.report.training.memory_over_time import memory_section
from mtpp.views.report.training.scales import TimeScale
from mtpp.views.training.timeline_texts import colour, legend

_MOST_BARS = 10_000
"""Bars that are drawn one by one; of more, those that are shortest are drawn together."""

_MOST_CHANNELS = 16
_ROW, _ROOM = 32, 60

_HIGHER, _LOWER = (-0.42, 0.2), (-0.34, 0.28)
"""Top and bottom of forward passes and of backward ones, in a row: what colours say, places say as well."""

_CHANNEL = (-0.3, 0.1)
_LINE = 0.38
_BACKWARD = (BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT)


def timeline_sections(timeline: Timeline, charts: dict[str, Any], data: dict[str, Any]) -> list[Section]:
    """Return the sections on a simulated iteration, and add their charts to *charts*."""
    scale = TimeScale.of_timeline(timeline)
    return [schedule_section(timeline, scale, charts, data), memory_section(timeline, scale, charts)]


def schedule_section(timeline: Timeline, scale: TimeScale, charts: dict[str, Any], data: dict[str, Any]) -> Section:
    """Return the section on passes and transfers, and add its chart to *charts*."""
    channels = _busiest(timeline.channels)
    rows = [*timeline.rows, *channels]
    step = _step(rows)
    merged = [_merged(row.bars, step) for row in rows]
    count = len(timeline.rows)
    height = _ROOM + _ROW * count
    chart = Drawing(
        "gantt",
        height=height,
        x=(0, scale.value(timeline.iteration) or 1),
        y=(count - 0.5, -0.5),
        x_label=scale.label,
        rows=[row.label for row in timeline.rows] + [f"transfer {row.label}" for row in channels],
        zoom="x",
    )
    tips = (("", "pass"), ("", "time"))
    passes = _columns(merged[:count], 0, timeline, scale)
    chart.boxes(passes, name="passes", edge=SURFACE, edge_width=0.5, tips=tips)
    transfers = _columns(merged[count:], count, timeline, scale)
    chart.boxes(transfers, name="transfers", edge=SURFACE, edge_width=0.5, tips=tips)
    chart.texts(
        {"x": [], "y": [], "text": [], "angle": []}, name="micro-batches", colour=ON_FILL, size=10, align="center"
    )
    if timeline.critical:
        critical: dict[str, Any] = {
            "xs": [[scale.value(one.start), scale.value(one.end)] for one in timeline.critical],
            "ys": [[one.row + _LINE, one.row + _LINE] for one in timeline.critical],
        }
        chart.lines(critical, name="critical", colour=ACCENT, width=4)
    charts["gantt"] = chart.item()
    data["gantt"] = {
        "rows": count,
        "channels": len(channels),
        "short": [row.short for row in timeline.rows] + [row.short for row in channels],
        "row": _ROW,
        "room": _ROOM,
        "end": scale.value(timeline.iteration) or 1,
        "unit": scale.unit,
    }
    caption = (
        "Passes with their micro-batches, counted from 0, where there is room; forward passes stand higher, backward "
        "passes lower"
    )
    caption += f"; {_example(timeline)}"
    if timeline.critical:
        caption += "; the line below the passes is the critical path"
    blocks: list[Block] = [
        Chart("gantt", caption, height, [(c, name) for c, name in legend(timeline) if c != CRITICAL])
    ]
    busy = sum(any(bar.end > bar.start for bar in row.bars) for row in timeline.channels)
    if len(channels) < busy:
        blocks.append(Prose(f"Of {busy:,} channels, the {_MOST_CHANNELS} busiest are drawn.", quiet=True))
    if sum(len(row.bars) for row in rows) > sum(map(len, merged)):
        blocks.append(Prose("Passes too short to be told apart are drawn together; their hints name them.", quiet=True))
    return Section("gantt-part", "Schedule over time", blocks)


def _example(timeline: Timeline) -> str:
    """Explain the name of a pass."""
    if any(bar.name[:1].isdigit() for row in timeline.rows for bar in row.bars[:1]):
        return "1F2 is the forward pass of micro-batch 2 in stage 1, 1B2 the backward pass"
    return "F2 is the forward pass of micro-batch 2, B2 the backward pass"


def _columns(
    rows: Sequence[Sequence[tuple[Bar, str]]], first: int, timeline: Timeline, scale: TimeScale
) -> dict[str, list[Any]]:
    """Return places, names and times of the bars of rows, the first of which has the number *first*."""
    keys = ("left", "right", "top", "bottom", "fill", "pass", "time", *(() if first else ("label",)))
    columns: dict[str, list[Any]] = {key: [] for key in keys}
    for r, found in enumerate(rows, first):
        for bar, name in found:
            top, bottom = _CHANNEL if first else _LOWER if bar.kind in _BACKWARD else _HIGHER
            values = (
                *(scale.value(bar.start), scale.value(bar.end), round(r + top, 2), round(r + bottom, 2)),
                *(colour((bar.kind, bar.loop), timeline.loops), name),
                *(f"{scale.number(bar.start)} to {scale.text(bar.end)}", bar.label),
            )
            for key, value in zip(keys, values, strict=False):
                columns[key].append(value)
    return columns


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
