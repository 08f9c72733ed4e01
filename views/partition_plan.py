"""Stage table of a plan and the figures below it, for terminals, Markdown, CSV and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.inference.cost_columns import CostColumns, Ticks
from mtpp.units import format_bytes, format_share
from mtpp.views.html import html_text
from mtpp.views.shown_plan import ShownPlan, shown_plan
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.inference.plan import Plan

_BAR_WIDTH = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NAME_WIDTHS = (8, 28)
"""Fewest and most characters of an op's name in the table; the middle of longer ones is left out."""

_EMPTY_LISTED = 8
_NAMES = (2, 3)
"""Columns that hold names."""


def plan_text(plan: Plan, output_format: str, assumptions: Sequence[str]) -> str:
    """Return *plan* as ``table``, ``markdown`` or ``csv``."""
    return shown_text(shown_plan(plan, assumptions), output_format)


def shown_text(plan: ShownPlan, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return what is shown of a plan as ``table`` (on *terminal*), ``markdown``, ``csv`` or ``html``."""
    if output_format == "csv":
        return csv_text(list(plan.stages[0]), [list(row.values()) for row in plan.stages])
    if output_format == "html":
        return html_text(_title(plan), *_stage_cells(plan), _figures(plan), left=_NAMES)
    if output_format == "markdown":
        header, rows_shown = _stage_cells(plan)
        return markdown_result(_title(plan), header, rows_shown, _figures(plan))
    return _table(plan, terminal or result_terminal())


def _title(plan: ShownPlan) -> str:
    times = unit_text(plan, CostColumns.of(plan, plan.certificate.upper))
    return f"{plan.name}: {plan.ops:,} ops, {plan.tensors:,} tensors, k = {plan.k}{times}"


def _stage_cells(plan: ShownPlan) -> tuple[list[str], list[list[str]]]:
    bottleneck = plan.certificate.upper
    costs = CostColumns.of(plan, bottleneck)
    no_memory = plan.system.fast_memory_bytes is None
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


def _listed_stages(plan: ShownPlan) -> Sequence[Mapping[str, Any]]:
    """Return the stages worth a line: all of them, or only the busy ones where very many are empty."""
    if plan.empty_count > _EMPTY_LISTED:
        return [row for row in plan.stages if row["ops"]]
    return plan.stages


def common_unit(plan: Plan) -> CostColumns:
    """Return the unit in which all costs of the table are shown."""
    return CostColumns.of(plan.instance, plan.certificate.upper)


def unit_text(ticks: Ticks, costs: CostColumns) -> str:
    """Return what a title says of the unit; nothing where it is that of an abstract graph."""
    what = "times" if ticks.timed else "costs"
    return f" ({what} in {costs.unit})" if costs.unit else ""


def _figures(plan: ShownPlan) -> list[tuple[str, str]]:
    upper, empty = plan.certificate.upper, plan.empty_count
    busy = plan.k - empty
    figures = [("empty stages", f"{empty:,}, not listed")] if empty > _EMPTY_LISTED else []
    figures += [("bottleneck", f"{plan.describe(upper)} (stage {plan.slowest}), found by {plan.found_by}")]
    if upper and plan.timed:
        figures.append(("throughput", f"{_rate(10**12 / upper)} inferences/s"))
    figures.append(("pipeline latency", f"{plan.describe(busy * upper)} ({counted(busy, 'busy stage')} × bottleneck)"))
    if upper and plan.one_stage_known:
        alone = plan.one_stage
        none = "none: one stage alone exceeds the stage memory"
        figures.append(("speed-up", none if alone is None else f"{_factor(alone / upper)}× over one stage"))
    if plan.system.limits_memory:
        figures.append(("memory", _memory_text(plan)))
    figures.append(("ratio", _ratio_text(plan)))
    if plan.coverage and not plan.certificate.optimal:
        figures.append(("left out", plan.coverage))
    if plan.crossing is not None:
        size = plan.crossing.size_bytes
        crossing = f"{plan.crossing.count} of {plan.crossing.of}"
        figures.append(("crossing tensors", crossing + (f", {format_bytes(size)}" if size else "")))
    figures.append(("assumptions", "; ".join(plan.assumptions)))
    return figures


def _ratio_text(plan: ShownPlan) -> str:
    certificate, lower = plan.certificate, plan.lower
    bound = f"lower bound {plan.describe(lower.value)} by {lower.method}, tier {lower.tier}"
    if plan.claimed:
        known = {None: "none", 1.0: "1"}.get(certificate.ratio) or _ratio(certificate.ratio or 1)
        return f"{known} claimed, not verified: {bound}"
    if certificate.optimal:
        return f"1, optimal: {bound}"
    if certificate.ratio is None:
        return f"none proven: {bound}"
    if certificate.closed_by_solver:
        return f"closed to solver tolerance, not proven: {bound}"
    if not lower.is_proof:
        return f"{_ratio(certificate.ratio)} by the solver's word, not proven: {bound}"
    return f"{_ratio(certificate.ratio)} proven: {bound}"


def _memory_text(plan: ShownPlan) -> str:
    held = [row["param_bytes"] + row["peak_bytes"] for row in plan.stages]
    stage = held.index(max(held))
    limit = plan.system.stage_memory_bytes
    allowed = "" if limit is None else f", {format_bytes(limit)} allowed"
    return f"at most {format_bytes(held[stage])} per stage (stage {stage}){allowed}"


def _ratio(ratio: float) -> str:
    """Write a ratio above 1 so that it does not read as 1."""
    text = f"{ratio:.4f}" if ratio >= 1.0001 else f"{ratio:.12g}"
    return "just above 1" if text == "1" else text


def _factor(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _table(plan: ShownPlan, console: RichConsole) -> str:
    from rich.table import Table

    header, rows = _stage_cells(plan)
    fixed = _fixed_width(header, rows)
    bars = console.width >= fixed + 2 * _NAME_WIDTHS[0] + _BAR_WIDTH + 2
    limit = _name_limit(console.width - fixed - (_BAR_WIDTH + 2 if bars else 0))
    rows = [[*row[:2], _shortened(row[2], limit), _shortened(row[3], limit), *row[4:]] for row in rows]
    table = Table(
        title=safe_text(_title(plan), "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, name in enumerate(header):
        table.add_column(safe_text(name), justify="left" if index in _NAMES else "right", no_wrap=True)
    if bars:
        table.add_column("", no_wrap=True)
    bottleneck = plan.certificate.upper
    for row, stage in zip(rows, _listed_stages(plan), strict=True):
        share = stage["cost"] / bottleneck if bottleneck else 0.0
        style = "bold red" if share == 1 else "cyan"
        bar = [safe_text(_bar(share, console), style)] if bars else []
        table.add_row(*(safe_text(cell) for cell in row), *bar)
    return rendered(console, table, "", figures_grid(_figures(plan)))


def _fixed_width(header: list[str], rows: list[list[str]]) -> int:
    """Return the width of all columns but the names and the bar, gaps included."""
    others = [max(len(name), *(len(row[i]) for row in rows)) for i, name in enumerate(header) if i not in _NAMES]
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
        return "#" * round(min(share, 1.0) * _BAR_WIDTH)
    share = min(share, 1.0)  # a document may claim anything
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
