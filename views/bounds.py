"""Tables of lower bounds without partitions: a line per bound for one k, a column each for several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpp.views.certificate_texts import NONE, column_blocks, model_labels, rows_by_graph, ticks_text
from mtpp.views.tables import safe_text, seconds_text

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from mtpp.inference.certificate_table import CertificateRow

_GAP = 2


def bound_marks(rows: Sequence[CertificateRow], *, markdown: bool) -> Iterator[tuple[str, str]]:
    """Say what the marks beside bounds mean, of those that there are."""
    if not markdown and len({row.path for row in rows}) < len(rows):
        yield "*", "the best bound"
    if any(not figure.solved and figure.value is not None for row in rows for figure in row.bounds.values()):
        yield "≥", "not finished: the bound itself may be higher"


def bounds_cells(rows: Sequence[CertificateRow]) -> tuple[list[str], list[list[str]]]:
    """Return the header and a line per cell with every bound, for markdown."""
    from mtpp.solvers.certify.summary import ladder

    names, labels = ladder(rows), model_labels(rows)
    header = ["model", "ops", "k", *names, "best", "by", "tier", "seconds"]
    lines = [
        [
            *(labels[row.path], f"{row.ops:,}", str(row.k)),
            *(_value(row, name) for name in names),
            *(ticks_text(row, row.lower.value), row.lower.method, row.lower.tier, seconds_text(row.total_seconds)),
        ]
        for row in rows
    ]
    return header, lines


def bounds_tables(rows: Sequence[CertificateRow], width: int) -> Iterator[Table | Text]:
    """Yield a table for each model, and more than one where its k do not fit beside each other."""
    labels = model_labels(rows)
    for path, places in rows_by_graph(rows).items():
        own = [rows[i] for i in places]
        if len(labels) > 1:
            yield safe_text("")
            yield safe_text(f"{labels[path]}: {own[0].ops:,} ops")
        if len(own) == 1:
            yield _one(own[0])
        else:
            yield from _many(own, width)


def _value(row: CertificateRow, name: str) -> str:
    """Write a bound; where more time might have raised it, as what it is at least."""
    figure = row.bounds.get(name)
    if figure is None or figure.value is None:
        return NONE
    return ("" if figure.solved else "≥ ") + ticks_text(row, figure.value)


def _one(row: CertificateRow) -> Table:
    from rich.table import Table

    from mtpp.solvers.bounds.registry import BOUNDS

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for name in ("bound", "lower bound", "of best", "tier", "seconds", "solved"):
        table.add_column(name, justify="left" if name in ("bound", "tier", "solved") else "right", no_wrap=True)
    for name, figure in row.bounds.items():
        best = name == row.lower.method
        share = f"{figure.value / row.lower.value:.4f}" if figure.value is not None and row.lower.value else NONE
        cells = (
            name,
            _value(row, name),
            "best" if best else share,
            row.lower.tier if best else BOUNDS[name].tier if name in BOUNDS else NONE,
            seconds_text(figure.seconds),
            "yes" if figure.solved else "no",
        )
        table.add_row(*(safe_text(cell, "bold green" if best else "") for cell in cells))
    return table


def _many(rows: Sequence[CertificateRow], width: int) -> Iterator[Table | Text]:

    from mtpp.solvers.certify.summary import ladder

    names = ladder(rows)
    lines = ["bound", *names, "best", "tier", "seconds"]
    columns = [_column(row, names) for row in rows]
    widths = [max(map(len, column)) + _GAP for column in columns]
    for block in column_blocks(max(map(len, lines)), widths, width):
        if block.start:
            yield safe_text("")
        yield _columns(lines, [columns[j] for j in block], [rows[j].lower.method for j in block])


def _column(row: CertificateRow, names: Sequence[str]) -> list[str]:
    """Return a column: its k, the bounds, the best one, and what is said of the cell."""
    bounds = [_value(row, name) + ("*" if name == row.lower.method else " ") for name in names]
    said = [ticks_text(row, row.lower.value), row.lower.tier, seconds_text(row.total_seconds)]
    return [f"k = {row.k} ", *bounds, *(f"{text} " for text in said)]


def _columns(lines: Sequence[str], columns: Sequence[Sequence[str]], methods: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column(lines[0], no_wrap=True)
    for column in columns:
        table.add_column(column[0], justify="right", no_wrap=True)
    for i, name in enumerate(lines[1:], 1):
        styles = ["bold green" if name in (method, "best") else "" for method in methods]
        table.add_row(name, *(safe_text(column[i], style) for column, style in zip(columns, styles, strict=True)))
    return table
