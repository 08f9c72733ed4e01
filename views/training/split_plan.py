"""Tables of planned split points: stages, devices and the figures below them; and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.inference.cost_columns import CostColumns
from mtpp.inference.counted_weights import as_weights_count
from mtpp.names import TORCH_PIPELINING
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.html import html_text
from mtpp.views.tables import (
    csv_text,
    figures_grid,
    markdown_figures,
    markdown_text,
    markdown_title,
    rendered,
    result_terminal,
    safe_text,
)
from mtpp.views.training.split_plan_texts import (
    configurations_text,
    enough_memory,
    family_scope,
    no_plan_reason,
    own_scope,
    schedule_text,
    ticks_text,
)
from mtpp.views.training.stage_columns import StageColumn, fitting_columns
from mtpp.views.training.training_texts import size_text
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
    from mtpp.training.pfeife.problem import SplitProblem
    from mtpp.views.training.planned_split import PlannedSplit

_CSV = (
    "index", "device", "ops", "first", "last", "forward_ticks", "backward_ticks", "handover_ticks",
)  # fmt: skip

_VISIBLY_ABOVE_1 = 1.00005


def split_plan_text(planned: PlannedSplit, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return a plan, or that there is none, as ``table``, ``markdown``, ``csv`` or ``html``.

    Parameters
    ----------
    terminal
        The one that a table is for; None: standard output.
    """
    plan = planned.plan
    if output_format == "csv":
        return csv_text(_CSV, [] if plan is None else _csv_rows(plan))
    tables = [] if plan is None else [_stages(plan), _devices(plan)]
    if output_format == "markdown":
        texts = [markdown_text([c.name for c in t], zip(*(c.cells for c in t), strict=True)) + "\n" for t in tables]
        lines = markdown_figures(_figures(planned))
        return markdown_title(_title(planned)) + "\n".join([*texts, lines]) + "\n"
    if output_format == "html":
        columns = tables[0] if tables else []
        rows = zip(*(column.cells for column in columns), strict=True)
        left = [i for i, column in enumerate(columns) if column.left]
        figures = [*_figures(planned), *_device_figures(plan)]
        return html_text(_title(planned), [column.name for column in columns], rows, figures, left=left)
    return _table(planned, tables, terminal or result_terminal())


def split_plan_json(planned: PlannedSplit) -> str:
    """Return the text of the ``mtpp-training-plan`` document, version 2, of a plan or of there being none."""
    from mtpp.formats.io.json_text import dump_lines
    from mtpp.formats.results.split_plan import ROWS

    return dump_lines(planned.document(), ROWS) + "\n"


def _title(planned: PlannedSplit) -> str:
    problem, line = planned.problem, planned.problem.line
    what = "op" if line.kind == "graph" else "layer"
    devices = counted(problem.devices, "device")
    if problem.memory_bytes is not None:
        sizes = list(dict.fromkeys(problem.memory_bytes))
        devices += f" of {' or '.join(map(size_text, sizes))}"
    link = f"{size_text(problem.bandwidth_bytes_per_s)}/s"
    if line.costs.latency:
        link += f" after {format_picoseconds(line.costs.latency)}"
    times = ""
    if planned.plan is not None and (unit := _cost_columns(planned.plan).unit):
        times = f" (times in {unit})"
    return f"{terminal_safe(line.name)}: {counted(line.costs.ops, what)} on {devices}, {link}{times}"


def _cost_columns(plan: SplitPlan) -> CostColumns:
    return CostColumns.of(plan.problem.line, max(map(max, plan.stage_ticks)))


def _stages(plan: SplitPlan) -> list[StageColumn]:
    columns = _cost_columns(plan)
    named = [plan.layers(s) for s in range(plan.stages)]
    forward, backward, handover = zip(*plan.stage_ticks, strict=True)
    neighbours = plan.problem.rules.transport == "neighbours"
    return [
        StageColumn("stage", [str(s) for s in range(plan.stages)]),
        StageColumn("device", [str(s % plan.problem.devices) for s in range(plan.stages)], 3),
        StageColumn("ops" if plan.problem.line.kind == "graph" else "layers", [f"{len(one):,}" for one in named]),
        StageColumn("first … last", [_ends(one) for one in named], left=True),
        StageColumn("forward", [columns.text(ticks) for ticks in forward]),
        StageColumn("backward", [columns.text(ticks) for ticks in backward], 2),
        *([StageColumn("hand-over", [columns.text(ticks) for ticks in handover], 1)] if neighbours else []),
    ]


def _ends(names: Any) -> str:
    first, last = terminal_safe(str(names[0])), terminal_safe(str(names[-1]))
    return first if len(names) == 1 else f"{first} … {last}"


def _devices(plan: SplitPlan) -> list[StageColumn]:
    problem, iteration = plan.problem, plan.iteration
    busy = [ticks / iteration if iteration else 1.0 for ticks in plan.busy_ticks]
    columns = [
        StageColumn("device", [str(d) for d in range(problem.devices)]),
        StageColumn("busy", [format_share(share, 1) for share in busy]),
        StageColumn("idle", [format_share(1 - share, 1) for share in busy], 3),
        StageColumn("in flight", [str(count) for count in plan.schedule.in_flight], 2),
    ]
    if plan.looped is not None:
        columns.append(StageColumn("warm-up", [str(count) for count in plan.looped.warm_up], 4))
    if problem.line.sizes_known:
        columns.append(StageColumn("memory", [format_bytes(size) for size in plan.peak_bytes]))
    if problem.memory_bytes is not None:
        shares = zip(plan.peak_bytes, problem.memory_bytes, strict=True)
        columns.append(StageColumn("of its memory", [format_share(size / limit, 1) for size, limit in shares], 1))
    return columns


def _device_figures(plan: SplitPlan | None) -> list[tuple[str, str]]:
    if plan is None:
        return []
    columns = _devices(plan)
    rows = zip(*(column.cells for column in columns), strict=True)
    names = [column.name for column in columns]
    return [
        (f"device {cells[0]}", ", ".join(f"{n} {c}" for n, c in zip(names[1:], cells[1:], strict=True)))
        for cells in rows
    ]


def _figures(planned: PlannedSplit) -> list[tuple[str, str]]:
    plan, problem = planned.plan, planned.problem
    if plan is None:
        none = planned.no_plan
        assert none is not None
        return [("no plan", no_plan_reason(none)), ("least memory", _memory_needed(none)), *_rules(problem)]
    line = problem.line
    count = counted(problem.micro_batches, "micro-batch")
    figures = [("iteration", f"{ticks_text(line, plan.iteration)} for {count}, planned by pfeife")]
    figures.append(("schedule", schedule_text(plan)))
    figures.append(("ratio", _proven(plan, plan.lower.value, plan.ratio, own_scope(plan))))
    figures.append(("over all", _proven(plan, plan.family.value, plan.family_ratio, family_scope(plan))))
    figures.append(("gain", _gains(plan)))
    even = plan.baselines[-1]
    if even.iteration <= plan.iteration:
        figures.append(("uneven stages", "gain nothing: even ones under this schedule are as fast"))
    elif plan.iteration:
        figures.append(("uneven stages", f"{even.iteration / plan.iteration:.3f}× even ones under this schedule"))
    if plan.stopped in (*LIMITS_REACHED, StopReason.INTERRUPTED):
        figures.append(("stopped", f"{plan.stopped.replace('-', ' ')}: best plan and bounds so far"))
    return [*figures, *_rules(problem)]


def _proven(plan: SplitPlan, bound: int, ratio: float | None, scope: str) -> str:
    lower = ticks_text(plan.problem.line, bound)
    if bound == plan.iteration:
        return f"1, no {scope}, is faster: lower bound {lower}, tier exact"
    if ratio is None:
        return f"none proven: lower bound {lower}"
    shown = f"{ratio:.4f}" if ratio >= _VISIBLY_ABOVE_1 else f"{ratio:.10g}"
    return f"{shown} proven: lower bound {lower}, tier exact, of every {scope}"


def _gains(plan: SplitPlan) -> str:
    if not plan.iteration:
        return "none: nothing takes any time"
    texts = [
        f"{one.iteration / plan.iteration:.3f}× {one.name}{'' if one.fits else ' (does not fit)'}"
        for one in plan.baselines[:-1]
    ]
    return ", ".join(texts) + ", each with even stages" if texts else "nothing to compare with"


def _memory_needed(none: NoSplitPlan) -> str:
    least = none.least_memory_bytes
    weights = as_weights_count(none.problem.line.counted_weights)
    bound = f"no plan needs less than {none.memory.value:,} bytes on some device{weights}, tier {none.memory.tier}"
    if least is None:
        return f"not known; {bound}"
    return f"{format_bytes(least)} a device ({least:,} bytes): --memory {enough_memory(least)} would do; {bound}"


def _rules(problem: SplitProblem) -> list[tuple[str, str]]:
    rules, line = problem.rules, problem.line
    what = "graph" if line.kind == "graph" else "model"
    texts = [f"backward passes {float(problem.backward_ratio):g} × forward passes where the {what} says nothing"]
    if line.kind == "layers":
        texts.append(configurations_text(line))
    if line.sizes_known and line.kind == "graph":
        which = "parameters" if line.trained is None else "trained parameters"
        texts.append(f"{float(problem.state):g} bytes of state for each byte of {which}")
    if line.counted_weights:
        texts.append(f"memory{as_weights_count(line.counted_weights)}")
    if set(problem.speeds) != {1}:
        texts.append(f"speeds {', '.join(f'{float(speed):g}' for speed in problem.speeds)}")
    if rules.transport == "direct":
        texts.append("tensors go straight to the stages that read them")
    if rules.buffers == TORCH_PIPELINING:
        texts.append("buffers for what all micro-batches hand over, as PyTorch's pipelining has")
    if rules.search == "beam":
        texts.append("beam search")
    return [("rules", "; ".join(texts))]


def _csv_rows(plan: SplitPlan) -> list[list[Any]]:
    rows = []
    for s, (forward, backward, handover) in enumerate(plan.stage_ticks):
        names = plan.layers(s)
        moved = handover if plan.problem.rules.transport == "neighbours" else ""
        rows.append([s, s % plan.problem.devices, len(names), names[0], names[-1], forward, backward, moved])
    return rows


def _table(planned: PlannedSplit, tables: list[list[StageColumn]], console: RichConsole) -> str:
    from rich.table import Table

    parts: list[Any] = [safe_text(_title(planned), "bold")]
    lines, left_out = _figures(planned), []
    for columns in tables:
        shown, dropped = fitting_columns(columns, console.width)
        left_out += dropped
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in shown:
            table.add_column(safe_text(column.name), justify="left" if column.left else "right", no_wrap=True)
        for cells in zip(*(column.cells for column in shown), strict=True):
            table.add_row(*map(safe_text, cells))
        parts += [table, ""]
    if left_out:
        lines.append(("not shown", f"{', '.join(left_out)}: the terminal is too narrow"))
    return rendered(console, *parts, figures_grid(lines))
