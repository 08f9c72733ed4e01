"""Tables and lines of figures, for terminals, Markdown and CSV."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.formats.io.csv_text import csv_text
from mtpp.terminal_safe import StyledText, terminal_safe, terminal_safe_table

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType
    from rich.text import Text

__all__ = [
    "csv_text",
    "figures_grid",
    "markdown_figures",
    "markdown_result",
    "markdown_safe",
    "markdown_text",
    "markdown_title",
    "plain_terminal",
    "rendered",
    "result_terminal",
    "safe_text",
    "seconds_text",
]

_PLAIN_WIDTH = 1000  # a file or a pipe has no edge


def markdown_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a pipe table; text columns left, numbers right."""
    body = [[markdown_safe(str(cell)).replace("|", "\\|") for cell in row] for row in rows]
    numeric = [bool(body) and all(_numeric(row[i]) for row in body) for i in range(len(header))]
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("---:" if right else "---" for right in numeric) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines) + "\n"


def markdown_title(text: str) -> str:
    """Return a heading, and the blank line below it."""
    return f"### {markdown_safe(text)}\n\n"


def markdown_figures(figures: Iterable[tuple[str, str]]) -> str:
    """Return a list of named figures, without an end of the last line."""
    return "\n".join(f"- **{name}**: {markdown_safe(value)}" for name, value in figures)


def markdown_result(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], figures: Iterable[tuple[str, str]]
) -> str:
    """Return a heading, a pipe table where there are columns, and named figures below it."""
    table = markdown_text(header, rows) + "\n" if header else ""
    return f"{markdown_title(title)}{table}{markdown_figures(figures)}\n"


def markdown_safe(text: str) -> str:
    """Return text in which names are neither HTML, nor links, nor pictures: a page of a CI service would show them."""
    return terminal_safe(text).replace("&", "&amp;").replace("<", "&lt;").replace("[", "\\[")


def _numeric(cell: str) -> bool:
    return cell in ("", "-", "–", "?") or cell.lstrip("*")[:1].isdigit()


def seconds_text(seconds: float) -> str:
    """Write a number of seconds for a column of them, without the unit."""
    for limit, digits in ((1, 3), (10, 2), (1000, 1)):
        if seconds < limit:
            return f"{seconds:.{digits}f}"
    return f"{seconds:,.0f}"


def result_terminal(*, endless: bool = False) -> RichConsole:
    """Return the terminal that standard output is, or a plain one without an edge where it is none.

    An *endless* one cuts no line: for figures, which say something false when cut off. The terminal wraps them.
    """
    from rich.console import Console as RichConsole

    if sys.stdout is not None and sys.stdout.isatty():
        return RichConsole(highlight=False, width=_PLAIN_WIDTH if endless else None)
    return plain_terminal(getattr(sys.stdout, "encoding", None) or "utf-8")


def plain_terminal(encoding: str = "utf-8") -> RichConsole:
    """Return a terminal without colours and without an edge, as a file in some encoding is one."""
    from rich.console import Console as RichConsole

    # Even what it only captures, rich would write to its file: nothing, but a full device takes that ill.
    nowhere = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    return RichConsole(file=nowhere, width=_PLAIN_WIDTH, no_color=True, force_terminal=False, highlight=False)


def rendered(terminal: RichConsole, *parts: RenderableType) -> str:
    """Return what *terminal* shows of some tables and lines, without blanks at the ends of lines."""
    with terminal.capture() as capture:
        for part in parts:
            terminal.print(part)
    lines = terminal_safe_table(capture.get()).removesuffix("\n").split("\n")
    return StyledText("\n".join(line.rstrip() for line in lines) + "\n")


def safe_text(text: str, style: str = "") -> Text:
    """Return a cell or a title of a table; names out of files neither end its line nor colour it."""
    from rich.text import Text

    return Text(terminal_safe(text), style)


def figures_grid(figures: Iterable[tuple[str, str]]) -> RenderableType:
    """Return lines of a name in bold and what it stands for."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in figures:
        grid.add_row(safe_text(name), safe_text(value))
    return grid
