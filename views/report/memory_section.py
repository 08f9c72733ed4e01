"""Memory of a simulated iteration over time: bytes where they are known, else micro-batches in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mtpp.training.timeline import BACKWARD, BACKWARD_WEIGHT, FORWARD, RowMemory, Timeline, TimelineRow
from mtpp.units import format_bytes
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Chart, Section

_KEPT, _FIXED = "#7f93ab", "#3b7dd8"
_FIXED_NAME, _KEPT_NAME = "held all the time", "kept for micro-batches in flight"
_ROW, _ROOM = 40, 60
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
    height = _ROOM + _ROW * len(steps)
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
