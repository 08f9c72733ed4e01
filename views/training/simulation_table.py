"""Table of a simulation, figures and a chart below it, in every format but CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpp.units import format_share
from mtpp.views.html import html_text
from mtpp.views.tables import figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.views.training.stage_columns import StageColumn, fitting_columns

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.training.timeline import Timeline

_CHART_WIDTH = 100
"""Columns of a chart that is for no terminal."""

_NAMED = 3
"""Channels that a figure names."""


@dataclass(frozen=True)
class SimulationTable:
    """Columns of a table, a title above it and figures below.

    Attributes
    ----------
    names
        Column whose cells lose their middle where room is short; there may be none of that name.
    """

    title: str
    columns: Sequence[StageColumn]
    figures: Sequence[tuple[str, str]]
    names: str = "name"


def table_text(table: SimulationTable, timeline: Timeline, output_format: str, terminal: RichConsole | None) -> str:
    """Return a table as ``markdown``, ``html`` or ``table``, which has a chart below it; None: for standard output."""
    header = [column.name for column in table.columns]
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    if output_format == "markdown":
        return markdown_result(table.title, header, rows, table.figures)
    if output_format == "html":
        left = [i for i, column in enumerate(table.columns) if column.left]
        return html_text(table.title, header, rows, table.figures, left=left)
    console = terminal or result_terminal()
    return _terminal_text(table, timeline, console, console.width if console.is_terminal else _CHART_WIDTH)


def _terminal_text(table: SimulationTable, timeline: Timeline, console: RichConsole, width: int) -> str:
    from rich.table import Table
    from rich.text import Text

    from mtpp.views.training.gantt import gantt_text

    shown, dropped = fitting_columns(list(table.columns), console.width, table.names)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in shown:
        grid.add_column(safe_text(column.name), justify="left" if column.left else "right", no_wrap=True)
    for cells in zip(*(column.cells for column in shown), strict=True):
        grid.add_row(*map(safe_text, cells))
    lines = list(table.figures)
    if dropped:
        lines.append(("not shown", f"{', '.join(dropped)}: the terminal is too narrow"))
    chart = Text(gantt_text(timeline, width).rstrip("\n"))
    return rendered(console, safe_text(table.title, "bold"), grid, "", figures_grid(lines), "", chart)


def busiest_channels(channels: Sequence[tuple[int, int, int]], whole: int) -> str | None:
    """Return the figure of channels, each with its ends and busy ticks; None where there is none."""
    if not channels:
        return None
    busy = sorted((one for one in channels if one[2]), key=lambda one: -one[2])
    if not busy:
        return "transfers take no time"
    named = ", ".join(f"{source} → {target} {format_share(ticks, whole)}" for source, target, ticks in busy[:_NAMED])
    return f"busiest {named}" + (f", {len(busy) - _NAMED:,} more" if len(busy) > _NAMED else "")
