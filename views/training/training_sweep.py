"""Table of best times per sample, devices down and sums of degrees across."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import StopReason
from mtpp.terminal_safe import terminal_safe
from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Table, table_of_records
from mtpp.views.training.training_texts import distance_text, rules_text, system_text, throughput, unit_of

if TYPE_CHECKING:
    from mtpp.formats.results.training_sweep import Swept
    from mtpp.training.plan import SweepCell
    from mtpp.views.terminal import Medium

_COLUMNS = (
    "devices", "degrees_sum", "feasible", "time_per_sample", "throughput_per_s", "ratio", "optimal", "stages",
    "time_unit",
)  # fmt: skip
_OPEN = "?"


@view
def sweep_text(swept: Swept, medium: Medium) -> Iterable[Table]:
    """Return a table with a line for each number of devices; as CSV one for each cell."""
    if medium.form == "csv":
        unit = swept.task.flat.model.time_unit
        return [table_of_records([{**row, "time_unit": unit} for row in swept.rows()], _COLUMNS)]
    sums = [Column(f"Σ d ≤ {total:,}") for total in swept.sums]
    columns = [Column("devices", "{:,}".format), *sums, *map(Column, ("stages", "micro-batches/s", "speed-up"))]
    return [Table(_title(swept), columns, list(_rows(swept)), _figures(swept))]


def _title(swept: Swept) -> str:
    model = swept.task.flat.model
    unit = f" ({_unit(swept)[0]})" if swept.feasible else ""
    return f"{terminal_safe(model.name)}: best time per sample on up to {system_text(swept.task)}{unit}"


def _unit(swept: Swept) -> tuple[str, int]:
    """Return the unit of the table, that of the shortest time, and the ticks in it."""
    times = [cell.time for cell in swept.cells.values() if cell.time is not None]
    return unit_of(min(times)) if times else ("s", 1)


def _rows(swept: Swept) -> Iterator[list[Any]]:
    _, ticks = _unit(swept)
    last = [swept.cells.get((devices, swept.sums[-1])) for devices in swept.devices]
    slowest = next((cell.time for cell in last if cell is not None and cell.time), None)
    for devices, widest in zip(swept.devices, last, strict=True):
        row = [devices, *(_cell_text(swept.cells.get((devices, total)), ticks) for total in swept.sums)]
        if widest is None or not widest.time or slowest is None:
            yield [*row, None, None, None]
        else:
            yield [*row, widest.stages, throughput(widest.time), f"{float(slowest / widest.time):.2f}×"]


def _cell_text(cell: SweepCell | None, ticks: int) -> str:
    if cell is None:
        return _OPEN
    if cell.time is None:
        return NONE
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
        proven = "" if optimal == len(feasible) else "; (x%): at most x% above the best time that there can be"
        figures.append(("optimal", f"{optimal:,} of {len(feasible):,}, proven{proven}"))
    if none:
        figures.append((NONE, f"no plan fits, proven: {none:,} of {cells:,}"))
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
