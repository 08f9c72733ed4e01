"""Gantt chart of a simulated pipeline in characters: a line for each row, time from left to right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpp.training.timeline import (
    BACKWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    SYNCHRONISATION,
    Bar,
    Stretch,
    Timeline,
)
from mtpp.views.training.timeline_texts import time_text

if TYPE_CHECKING:
    from mtpp.views.terminal import Medium

_MARKS = {FORWARD: "░", BACKWARD: "█", BACKWARD_INPUT: "█", BACKWARD_WEIGHT: "▄", SYNCHRONISATION: "▒"}
"""Of passes where each row has one stage."""

_BOTH, _IDLE, _CRITICAL = "▓", " ", "━"

_LETTERS = 26
"""Loops that have letters of their own: small ones are forward, capital ones backward passes."""

_SEVERAL = 3
"""Passes in a column, at least, for it to show that there are some of several kinds."""

_HALF, _VISIBLE = 0.5, 0.05
"""Part of a column's time that has to be busy for it not to be blank; the second where there are several passes."""

_MOSTLY = 0.8
"""Part of its busy time from which on it shows one kind alone, even so."""

_LEAST_WIDTH = 20
_CHART_WIDTH = 100
"""Columns of a chart that is for no terminal."""


def chart(timeline: Timeline, medium: Medium) -> list[str]:
    """Return a chart for a terminal, and nothing in other formats."""
    if medium.form != "table":
        return []
    width = medium.terminal.width if medium.terminal.is_terminal else _CHART_WIDTH
    return ["\n".join(line.rstrip() for line in gantt_text(timeline, width).rstrip("\n").split("\n"))]


def gantt_text(timeline: Timeline, width: int) -> str:
    """Return a chart of at most so many columns, if they are enough for rows and at least 20 columns of time.

    A column of one or two passes that is idle for more than half of its time is blank; one of more passes shows that
    there are some. A pass with room for it begins with the number of its micro-batch. Below a row, a line shows when
    the critical path is on it.

    Notes
    -----
    O(passes + rows · columns).
    """
    margin = max(len(row.short) for row in timeline.rows)
    columns = max(_LEAST_WIDTH, width - margin - 3)
    rows = [_row(row.bars, timeline, columns) for row in timeline.rows]
    critical = [
        _critical([one for one in timeline.critical if one.row == r], timeline.iteration, columns)
        for r in range(len(timeline.rows))
    ]
    lines = []
    for row, cells, path in zip(timeline.rows, rows, critical, strict=True):
        lines.append(f"{row.short:>{margin}} |{cells}|")
        if path.strip():
            lines.append(f"{'':>{margin}}  {path}".rstrip())
    end = time_text(timeline, timeline.iteration)
    lines.append(f"{'':>{margin}}  0{end:>{columns - 1}}")
    lines += [f"{'':>{margin}}  {line}" for line in _legend(timeline, rows, columns)]
    return "\n".join(lines) + "\n"


def _mark(bar: Bar, loops: int) -> str:
    if loops == 1 or loops > _LETTERS or bar.kind in (SYNCHRONISATION, BACKWARD_WEIGHT):
        return _MARKS[bar.kind]
    return chr(ord("a" if bar.kind == FORWARD else "A") + bar.loop)


def _legend(timeline: Timeline, rows: Sequence[str], columns: int) -> Iterator[str]:
    """Yield what marks mean, in lines of so many columns where that is possible."""
    shown, loops = "".join(rows), timeline.loops
    parts = []
    if 1 < loops <= _LETTERS:
        last = chr(ord("a") + loops - 1)
        parts += [f"a{'…' if loops > 2 else ' '}{last} forward", f"A{'…' if loops > 2 else ' '}{last.upper()} backward"]
        parts[1] += " (loops of a device)"
    names = {_MARKS[FORWARD]: "forward", _MARKS[BACKWARD]: "backward"}
    if _MARKS[BACKWARD_WEIGHT] in shown:
        halves = {_MARKS[BACKWARD]: "gradients of inputs", _MARKS[BACKWARD_WEIGHT]: "gradients of weights"}
        names.update(halves)
    names |= {_BOTH: "several in turns", _MARKS[SYNCHRONISATION]: "synchronisation"}
    if loops == 1 and _MARKS[BACKWARD_WEIGHT] not in shown:
        names[_BOTH] = "both in turns"
    parts += [f"{mark} {name}" for mark, name in names.items() if mark in shown]
    if timeline.critical:
        parts.append(f"{_CRITICAL} critical path")
    if parts and any(c.isdigit() for c in shown):
        parts[-1] += "; numbers: micro-batches"
    line = ""
    for part in parts:
        if line and len(line) + 2 + len(part) > columns:
            yield line
            line = ""
        line = f"{line}  {part}" if line else part
    yield line


def _critical(stretches: Sequence[Stretch], total: int, columns: int) -> str:
    """Return a line below a row where the critical path is on it."""
    line = [_IDLE] * columns
    for one in stretches:
        if one.end > one.start:
            first, last = one.start * columns // total, (one.end * columns - 1) // total
            line[first : last + 1] = _CRITICAL * (last + 1 - first)
    return "".join(line)


def _row(bars: Sequence[Bar], timeline: Timeline, columns: int) -> str:
    cells = [_Cell() for _ in range(columns)]
    for i, bar in enumerate(bars):
        _cover(cells, i, bar, _mark(bar, timeline.loops), timeline.iteration)
    row = [cell.mark(timeline.iteration) for cell in cells]
    owners = [None if mark in (_IDLE, _BOTH) else cell.owner for mark, cell in zip(row, cells, strict=True)]
    at = 0
    while at < columns:
        owner, end = owners[at], at + 1
        while end < columns and owners[end] == owner:
            end += 1
        label = "" if owner is None else bars[owner].label
        if label and len(label) < end - at:
            row[at : at + len(label)] = label
        at = end
    return "".join(row)


class _Cell:
    """A column of a row: the time that each mark takes of it, and the bar that takes most, if any."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}
        self.bars = 0
        self.most = 0
        self.owner: int | None = None

    def mark(self, whole: int) -> str:
        total = sum(self.used.values())
        if total < (_VISIBLE if self.bars >= _SEVERAL else _HALF) * whole or total == 0:
            return _IDLE
        share, mark = max((share, mark) for mark, share in self.used.items())
        return mark if self.bars < _SEVERAL or share >= _MOSTLY * total else _BOTH


def _cover(cells: list[_Cell], number: int, bar: Bar, mark: str, total: int) -> None:
    """Add a bar to the columns that it covers; the time of a column is *total* over their number."""
    if bar.end == bar.start:
        return
    columns = len(cells)
    for column in range(bar.start * columns // total, (bar.end * columns - 1) // total + 1):
        shared = min(bar.end * columns, (column + 1) * total) - max(bar.start * columns, column * total)
        cell = cells[column]
        cell.used[mark] = cell.used.get(mark, 0) + shared
        cell.bars += 1
        if shared > cell.most:
            cell.most, cell.owner = shared, number
