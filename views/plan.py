"""How a plan looks: the stage table and the figures below it, for terminals, markdown and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import visible
from mtpp.units import format_bytes, format_share
from mtpp.views.tables import csv_text, figures_grid, markdown_text, rendered, result_terminal, safe_text

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.inference.plan import Plan

_BAR_WIDTH = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NAME_WIDTHS = (8, 28)
"""Fewest and most characters of an op's name in the table; the middle of longer ones is left out."""

_EMPTY_LISTED = 8


def plan_text(plan: Plan, output_format: str, assumptions: Sequence[str]) -> str:
    """Return *plan* as ``table``, ``markdown`` or ``csv``."""
    if output_format == "csv":
        rows = plan.stage_rows()
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    if output_format == "markdown":
        header, rows_shown = _stage_cells(plan)
        lines = [f"- **{name}**: {value}" for name, value in _figures(plan, assumptions)]
        return f"### {visible(_title(plan))}\n\n{markdown_text(header, rows_shown)}\n" + "\n".join(lines) + "\n"
    return _table(plan, assumptions)


def _title(plan: Plan) -> str:
    graph = plan.graph
    times = in_unit(plan, common_unit(plan))
    return f"{graph.name}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors, k = {plan.partition.k}{times}"


def _stage_cells(plan: Plan) -> tuple[list[str], list[list[str]]]:
    costs = common_unit(plan)
    bottleneck = plan.certificate.upper
    no_memory = plan.instance.system.fast_memory_bytes is None
    rows = []
    for row in _listed_stages(plan):
        figures = [costs.text(row[part]) for part in ("work", "input", "output", "overflow", "cost")]
        if no_memory:
            figures[3] = "–"
        share = format_share(row["cost"], bottleneck)
        if not row["ops"]:
            figures, share = ["–"] * 5, "–"
        rows.append([str(row["index"]), str(row["ops"]), row["first"] or "–", row["last"] or "–", *figures, share])
    return ["stage", "ops", "first op", "last op", "work", "in", "out", "overflow", "cost", "share"], rows


def _listed_stages(plan: Plan) -> list[dict[str, Any]]:
    """Return the stages worth a line: all of them, or only the busy ones where very many are empty."""
    rows = plan.stage_rows()
    if len(plan.partition.empty_stages) > _EMPTY_LISTED:
        return [row for row in rows if row["ops"]]
    return rows


def common_unit(plan: Plan) -> CostColumns:
    """Return the unit in which all costs of the table are shown."""
    return CostColumns.of(plan.instance, plan.certificate.upper)


def in_unit(plan: Plan, costs: CostColumns) -> str:
    """Return what a title says of the unit; nothing where it is that of an abstract graph."""
    what = "times" if plan.instance.timed else "costs"
    return f" ({what} in {costs.unit})" if costs.unit else ""


def _figures(plan: Plan, assumptions: Sequence[str]) -> list[tuple[str, str]]:
    instance, certificate, lower = plan.instance, plan.certificate, plan.lower
    upper = certificate.upper
    busy = plan.partition.k - len(plan.partition.empty_stages)
    stage = int(plan.costs.cost.argmax())
    empty = len(plan.partition.empty_stages)
    figures = [("empty stages", f"{empty:,}, not listed")] if empty > _EMPTY_LISTED else []
    figures += [("bottleneck", f"{instance.describe(upper)} (stage {stage}), found by {plan.found_by}")]
    if upper and instance.timed:
        figures.append(("throughput", f"{_rate(10**12 / upper)} inferences/s"))
    figures.append(("pipeline latency", f"{instance.describe(busy * upper)} ({busy} busy stages × bottleneck)"))
    if upper:
        alone = _cost_of_one_stage(plan)
        none = "none: one stage alone exceeds the stage memory"
        figures.append(("speed-up", none if alone is None else f"{_factor(alone / upper)}× over one stage"))
    if instance.system.limits_memory:
        figures.append(("memory", _memory_text(plan)))
    proven = f"lower bound {instance.describe(lower.value)} by {lower.method}, tier {lower.tier}"
    if certificate.optimal:
        figures.append(("ratio", f"1, optimal: {proven}"))
    elif certificate.ratio is None:
        figures.append(("ratio", f"none proven: {proven}"))
    elif certificate.closed_by_solver:
        figures.append(("ratio", f"closed to solver tolerance, not proven: {proven}"))
    elif not certificate.lower.is_proof:
        figures.append(("ratio", f"{_ratio(certificate.ratio)} by the solver's word, not proven: {proven}"))
    else:
        figures.append(("ratio", f"{_ratio(certificate.ratio)} proven: {proven}"))
    if plan.coverage and not certificate.optimal:
        figures.append(("left out", plan.coverage))
    size = sum(instance.tensor_bytes[plan.crossing].tolist())  # more than 64 bits hold, perhaps
    crossing = f"{len(plan.crossing)} of {instance.tensor_count}"
    figures.append(("crossing tensors", crossing + (f", {format_bytes(size)}" if size else "")))
    figures.append(("assumptions", "; ".join(assumptions)))
    return figures


def _cost_of_one_stage(plan: Plan) -> int | None:
    """Return the ticks of the whole graph in one stage; None if the stage memory rules that out."""
    from mtpp.inference.working_memory import peaks_in_order

    instance = plan.instance
    params, peak = int(instance.param_bytes.sum()), instance.system.activation_reserve_bytes
    if instance.system.peak == "order" and instance.system.limits_memory:
        peak = int(peaks_in_order(instance, plan.partition.assignment * 0, 1)[0])
    limit = instance.system.stage_memory_bytes
    if limit is not None and params + peak > limit:
        return None
    return int(instance.work.sum()) + instance.overflow_ticks(params, peak)


def _memory_text(plan: Plan) -> str:
    held = plan.costs.param_bytes + plan.costs.peak_bytes
    stage = int(held.argmax())
    limit = plan.instance.system.stage_memory_bytes
    allowed = "" if limit is None else f", {format_bytes(limit)} allowed"
    return f"at most {format_bytes(int(held[stage]))} per stage (stage {stage}){allowed}"


def _ratio(ratio: float) -> str:
    """Write a ratio above 1 so that it does not read as 1."""
    text = f"{ratio:.4f}" if ratio >= 1.0001 else f"{ratio:.12g}"
    return "just above 1" if text == "1" else text


def _factor(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _table(plan: Plan, assumptions: Sequence[str]) -> str:
    from rich.table import Table

    header, rows = _stage_cells(plan)
    console = result_terminal()
    fixed = _fixed_width(header, rows)
    bars = console.width >= fixed + 2 * _NAME_WIDTHS[0] + _BAR_WIDTH + 2
    limit = _name_limit(console.width - fixed - (_BAR_WIDTH + 2 if bars else 0))
    rows = [[*row[:2], _shortened(row[2], limit), _shortened(row[3], limit), *row[4:]] for row in rows]
    table = Table(
        title=safe_text(_title(plan), "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, name in enumerate(header):
        table.add_column(safe_text(name), justify="left" if index in (2, 3) else "right", no_wrap=True)
    if bars:
        table.add_column("", no_wrap=True)
    bottleneck = plan.certificate.upper
    for row, stage in zip(rows, _listed_stages(plan), strict=True):
        share = stage["cost"] / bottleneck if bottleneck else 0.0
        style = "bold red" if share == 1 else "cyan"
        bar = [safe_text(_bar(share, console), style)] if bars else []
        table.add_row(*(safe_text(cell) for cell in row), *bar)
    return rendered(console, table, "", figures_grid(_figures(plan, assumptions)))


def _fixed_width(header: list[str], rows: list[list[str]]) -> int:
    """Return the width of all columns but the names and the bar, gaps included."""
    others = [max(len(name), *(len(row[i]) for row in rows)) for i, name in enumerate(header) if i not in (2, 3)]
    return sum(others) + 2 * (len(header) - 1)


def _name_limit(room: int) -> int:
    least, most = _NAME_WIDTHS
    return min(max(room // 2, least), most)


def _shortened(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    kept = limit - 1
    return f"{name[: kept // 2]}…{name[len(name) - (kept - kept // 2) :]}"


def _bar(share: float, console: RichConsole) -> str:
    if not (console.encoding or "").lower().startswith("utf"):
        return "#" * round(share * _BAR_WIDTH)
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
