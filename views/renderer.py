"""The one renderer of tables: Markdown, CSV, HTML and terminals, by the name of a format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from html import escape
from typing import Concatenate, ParamSpec, TypeVar

from mtpp.formats.io.csv_text import csv_text
from mtpp.terminal_safe import terminal_safe
from mtpp.views.table import NONE, Table
from mtpp.views.terminal import Medium, terminal_text

_LEFT, _RIGHT = 'style="text-align: left"', 'style="text-align: right"'

R = TypeVar("R")
P = ParamSpec("P")


def view(
    tables: Callable[Concatenate[R, Medium, P], Iterable[Table | str]],
) -> Callable[Concatenate[R, str | Medium, P], str]:
    """Make the text of a result, in any format, out of a function that chooses its tables for a medium.

    Texts among the tables are lines for a terminal. CSV has one table.
    """

    @wraps(tables)
    def text(result: R, medium: str | Medium, /, *arguments: P.args, **named: P.kwargs) -> str:
        medium = Medium(medium) if isinstance(medium, str) else medium
        parts = list(tables(result, medium, *arguments, **named))
        if medium.form == "table":
            return terminal_text(parts, medium)
        found = [part for part in parts if isinstance(part, Table)]
        if medium.form == "csv":
            return csv_text(found[0].header, found[0].rows)
        if medium.form == "html":
            return "".join(map(_html, found))
        return "".join(_markdown(table, first=i == 0) for i, table in enumerate(found))

    return text


def markdown_safe(text: str) -> str:
    """Return text in which names are neither HTML, nor links, nor pictures: a page of a CI service would show them."""
    return terminal_safe(text).replace("&", "&amp;").replace("<", "&lt;").replace("[", "\\[")


def _markdown(table: Table, *, first: bool) -> str:
    """Return a heading, a pipe table, named figures and notes."""
    heading = f"### {markdown_safe(table.title)}\n\n" if table.title else ""
    figures = [f"- **{name}**: {markdown_safe(value)}" for name, value in table.figures_beside()]
    lines, rows = "\n".join([*figures, *table.notes]), _pipes(table) if table.columns else ""
    if table.layout == "below":
        return ("\n" if heading and not first else "") + heading + (f"{rows}\n" if rows else "") + f"{lines}\n"
    return ("" if first else "\n") + heading + (f"{lines}\n\n" if lines else "") + rows


def _pipes(table: Table) -> str:
    """Return a pipe table; text columns left, numbers right."""
    rows = [[markdown_safe(cell).replace("|", "\\|") for cell in row] for row in table.cells]
    numeric = [bool(rows) and all(_numeric(row[j]) for row in rows) for j in range(len(table.columns))]
    bold = [[f"**{cell}**" if table.style(i, j) else cell for j, cell in enumerate(row)] for i, row in enumerate(rows)]
    lines = [f"| {' | '.join(row)} |" for row in (table.header, *bold)]
    lines.insert(1, f"|{'|'.join('---:' if right else '---' for right in numeric)}|")
    return "\n".join(lines) + "\n"


def _numeric(cell: str) -> bool:
    return cell in ("", "-", NONE, "?") or cell.lstrip("*")[:1].isdigit()


def _html(table: Table) -> str:
    """Return a title, a table and named figures below; whatever comes out of a file is escaped."""
    sides = [_LEFT if column.left else _RIGHT for column in table.columns]
    head = "".join(f"<th {side}>{_safe(name)}</th>" for side, name in zip(sides, table.header, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td {side}>{_safe(cell)}</td>' for side, cell in zip(sides, row, strict=True))}</tr>"
        for row in table.cells
    )
    below = "".join(
        f"<tr><th {_LEFT}>{_safe(name)}</th><td {_LEFT}>{_safe(value)}</td></tr>"
        for name, value in table.figures_beside()
    )
    return (
        f"<div><p><b>{_safe(table.title)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<table><tbody>{below}</tbody></table>" if below else "")
        + "</div>"
    )


def _safe(text: str) -> str:
    return escape(terminal_safe(text))
