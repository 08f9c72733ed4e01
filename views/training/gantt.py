"""Gantt chart of a simulated pipeline in characters: a line for each stage, time from left to right."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.training.simulation import Simulation, Span
from mtpp.units import format_picoseconds

_FORWARD, _BACKWARD, _BOTH, _SYNCHRONISATION, _IDLE = "░", "█", "▓", "▒", " "

_SEVERAL = 3
"""Passes in a column, at least, for it to show that there are some of both kinds."""

_HALF, _VISIBLE = 0.5, 0.05
"""Part of a column's time that has to be busy for it not to be blank; the second where there are several passes."""

_MOSTLY = 0.8
"""Part of its busy time from which on it shows one kind alone, even so."""

_LEAST_WIDTH = 20


def gantt_text(simulation: Simulation, width: int) -> str:
    """Return a chart of at most so many columns, if they are enough for stages and at least 20 columns of time.

    A column of one or two passes that is idle for more than half of its time is blank; one of more passes shows that
    there are some. A pass with room for it begins with the number of its micro-batch.

    Notes
    -----
    O(passes + stages · columns).
    """
    labels = [f"stage {s}" for s in range(len(simulation.graph.stages))]
    margin = max(map(len, labels))
    columns = max(_LEAST_WIDTH, width - margin - 3)
    rows = [f"{label:>{margin}} |{_row(simulation, s, columns)}|" for s, label in enumerate(labels)]
    end = format_picoseconds(simulation.iteration)
    axis = f"{'':>{margin}}  0{end:>{columns - 1}}"
    return "\n".join([*rows, axis, f"{'':>{margin}}  {_legend(rows)}"]) + "\n"


def _legend(rows: Sequence[str]) -> str:
    shown = "".join(rows)
    names = {_FORWARD: "forward", _BACKWARD: "backward", _BOTH: "both in turns", _SYNCHRONISATION: "synchronisation"}
    legend = "  ".join(f"{mark} {name}" for mark, name in names.items() if mark in shown)
    return (
        f"{legend}; numbers: micro-batches" if any(c.isdigit() for row in rows for c in row.split("|")[1]) else legend
    )


def _row(simulation: Simulation, stage: int, columns: int) -> str:
    spans = list(simulation.passes(stage))
    last = simulation.ends[stage]
    spans.append(Span(0, last, last + simulation.graph.stages[stage].synchronisation_ticks))
    cells = [_Cell() for _ in range(columns)]
    for i, span in enumerate(spans):
        _cover(cells, i, span, simulation.iteration)
    row = [cell.mark(simulation.iteration) for cell in cells]
    owners = [None if mark in (_IDLE, _BOTH) else cell.owner for mark, cell in zip(row, cells, strict=True)]
    at = 0
    while at < columns:
        owner, end = owners[at], at + 1
        while end < columns and owners[end] == owner:
            end += 1
        number = 0 if owner is None else abs(spans[owner].number)
        if number and len(str(number)) < end - at:
            row[at : at + len(str(number))] = str(number)
        at = end
    return "".join(row)


class _Cell:
    """A column of a row: the time that each kind of passes takes of it, and the span that takes most, if any."""

    def __init__(self) -> None:
        self.used = [0, 0, 0]  # synchronisation, forward, backward
        self.spans = 0
        self.most = 0
        self.owner: int | None = None

    def mark(self, whole: int) -> str:
        total = sum(self.used)
        if total < (_VISIBLE if self.spans >= _SEVERAL else _HALF) * whole or total == 0:
            return _IDLE
        share, mark = max(zip(self.used, (_SYNCHRONISATION, _FORWARD, _BACKWARD), strict=True))
        return mark if self.spans < _SEVERAL or share >= _MOSTLY * total else _BOTH


def _cover(cells: list[_Cell], number: int, span: Span, total: int) -> None:
    """Add a span to the columns that it covers; the time of a column is *total* over their number."""
    if span.end == span.start:
        return
    columns = len(cells)
    kind = (span.number > 0) - (span.number < 0)
    for column in range(span.start * columns // total, (span.end * columns - 1) // total + 1):
        shared = min(span.end * columns, (column + 1) * total) - max(span.start * columns, column * total)
        cell = cells[column]
        cell.used[kind] += shared
        cell.spans += 1
        if shared > cell.most:
            cell.most, cell.owner = shared, number
