"""How a plan looks: the stage table and the figures below it, for terminals, markdown and CSV."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.cli.results import csv_text, markdown_text
from mtpp.units import PICOSECONDS, format_bytes

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.plan import Plan

_BAR_WIDTH = 16
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def plan_text(plan: Plan, output_format: str, assumptions: Sequence[str]) -> str:
    """Return *plan* as ``table``, ``markdown`` or ``csv``."""
    if output_format == "csv":
        rows = plan.stage_rows()
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    if output_format == "markdown":
        header, rows_shown = _stage_cells(plan)
        lines = [f"- **{name}**: {value}" for name, value in _figures(plan, assumptions)]
        return f"### {_title(plan)}\n\n{markdown_text(header, rows_shown)}\n" + "\n".join(lines) + "\n"
    return _table(plan, assumptions)


def _title(plan: Plan) -> str:
    graph = plan.graph
    return f"{graph.name}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors, k = {plan.partition.k}"


def _stage_cells(plan: Plan) -> tuple[list[str], list[list[str]]]:
    unit, ticks = _common_unit(plan)
    scale = f" ({unit})" if unit else ""
    header = [
        "stage",
        "ops",
        "first op",
        "last op",
        *(f"{c}{scale}" for c in ("work", "in", "out", "overflow", "cost")),
    ]
    bottleneck = plan.certificate.upper
    no_memory = plan.instance.system.fast_memory_bytes is None
    rows = []
    for row in plan.stage_rows():
        figures = [f"{row[part] / ticks:,.1f}" for part in ("work", "input", "output", "overflow", "cost")]
        if no_memory:
            figures[3] = "–"
        if not row["ops"]:
            figures = ["–"] * 5
        share = row["cost"] / bottleneck if bottleneck else 0.0
        rows.append(
            [
                *(str(row["index"]), str(row["ops"]), row["first"] or "–", row["last"] or "–", *figures),
                f"{share:.1%}" if row["ops"] else "–",
            ]
        )
    return [*header, "of bottleneck"], rows


def _common_unit(plan: Plan) -> tuple[str, float]:
    """Return the unit in which all times of the table are shown, and the ticks in it."""
    if not plan.instance.timed:
        return "", float(plan.instance.ticks_per_unit)
    for unit in ("s", "ms", "µs", "ns"):
        if plan.certificate.upper >= 10 * PICOSECONDS[unit]:
            return unit, float(PICOSECONDS[unit])
    return "ps", 1.0


def _figures(plan: Plan, assumptions: Sequence[str]) -> list[tuple[str, str]]:
    instance, certificate, lower = plan.instance, plan.certificate, plan.lower
    upper = certificate.upper
    busy = plan.partition.k - len(plan.partition.empty_stages)
    stage = int(plan.costs.cost.argmax())
    alone = int(instance.work.sum()) + instance.overflow_ticks(
        int(instance.param_bytes.sum()), instance.system.activation_reserve_bytes
    )
    figures = [("bottleneck", f"{instance.describe(upper)} (stage {stage}), found by {plan.found_by}")]
    if upper and instance.timed:
        figures.append(("throughput", f"{_rate(10**12 / upper)} inferences/s"))
    figures.append(("pipeline latency", f"{instance.describe(busy * upper)} ({busy} busy stages × bottleneck)"))
    if upper and instance.system.peak == "reserve":
        figures.append(("speed-up", f"{alone / upper:.2f}× over one stage"))
    proven = f"lower bound {instance.describe(lower.value)} by {lower.method}, tier {lower.tier}"
    if certificate.optimal:
        figures.append(("ratio", f"1, optimal: {proven}"))
    elif certificate.ratio is None:
        figures.append(("ratio", f"none proven: {proven}"))
    else:
        figures.append(("ratio", f"{certificate.ratio:.4f} proven: {proven}"))
    size = int(instance.tensor_bytes[plan.crossing].sum())
    crossing = f"{len(plan.crossing)} of {instance.tensor_count}"
    figures.append(("crossing tensors", crossing + (f", {format_bytes(size)}" if size else "")))
    figures.append(("assumptions", "; ".join(assumptions)))
    return figures


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _table(plan: Plan, assumptions: Sequence[str]) -> str:
    from rich.table import Table
    from rich.text import Text

    header, rows = _stage_cells(plan)
    console = _terminal()
    table = Table(
        title=Text(_title(plan), "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, name in enumerate(header):
        if index in (2, 3):
            table.add_column(Text(name), overflow="ellipsis", no_wrap=True, max_width=28)
        else:
            table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    bottleneck = plan.certificate.upper
    for row, cost in zip(rows, plan.costs.cost.tolist(), strict=True):
        share = cost / bottleneck if bottleneck else 0.0
        style = "bold red" if share == 1 else "cyan"
        table.add_row(*(Text(cell) for cell in row), Text(_bar(share, console), style))
    figures = Table.grid(padding=(0, 2, 0, 0))
    figures.add_column(style="bold", no_wrap=True)
    figures.add_column(overflow="fold")
    for name, value in _figures(plan, assumptions):
        figures.add_row(Text(name), Text(value))
    with console.capture() as capture:
        console.print(table)
        console.print()
        console.print(figures)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _terminal() -> RichConsole:
    from rich.console import Console as RichConsole

    if sys.stdout.isatty():
        return RichConsole()
    return RichConsole(width=140, no_color=True, force_terminal=False)


def _bar(share: float, console: RichConsole) -> str:
    if not (console.encoding or "").lower().startswith("utf"):
        return "#" * round(share * _BAR_WIDTH)
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
