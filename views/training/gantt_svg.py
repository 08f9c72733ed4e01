"""Gantt chart of a simulated pipeline as a picture (SVG): rows of passes, channels below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from mtpp.colours import CRITICAL
from mtpp.terminal_safe import terminal_safe
from mtpp.training.timeline import Bar, Timeline, TimelineRow
from mtpp.views.training.timeline_texts import Shade, axis_text, colour, legend, shades, time_text

_CHART_WIDTH, _RIGHT, _TOP = 1200, 24, 44
_CHARACTER, _TITLE_CHARACTER = 6.7, 8
_ROW, _BAR = 26, 22
_CHANNEL_ROW, _CHANNEL_BAR = 14, 8
_LEGEND_ROW = 20
_LEAST_WIDTH = 0.5
"""Pixels in which all bars are drawn as one: on top of each other, as high as each kind's part of the time."""

_THINNEST, _EDGED = 0.05, 3
"""Pixels of the thinnest bar, and of those from which on bars have an edge."""

_LINE = 18.5
"""Pixels from the top of a row to the line of the critical path, below the numbers."""

_TICKS = 8

_LONGEST_LABEL = 52
_MOST_CHANNELS = 64
"""Channels that are drawn: the busiest."""

_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#222}.n{text-anchor:middle;font-size:10px}.l{text-anchor:end}"
    ".c{font-size:9px;fill:#555}.t{font:bold 13px system-ui,sans-serif}.g{stroke:#ddd}"
    f".p{{fill:none;stroke:{CRITICAL};stroke-width:2;stroke-linejoin:round}}"
)


def gantt_svg(timeline: Timeline) -> str:
    """Return a chart as a picture of its own: names of passes to be hovered over, the critical path as a red line.

    Notes
    -----
    O(passes + messages); what is within half a pixel is drawn together. Of many channels, the busiest are shown.
    """
    return "\n".join(_lines(timeline)) + "\n"


def _lines(timeline: Timeline) -> Iterator[str]:
    names = [_shortened(terminal_safe(row.label)) for row in timeline.rows]
    channels = _busiest(timeline)
    left = int(max(len(name) for name in [*names, *(one.label for one in channels)]) * _CHARACTER) + 16
    width = left + _CHART_WIDTH + _RIGHT
    title = f"{terminal_safe(timeline.name)}: {time_text(timeline, timeline.iteration)} an iteration"
    key = list(legend(timeline))
    beside = len(title) * _TITLE_CHARACTER + _length(key) + _RIGHT < width
    top = _TOP if beside else _TOP + _LEGEND_ROW
    height = top + len(names) * _ROW + (len(channels) * _CHANNEL_ROW + 8 if channels else 0) + 28
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<style>{_STYLE}</style>"
    )
    yield f'<rect width="{width}" height="{height}" fill="#fff"/><text class="t" x="12" y="18">{escape(title)}</text>'
    yield from _legend(key, width - _RIGHT - _length(key) if beside else 12, 9 if beside else 9 + _LEGEND_ROW)
    scale = _CHART_WIDTH / max(1, timeline.iteration)
    yield from _axis(timeline, left, top - 6, height - 20, scale)
    used = shades(timeline)
    y = top
    for row, name in zip(timeline.rows, names, strict=True):
        yield f'<text class="l" x="{left - 8}" y="{y + 15}">{escape(name)}</text>'
        yield from _bars(row.bars, left, y, _BAR, scale, name, timeline, used)
        y += _ROW
    y += 8
    for row in channels:
        yield f'<text class="l c" x="{left - 8}" y="{y + 8}">{row.label}</text>'
        yield from _bars(row.bars, left, y, _CHANNEL_BAR, scale, f"transfer {row.label}", timeline, used)
        y += _CHANNEL_ROW
    yield from _critical_path(timeline, left, top, scale)
    yield "</svg>"


def _busiest(timeline: Timeline) -> Sequence[TimelineRow]:
    busy = [sum(bar.end - bar.start for bar in row.bars) for row in timeline.channels]
    shown = sorted((c for c, ticks in enumerate(busy) if ticks), key=lambda c: -busy[c])[:_MOST_CHANNELS]
    return [timeline.channels[c] for c in sorted(shown)]


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"


def _length(key: Sequence[tuple[str, str]]) -> float:
    """Return the pixels that a legend is long."""
    return sum(len(name) * _CHARACTER + 30 for _, name in key)


def _legend(key: Sequence[tuple[str, str]], x: float, y: int) -> Iterator[str]:
    for fill, name in key:
        yield f'<rect x="{x:.0f}" y="{y}" width="12" height="12" fill="{fill}"/>'
        yield f'<text x="{x + 16:.0f}" y="{y + 10}">{name}</text>'
        x += len(name) * _CHARACTER + 30


def _axis(timeline: Timeline, left: int, top: int, bottom: int, scale: float) -> Iterator[str]:
    """Yield lines and times at round distances of time."""
    total, step = max(1, timeline.iteration), 1
    while total > _TICKS * step:
        step *= 10
    step = next((step // part for part in (5, 2) if step % part == 0 and total <= _TICKS * step // part), step)
    for at in range(0, total + 1, step):
        x = left + at * scale
        yield f'<line class="g" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="n" x="{x:.1f}" y="{bottom + 14}">{axis_text(timeline, at)}</text>'


def _bars(
    bars: Sequence[Bar],
    left: int,
    y: int,
    height: int,
    scale: float,
    where: str,
    timeline: Timeline,
    used: Sequence[Shade],
) -> Iterator[str]:
    at = 0
    while at < len(bars):
        first = at
        begin = bars[at].start
        at += 1
        while at < len(bars) and (bars[at].end - begin) * scale < _LEAST_WIDTH:
            at += 1
        merged = [bar for bar in bars[first:at] if bar.end > bar.start]
        if not merged:
            continue
        end = merged[-1].end
        x, width = left + merged[0].start * scale, (end - merged[0].start) * scale
        times = f"{time_text(timeline, merged[0].start)} to {time_text(timeline, end)}"
        told = f"{_names(merged)}, {where}: {times}"
        top = float(y)
        for shade in used if len(merged) > 1 else [(merged[0].kind, merged[0].loop)]:
            busy = sum(bar.end - bar.start for bar in merged if (bar.kind, bar.loop) == shade)
            if busy:
                part = height * busy / (end - merged[0].start)
                yield _bar(x, top, width, part, colour(shade, timeline.loops), told)
                top += part
        label = merged[0].label
        if label and len(merged) == 1 and width > len(label) * _CHARACTER + 2:
            yield f'<text class="n" x="{x + width / 2:.1f}" y="{y + 15}">{label}</text>'


def _bar(x: float, y: float, width: float, height: float, fill: str, told: str) -> str:
    edge = ' stroke="#fff" stroke-width=".6"' if width > _EDGED else ""
    place = f'x="{x:.2f}" y="{y:.4g}" width="{max(width, _THINNEST):.2f}" height="{height:.4g}"'
    return f'<rect {place} fill="{fill}"{edge}><title>{escape(told)}</title></rect>'


def _names(bars: Sequence[Bar]) -> str:
    return bars[0].name if len(bars) == 1 else f"{bars[0].name} … {bars[-1].name}"


def _critical_path(timeline: Timeline, left: int, top: int, scale: float) -> Iterator[str]:
    """Yield the line that runs along the passes of the critical path and jumps with what they hand over."""
    points: list[str] = []
    drawn = -_LEAST_WIDTH
    for one in timeline.critical:
        begin, end = one.start * scale, one.end * scale
        if end - drawn < _LEAST_WIDTH:
            continue
        y = top + one.row * _ROW + _LINE
        points += [f"{left + begin:.1f},{y:g}", f"{left + end:.1f},{y:g}"]
        drawn = end
    if points:
        yield f'<polyline class="p" points="{" ".join(points)}"><title>critical path</title></polyline>'
