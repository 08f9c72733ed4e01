"""Memory of stages and devices of training plans at most, as bars against their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mtpp.training.timeline import RowMemory, Timeline
from mtpp.units import format_share
from mtpp.views.report.page import MemoryBar, MemoryBars, MemoryPiece, Section
from mtpp.views.report.training.memory_over_time import FIXED, KEPT, held
from mtpp.views.report.training.scales import SizeScale

_FREE = "free"

_Part = tuple[str, int, str]
"""Kind of memory, its bytes and its name."""


class Peak(NamedTuple):
    """Bytes of a device at most: in sum, those held all the time if known, and the limit if there is one."""

    name: str
    total: int
    fixed: int | None
    limit: int | None


def simulated_peaks(timeline: Timeline) -> list[Peak]:
    """Return the peaks of a simulated iteration whose memory is known."""
    found = []
    for row, memory in zip(timeline.rows, timeline.memory, strict=True):
        kept = max((one.kept for one in held(row, memory)), default=0)
        found.append(Peak(row.short, memory.fixed + kept, memory.fixed, memory.limit))
    return found


def stated_peaks(
    names: Sequence[str], totals: Sequence[int], limits: Sequence[int | None], memory: Sequence[RowMemory]
) -> list[Peak]:
    """Return the peaks that a plan states; *memory* of the same rows says what is held all the time, if known."""
    fixed: list[int | None] = [one.fixed for one in memory] if len(memory) == len(names) else [None] * len(names)
    known = [None if one is None or one > total else one for one, total in zip(fixed, totals, strict=True)]
    return [Peak(*row) for row in zip(names, totals, known, limits, strict=True)]


def peaks_section(peaks: Sequence[Peak], said: str) -> Section:
    """Return the section; *said* names the source of the figures, as the end of a sentence."""
    limits = [one.limit for one in peaks if one.limit is not None]
    widest = max([*(one.total for one in peaks), *limits], default=0) or 1
    held = [list(_parts(one)) for one in peaks]
    scales = {
        kind: SizeScale.of(max(size for own in held for part, size, _ in own if part == kind))
        for kind in dict.fromkeys(kind for own in held for kind, _, _ in own)
    }
    total = SizeScale.of(max((one.total for one in peaks), default=0))
    bars = [_bar(one, parts, widest, total, scales) for one, parts in zip(peaks, held, strict=True)]
    shown = {piece.kind for bar in bars for piece in bar.pieces}
    split = any(one.fixed is not None for one in peaks)
    legend = [("weights", FIXED if split else "held at most"), ("activations", KEPT), ("free", _FREE)]
    caption = f"Memory of each device at most, {said}; " + ("marks are limits" if limits else "no limit was given")
    chart = MemoryBars("memory", caption, [(kind, name) for kind, name in legend if kind in shown], bars)
    return Section("peak-part", "Memory against the limit" if limits else "Memory at most", [chart])


def _bar(
    peak: Peak, parts: Sequence[_Part], widest: int, sizes: SizeScale, scales: Mapping[str, SizeScale]
) -> MemoryBar:
    """Return a bar; totals have one unit, *sizes*, and each kind of memory has one."""
    free = (peak.limit or 0) - peak.total
    pieces = [
        MemoryPiece(kind, round(100 * size / widest, 3), f"{name}: {scales.get(kind, sizes).text(size)}")
        for kind, size, name in [*parts, ("free", free, _FREE)]
        if size > 0
    ]
    told = sizes.text(peak.total)
    if peak.limit is not None:
        told += f" of {sizes.text(peak.limit)}" + (f", {format_share(peak.total, peak.limit)}" if peak.limit else "")
    detail = ", ".join(f"{scales[kind].text(size)} {name}" for kind, size, name in parts if size and name)
    mark = None if peak.limit is None else round(100 * peak.limit / widest, 3)
    return MemoryBar(peak.name, detail, told, pieces, mark, over=free < 0 and peak.limit is not None)


def _parts(peak: Peak) -> Iterator[_Part]:
    """Yield kinds of memory that is taken, their bytes and names."""
    if peak.fixed is None:
        yield "weights", peak.total, ""
        return
    yield "weights", peak.fixed, FIXED
    yield "activations", peak.total - peak.fixed, KEPT


def each_limit(limit: Any, rows: int) -> list[int | None]:
    """Return the limit of each row, given one of all or one of each."""
    return list(limit) if isinstance(limit, list | tuple) else [limit] * rows
