"""Gantt chart of a simulated pipeline as a picture (SVG) and as a page (HTML): stages, and channels below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from mtpp.terminal_safe import terminal_safe
from mtpp.training.pass_order import pass_name
from mtpp.training.simulation import Simulation, Span
from mtpp.units import PICOSECONDS, format_picoseconds

_COLOURS = {
    "forward": "#56B4E9",
    "backward": "#009E73",
    "synchronisation": "#CC79A7",
    "transfer": "#E69F00",
}
"""Colours that the colour-blind tell apart (Okabe and Ito, 2008)."""

_CHART_WIDTH, _RIGHT, _TOP = 1200, 24, 44
_CHARACTER = 6.7
_ROW, _BAR = 26, 22
_CHANNEL_ROW, _CHANNEL_BAR = 14, 8
_LEAST_WIDTH = 0.5
"""Pixels in which all spans are drawn as one: bars on top of each other, as high as each kind's part of the time."""

_THINNEST, _EDGED = 0.05, 3
"""Pixels of the thinnest bar, and of those from which on bars have an edge."""

_TICKS = 8

_LONGEST_LABEL = 52
_MOST_CHANNELS = 64
"""Channels that are drawn: the busiest."""

_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#222}.n{text-anchor:middle;font-size:10px}.l{text-anchor:end}"
    ".c{font-size:9px;fill:#555}.t{font:bold 13px system-ui,sans-serif}.g{stroke:#ddd}"
)


def gantt_svg(simulation: Simulation) -> str:
    """Return a chart as a picture of its own, with names of passes to be hovered over.

    Notes
    -----
    O(passes + messages); what is within half a pixel is drawn together. Of many channels, the busiest are shown.
    """
    return "\n".join(_lines(simulation)) + "\n"


def gantt_html(simulation: Simulation, table: str) -> str:
    """Return a chart with the table below it, itself HTML, as a page that needs no other file."""
    title = escape(terminal_safe(simulation.graph.name))
    style = (
        "body{font:14px system-ui,sans-serif;margin:24px;color:#222}svg{max-width:100%;height:auto}"
        "td,th{padding:2px 10px}table{border-collapse:collapse;margin-top:12px}thead th{border-bottom:1px solid #999}"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style></head>\n<body>\n{gantt_svg(simulation)}{table}\n</body></html>\n"
    )


def _lines(simulation: Simulation) -> Iterator[str]:
    graph, total = simulation.graph, max(1, simulation.iteration)
    stages = [_shortened(terminal_safe(graph.label(s))) for s in range(len(graph.stages))]
    busy = sorted(
        (c for c, one in enumerate(simulation.channels) if one.busy), key=lambda c: -simulation.channels[c].busy
    )
    busy = sorted(busy[:_MOST_CHANNELS])
    channels = [f"{one.source} → {one.target}" for one in (simulation.channels[c] for c in busy)]
    left = int(max(len(name) for name in [*stages, *channels]) * _CHARACTER) + 16
    height = _TOP + len(stages) * _ROW + (len(busy) * _CHANNEL_ROW + 8 if busy else 0) + 28
    width = left + _CHART_WIDTH + _RIGHT
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<style>{_STYLE}</style>"
    )
    title = f"{terminal_safe(graph.name)}: {format_picoseconds(simulation.iteration)} an iteration"
    yield f'<rect width="{width}" height="{height}" fill="#fff"/><text class="t" x="12" y="18">{escape(title)}</text>'
    yield from _legend(width, transfers=bool(busy))
    scale = _CHART_WIDTH / total
    yield from _axis(left, height - 20, total, scale)
    y = _TOP
    for s, name in enumerate(stages):
        yield f'<text class="l" x="{left - 8}" y="{y + 15}">{escape(name)}</text>'
        spans = list(simulation.passes(s))
        end = simulation.ends[s]
        spans.append(Span(0, end, end + graph.stages[s].synchronisation_ticks))
        yield from _bars(spans, left, y, _BAR, scale, name, numbers=True)
        y += _ROW
    y += 8
    for c, name in zip(busy, channels, strict=True):
        yield f'<text class="l c" x="{left - 8}" y="{y + 8}">{name}</text>'
        yield from _bars(simulation.messages(c), left, y, _CHANNEL_BAR, scale, f"transfer {name}", numbers=False)
        y += _CHANNEL_ROW
    yield "</svg>"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"


def _legend(width: int, *, transfers: bool) -> Iterator[str]:
    shown = [kind for kind in _COLOURS if transfers or kind != "transfer"]
    x = width - _RIGHT - sum(len(kind) * _CHARACTER + 30 for kind in shown)
    for kind in shown:
        yield f'<rect x="{x:.0f}" y="9" width="12" height="12" fill="{_COLOURS[kind]}"/>'
        yield f'<text x="{x + 16:.0f}" y="19">{kind}</text>'
        x += len(kind) * _CHARACTER + 30


def _axis(left: int, bottom: int, total: int, scale: float) -> Iterator[str]:
    """Yield lines and times at round distances of time."""
    step = 1
    while total > _TICKS * step:
        step *= 10
    step = next((step // part for part in (5, 2) if step % part == 0 and total <= _TICKS * step // part), step)
    for at in range(0, total + 1, step):
        x = left + at * scale
        yield f'<line class="g" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="n" x="{x:.1f}" y="{bottom + 14}">{_time(at, total)}</text>'


def _time(at: int, total: int) -> str:
    for unit in ("s", "ms", "µs", "ns"):
        if total >= PICOSECONDS[unit]:
            return f"{at / PICOSECONDS[unit]:g} {unit}"
    return f"{at} ps"


def _bars(
    spans: Sequence[Span], left: int, y: int, height: int, scale: float, where: str, *, numbers: bool
) -> Iterator[str]:
    at = 0
    while at < len(spans):
        first = at
        begin = spans[at].start
        at += 1
        while at < len(spans) and (spans[at].end - begin) * scale < _LEAST_WIDTH:
            at += 1
        merged = [span for span in spans[first:at] if span.end > span.start]
        if not merged:
            continue
        end = merged[-1].end
        x, width = left + merged[0].start * scale, (end - merged[0].start) * scale
        told = f"{_names(merged)}, {where}: {format_picoseconds(merged[0].start)} to {format_picoseconds(end)}"
        top = float(y)
        for kind in _COLOURS:
            busy = sum(span.end - span.start for span in merged if (_kind(span) if numbers else "transfer") == kind)
            if busy:
                part = height * busy / (end - merged[0].start)
                yield _bar(x, top, width, part, kind, told)
                top += part
        number = abs(merged[0].number)
        if numbers and number and len(merged) == 1 and width > len(str(number)) * _CHARACTER + 2:
            yield f'<text class="n" x="{x + width / 2:.1f}" y="{y + 15}">{number}</text>'


def _bar(x: float, y: float, width: float, height: float, kind: str, told: str) -> str:
    edge = ' stroke="#fff" stroke-width=".6"' if width > _EDGED else ""
    place = f'x="{x:.2f}" y="{y:.4g}" width="{max(width, _THINNEST):.2f}" height="{height:.4g}"'
    return f'<rect {place} fill="{_COLOURS[kind]}"{edge}><title>{escape(told)}</title></rect>'


def _kind(span: Span) -> str:
    return "synchronisation" if span.number == 0 else "forward" if span.number > 0 else "backward"


def _names(spans: Sequence[Span]) -> str:
    names = [pass_name(span.number) if span.number else "synchronisation" for span in (spans[0], spans[-1])]
    return names[0] if len(spans) == 1 else f"{names[0]} … {names[1]}"
