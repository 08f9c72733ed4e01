"""Tables of lower bounds without partitions: a line per bound for one k, a column each for several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpp.views.certificate_texts import model_labels, seconds_text, ticks_text
from mtpp.views.table import NONE, Column, Figure, Table

if TYPE_CHECKING:
    from mtpp.inference.certificate_table import CertificateRow


def bound_marks(rows: Sequence[CertificateRow], *, markdown: bool) -> Iterator[tuple[str, str]]:
    """Say what the marks beside bounds mean, of those that there are."""
    if not markdown and len({row.path for row in rows}) < len(rows):
        yield "*", "the best bound"
    if any(not figure.solved and figure.value is not None for row in rows for figure in row.bounds.values()):
        yield "≥", "not finished: the bound itself may be higher"


def bounds_table(title: str, rows: Sequence[CertificateRow], figures: Sequence[Figure]) -> Table:
    """Return a line per cell with every bound."""
    from mtpp.solvers.certify.summary import ladder

    names, labels = ladder(rows), model_labels(rows)
    columns = [Column("model", left=True), Column("ops", "{:,}".format), Column("k"), *map(Column, names)]
    columns += [Column("best"), Column("by", left=True), Column("tier", left=True), Column("seconds", seconds_text)]
    lines = [
        [
            *(labels[row.path], row.ops, row.k),
            *(_value(row, name) for name in names),
            *(ticks_text(row, row.lower.value), row.lower.method, row.lower.tier, row.total_seconds),
        ]
        for row in rows
    ]
    return Table(title, columns, lines, figures)


def bounds_of_model(rows: Sequence[CertificateRow]) -> Table:
    """Return the bounds of one model: a line each, and a column for each of several k."""
    return _one(rows[0]) if len(rows) == 1 else _many(rows)


def _value(row: CertificateRow, name: str) -> str:
    """Write a bound; where more time might have raised it, as what it is at least."""
    figure = row.bounds.get(name)
    if figure is None or figure.value is None:
        return NONE
    return ("" if figure.solved else "≥ ") + ticks_text(row, figure.value)


def _one(row: CertificateRow) -> Table:
    from mtpp.solvers.bounds.registry import BOUNDS

    lines, styles = [], {}
    for i, (name, figure) in enumerate(row.bounds.items()):
        best = name == row.lower.method
        share = f"{figure.value / row.lower.value:.4f}" if figure.value is not None and row.lower.value else None
        tier = row.lower.tier if best else BOUNDS[name].tier if name in BOUNDS else None
        solved = "yes" if figure.solved else "no"
        lines.append([name, _value(row, name), "best" if best else share, tier, figure.seconds, solved])
        if best:
            styles[i] = "bold green"
    columns = [
        Column("bound", left=True),
        *map(Column, ("lower bound", "of best")),
        Column("tier", left=True),
        Column("seconds", seconds_text),
        Column("solved", left=True),
    ]
    return Table("", columns, lines, styles=styles)


def _many(rows: Sequence[CertificateRow]) -> Table:
    from mtpp.solvers.certify.summary import ladder

    names = ladder(rows)
    lines = zip([*names, "best", "tier", "seconds"], *(_column(row, names) for row in rows), strict=True)
    columns = [Column("bound", left=True), *(Column(f"k = {row.k} ") for row in rows)]
    styles = {
        (i, j): "bold green"
        for j, row in enumerate(rows, 1)
        for i, name in enumerate([*names, "best"])
        if name in (row.lower.method, "best")
    }
    return Table("", columns, list(lines), styles=styles, in_blocks=True)


def _column(row: CertificateRow, names: Sequence[str]) -> list[str]:
    """Return a column: the bounds, the best one, and what is said of the cell."""
    bounds = [_value(row, name) + ("*" if name == row.lower.method else " ") for name in names]
    said = [ticks_text(row, row.lower.value), row.lower.tier, seconds_text(row.total_seconds)]
    return [*bounds, *(f"{text} " for text in said)]
