"""Tables of best times per sample, devices down and sums of degrees across; also as CSV and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.host.stop_reason import StopReason
from mtpp.terminal_safe import terminal_safe
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.views.training.training_texts import distance_text, rules_text, system_text, throughput, unit_of

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.solvers.planners.piper.sweep import SweepCell
    from mtpp.views.training.training_results import Swept

_COLUMNS = (
    "devices", "degrees_sum", "feasible", "time_per_sample", "throughput_per_s", "ratio", "optimal", "stages",
    "time_unit",
)  # fmt: skip
_NONE, _OPEN = "–", "?"


def sweep_text(swept: Swept, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return the table as ``table``, ``markdown``, ``csv`` (a line per cell) or ``html``.

    Parameters
    ----------
    terminal
        The one that a table is for, of any width; None: standard output.
    """
    if output_format == "csv":
        unit = swept.task.flat.model.time_unit
        return csv_text(_COLUMNS, [[{**row, "time_unit": unit}[name] for name in _COLUMNS] for row in swept.rows()])
    header, rows = _cells(swept)
    if output_format == "markdown":
        return markdown_result(_title(swept), header, rows, _figures(swept))
    if output_format == "html":
        return html_text(_title(swept), header, rows, _figures(swept))
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(safe_text(name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(safe_text, row))
    console, endless = terminal or result_terminal(), terminal or result_terminal(endless=True)
    title, figures = safe_text(_title(swept), "bold"), figures_grid(_figures(swept))
    return rendered(console, title) + rendered(endless, table) + rendered(console, "", figures)


def sweep_json(swept: Swept) -> str:
    """Return the ``mtpp-training-sweep`` document, version 1."""
    from mtpp.formats.results.training_sweep import write_training_sweep

    return write_training_sweep(swept.document())


def _title(swept: Swept) -> str:
    model = swept.task.flat.model
    unit = f" ({_unit(swept)[0]})" if swept.feasible else ""
    return f"{terminal_safe(model.name)}: best time per sample on up to {system_text(swept.task)}{unit}"


def _unit(swept: Swept) -> tuple[str, int]:
    """Return the unit of the table, that of the shortest time, and the ticks in it."""
    times = [cell.time for cell in swept.cells.values() if cell.time is not None]
    return unit_of(min(times)) if times else ("s", 1)


def _cells(swept: Swept) -> tuple[list[str], list[list[str]]]:
    header = ["devices", *(f"Σ d ≤ {total:,}" for total in swept.sums), "stages", "micro-batches/s", "speed-up"]
    _, ticks = _unit(swept)
    last = [swept.cells.get((devices, swept.sums[-1])) for devices in swept.devices]
    slowest = next((cell.time for cell in last if cell is not None and cell.time), None)
    rows = []
    for devices, widest in zip(swept.devices, last, strict=True):
        row = [f"{devices:,}", *(_cell_text(swept.cells.get((devices, total)), ticks) for total in swept.sums)]
        if widest is None or not widest.time or slowest is None:
            rows.append([*row, _NONE, _NONE, _NONE])
            continue
        stages = _NONE if widest.stages is None else str(widest.stages)
        rows.append([*row, stages, throughput(widest.time), f"{float(slowest / widest.time):.2f}×"])
    return header, rows


def _cell_text(cell: SweepCell | None, ticks: int) -> str:
    if cell is None:
        return _OPEN
    if cell.time is None:
        return _NONE
    text = f"{float(cell.time / ticks):,.3f}"
    if cell.time == cell.lower:
        return text
    return f"{text} ({distance_text(cell.time, cell.lower) if cell.lower else 'no bound'})"


def _figures(swept: Swept) -> list[tuple[str, str]]:
    feasible = [cell for cell in swept.cells.values() if cell.time is not None]
    optimal = sum(cell.time == cell.lower for cell in feasible)
    none, cells = len(swept.cells) - len(feasible), len(swept.devices) * len(swept.sums)
    figures = []
    if feasible:
        proven = "" if optimal == len(feasible) else "; (x %): at most x % above the best time that there can be"
        figures.append(("optimal", f"{optimal:,} of {len(feasible):,}, proven{proven}"))
    if none:
        figures.append((_NONE, f"no plan fits, proven: {none:,} of {cells:,}"))
    if swept.open:
        figures.append((_OPEN, f"not reached, so not known: {swept.open:,} of {cells:,}"))
    if swept.stopped != StopReason.FINISHED:
        figures.append(("stopped", f"{swept.stopped.replace('-', ' ')}: best times and bounds so far"))
    return [
        *figures,
        ("Σ d", "sum of the degrees of data parallelism: at most so many micro-batches at once"),
        ("last columns", f"of Σ d ≤ {swept.sums[-1]:,}; speed-up over the first row with a plan"),
        ("rules", f"N = {swept.task.micro_batches.text}; {rules_text(swept.task)}"),
    ]
