"""Table of a simulated pipeline, its stages and the figures below them, for terminals, Markdown, CSV and HTML."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_picoseconds, format_share
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_text, rendered, result_terminal, safe_text
from mtpp.views.training.stage_columns import StageColumn, fitting_columns
from mtpp.views.training.training_texts import counted, throughput, unit_of

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.training.simulation import ChannelTimes, Simulation

_CSV = (
    "index", "name", "micro_batch", "micro_batches", "first_forward_start_ticks", "first_backward_start_ticks",
    "last_forward_end_ticks", "last_backward_end_ticks", "busy_ticks", "synchronisation_ticks", "bubble_ticks",
    "peak_in_flight",
)  # fmt: skip

_CHART_WIDTH = 100
"""Columns of a chart that is for no terminal."""

_NAMED = 3

_SPARE = ("gradients", "passes", "of samples", "first F", "first B", "last F ends", "last B ends")
"""Columns that can be left out where room is short, the last ones first."""


def simulation_text(simulation: Simulation, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return a simulated pipeline as ``table`` with a chart below it, ``markdown``, ``csv`` or ``html``.

    Parameters
    ----------
    terminal
        The one that a table is for; None: standard output.
    """
    if output_format == "csv":
        from mtpp.formats.results.simulation import simulation_document

        return csv_text(_CSV, [[row[key] for key in _CSV] for row in simulation_document(simulation)["stages"]])
    header, rows = _columns(simulation)
    if output_format == "markdown":
        lines = [f"- **{name}**: {value}" for name, value in _figures(simulation)]
        title = f"### {terminal_safe(_title(simulation))}\n\n"
        return f"{title}{markdown_text(header, rows)}\n" + "\n".join(lines) + "\n"
    if output_format == "html":
        return html_text(_title(simulation), header, rows, _figures(simulation), left=[1])
    if terminal is not None:
        return _table(simulation, header, rows, terminal, terminal.width if terminal.is_terminal else _CHART_WIDTH)
    shown = result_terminal()
    width = shown.width if shown.is_terminal else _CHART_WIDTH
    return _table(simulation, header, rows, result_terminal(endless=True), width)


def _title(simulation: Simulation) -> str:
    graph = simulation.graph
    unit, _ = unit_of(Fraction(simulation.iteration))
    stages = f"{counted(len(graph.stages), 'stage')}, {graph.depth:,} deep"
    return (
        f"{terminal_safe(graph.name)}: {stages}, mini-batch of {counted(graph.mini_batch, 'sample')} (times in {unit})"
    )


def _columns(simulation: Simulation) -> tuple[list[str], list[list[str]]]:
    unit, ticks = unit_of(Fraction(simulation.iteration))
    whole = simulation.iteration
    times = CostColumns(unit, Fraction(ticks), 0 if ticks == 1 else 3)
    header = [
        "stage", "name", "passes", "of samples", "first F", "first B", "last F ends", "last B ends", "busy", "waits",
        "gradients", "in flight",
    ]  # fmt: skip
    rows = []
    for s, (stage, one) in enumerate(zip(simulation.graph.stages, simulation.stages, strict=True)):
        rows.append(
            [
                str(s),
                terminal_safe(stage.name),
                f"{2 * stage.micro_batches:,}",
                f"{stage.micro_batch:,}",
                times.text(one.first_forward_start),
                times.text(one.first_backward_start),
                times.text(one.last_forward_end),
                times.text(one.last_backward_end),
                _share(one.busy, whole),
                _share(one.bubble, whole),
                times.text(one.synchronisation),
                str(one.peak_in_flight),
            ]
        )
    unnamed = all(stage.name == f"stage {s}" for s, stage in enumerate(simulation.graph.stages))
    dropped = {"name"} if unnamed else set()
    if not any(one.synchronisation for one in simulation.stages):
        dropped.add("gradients")
    kept = [i for i, name in enumerate(header) if name not in dropped]
    return [header[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _share(part: Any, whole: Any) -> str:
    return format_share(float(part / whole), 1) if whole else "0.0%"


def _figures(simulation: Simulation) -> list[tuple[str, str]]:
    graph, phases, whole = simulation.graph, simulation.phases, simulation.iteration
    figures = [("iteration", format_picoseconds(whole))]
    if whole:
        figures.append(("throughput", f"{throughput(Fraction(whole, graph.mini_batch))} samples/s"))
    parts = (("warm-up", phases.warm_up), ("steady", phases.steady), ("cool-down", phases.cool_down))
    figures.append(("phases", ", ".join(f"{name} {format_picoseconds(ticks)}" for name, ticks in parts)))
    figures.append(("bubbles", f"{simulation.bubble_share:.1%} of the iteration on average over stages"))
    kept = [stage.micro_batch * one.peak_in_flight for stage, one in zip(graph.stages, simulation.stages, strict=True)]
    figures.append(("in flight", f"at most {counted(max(kept), 'sample')} (stage {kept.index(max(kept))})"))
    busy = sorted((one for one in simulation.channels if one.busy), key=lambda one: -one.busy)
    if busy:
        figures.append(("channels", _channels(busy, whole)))
    elif graph.transfers:
        figures.append(("channels", "transfers take no time"))
    return figures


def _channels(busy: list[ChannelTimes], whole: int) -> str:
    named = ", ".join(f"{one.source} → {one.target} {_share(one.busy, whole)}" for one in busy[:_NAMED])
    return f"busiest {named}" + (f", {len(busy) - _NAMED:,} more" if len(busy) > _NAMED else "")


def _table(simulation: Simulation, header: list[str], rows: list[list[str]], console: RichConsole, width: int) -> str:
    from rich.table import Table
    from rich.text import Text

    from mtpp.views.training.gantt import gantt_text

    spare = {name: rank for rank, name in enumerate(_SPARE, start=1)}
    columns = [
        StageColumn(name, list(cells), spare.get(name, 0), name == "name")
        for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    ]
    shown, dropped = fitting_columns(columns, console.width, "name")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in shown:
        table.add_column(safe_text(column.name), justify="left" if column.left else "right", no_wrap=True)
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(safe_text, cells))
    lines = _figures(simulation)
    if dropped:
        lines.append(("not shown", f"{', '.join(dropped)}: the terminal is too narrow"))
    figures = figures_grid(lines)
    chart = Text(gantt_text(simulation.timeline, width).rstrip("\n"))
    return rendered(console, safe_text(_title(simulation), "bold"), table, "", figures, "", chart)
