"""Tables of a planned stage graph, its stages and the figures below them, for terminals, Markdown and CSV; and JSON."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.views.training.graph_plan_texts import no_plan_reason
from mtpp.views.training.stage_columns import StageColumn, fitting_columns
from mtpp.views.training.training_texts import GRAPHS, proven_text, size_text, throughput, unit_of, whole_mebibytes
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
    from mtpp.training.graph_problem import GraphProblem
    from mtpp.training.stage_costs import ScheduledStage
    from mtpp.views.training.planned_graph import PlannedGraph

_CSV = (
    "index", "layers", "first", "last", "data_parallel", "devices", "micro_batch", "forwards_backwards", "in_flight",
    "memory_bytes", "forward_ticks", "backward_ticks", "synchronisation_ticks", "reads_from", "configurations",
)  # fmt: skip

_MOST_SIZES = 8
"""Sizes of micro-batches that are listed one by one."""


def graph_plan_text(planned: PlannedGraph, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return a plan, or that there is none, as ``table``, ``markdown``, ``csv`` or ``html``.

    Parameters
    ----------
    terminal
        The one that a table is for; None: standard output.
    """
    plan = planned.plan
    if output_format == "csv":
        return csv_text(_CSV, [] if plan is None else _csv_rows(plan))
    columns = [] if plan is None else _columns(plan)
    if output_format == "markdown":
        rows = zip(*(column.cells for column in columns), strict=True)
        return markdown_result(_title(planned), [column.name for column in columns], rows, _figures(planned))
    if output_format == "html":
        rows = zip(*(column.cells for column in columns), strict=True)
        left = [i for i, column in enumerate(columns) if column.left]
        return html_text(_title(planned), [column.name for column in columns], rows, _figures(planned), left=left)
    return _table(planned, columns, terminal or result_terminal())


def graph_plan_json(planned: PlannedGraph) -> str:
    """Return the text of the ``mtpp-training-plan`` document, version 2, of a plan or of there being none."""
    from mtpp.formats.io.json_text import dump_lines

    return dump_lines(planned.document(), ("stages", "transfers", "least_memory_stages")) + "\n"


def _title(planned: PlannedGraph) -> str:
    problem, model = planned.problem, planned.problem.model
    times = ""
    if planned.plan is not None:
        times = f" (times in {unit_of(_ticks(planned.plan))[0]})"
    sizes = f"{counted(len(model.layers), 'layer')}, {counted(len(model.edges), 'edge')}"
    devices = f"{counted(problem.devices, 'device')} of {size_text(problem.memory_bytes)}"
    link = f"{size_text(problem.costs.bandwidth_bytes_per_s)}/s"
    if problem.costs.latency_ticks:
        link += f" after {format_picoseconds(problem.costs.latency_ticks)}"
    return f"{terminal_safe(model.name)}: {sizes} on {devices}, {link}{times}"


def _ticks(plan: GraphPlan) -> Fraction:
    """Return the longest pass or synchronisation, whose unit the table's times have."""
    times = ((one.forward_ticks, one.backward_ticks, one.synchronisation_ticks) for one in plan.graph.stages)
    return Fraction(max(map(max, times)))


def _columns(plan: GraphPlan) -> list[StageColumn]:
    limit = plan.problem.memory_bytes
    unit, ticks = unit_of(_ticks(plan))
    columns = CostColumns(unit, Fraction(ticks), 0 if ticks == 1 else 3)
    graph = plan.graph
    before: list[list[str]] = [[] for _ in plan.stages]
    for one in graph.transfers:
        before[one.target].append(str(one.source))
    busy = [one.micro_batches * (one.forward_ticks + one.backward_ticks) for one in graph.stages]
    intervals = [stage.interval for stage in plan.stages]
    mixes = [] if _alike(plan) else [StageColumn("configurations", list(map(_mix, plan.stages)), 7, left=True)]
    gradients = [columns.text(Fraction(one.synchronisation_ticks)) for one in graph.stages]
    return [
        StageColumn("stage", [str(i) for i in range(len(plan.stages))]),
        StageColumn("after", [" ".join(one) or "-" for one in before], left=True),
        StageColumn("layers", [str(len(stage.configurations)) for stage in plan.stages]),
        StageColumn("first … last", [terminal_safe(one.name) for one in graph.stages], left=True),
        StageColumn("d", [str(stage.data_parallel) for stage in plan.stages]),
        StageColumn("b", [f"{stage.micro_batch:,}" for stage in plan.stages]),
        *([StageColumn("k", list(map(str, intervals)))] if set(intervals) != {1} else []),
        StageColumn("in flight", [str(stage.in_flight) for stage in plan.stages], 5),
        StageColumn("memory", [format_bytes(size) for size in plan.memory_bytes], 4),
        StageColumn(f"of {size_text(limit)}", [_share(size, limit) for size in plan.memory_bytes]),
        StageColumn("forward", [columns.text(Fraction(one.forward_ticks)) for one in graph.stages], 2),
        StageColumn("backward", [columns.text(Fraction(one.backward_ticks)) for one in graph.stages], 3),
        *([StageColumn("gradients", gradients, 1)] if any(one.synchronisation_ticks for one in graph.stages) else []),
        StageColumn("busy", [_share(ticks, plan.iteration) for ticks in busy]),
        *mixes,
    ]  # fmt: skip


def _share(part: int, whole: int) -> str:
    return format_share(part / whole, 1) if whole else "100.0%"


def _mix(stage: ScheduledStage) -> str:
    """Return how many layers of a stage run as what, most frequent first."""
    counts = Counter(one.id for one in stage.configurations.values())
    return terminal_safe(", ".join(f"{count} {name}" for name, count in counts.most_common()))


def _alike(plan: GraphPlan) -> str | None:
    """Return what all layers run as, if it is the same."""
    names = {one.id for stage in plan.stages for one in stage.configurations.values()}
    return names.pop() if len(names) == 1 else None


def _figures(planned: PlannedGraph, dropped: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    plan, problem = planned.plan, planned.problem
    if plan is None:
        none = planned.no_plan
        assert none is not None
        return [("no plan", no_plan_reason(none)), ("least memory", _memory_needed(none)), *_rules(problem)]
    iteration = plan.iteration
    figures = [("iteration", f"{format_picoseconds(iteration)} for {_batch(problem)}, planned by graphpipe")]
    if iteration:
        figures.append(("throughput", f"{throughput(Fraction(iteration, problem.mini_batch))} samples/s"))
    among = f"{'lines of stages' if problem.rules.sequential else 'stage graphs'} {GRAPHS}"
    lower, ticks = plan.lower, (Fraction(plan.iteration), Fraction(plan.lower.value))
    figures.append(("ratio", proven_text(*ticks, plan.ratio, lower.method, lower.tier, among)))
    busy = sum(
        stage.data_parallel * one.micro_batches * (one.forward_ticks + one.backward_ticks)
        for stage, one in zip(plan.stages, plan.graph.stages, strict=True)
    )
    used = f"{plan.devices_used:,} of {problem.devices:,} used"
    if iteration:
        used += f", busy {busy / (plan.devices_used * iteration):.1%} of the iteration on average"
    figures.append(("devices", used))
    figures.append(("stages", f"{len(plan.stages):,}, {plan.graph.depth:,} deep"))
    stage = plan.memory_bytes.index(max(plan.memory_bytes))
    held = format_bytes(plan.memory_bytes[stage])
    figures.append(("memory", f"at most {held} on a device (stage {stage}) of {size_text(problem.memory_bytes)}"))
    alike = _alike(plan)
    if alike is not None:
        layers = counted(len(problem.model.layers), "layer")
        figures.append(
            (
                "configurations",
                alike
                if layers == "1 layer"
                else f"{alike} for {'both layers' if layers == '2 layers' else f'all {layers}'}",
            )
        )
    elif "configurations" in dropped:
        mixes = (f"stage {s}: {_mix(stage)}" for s, stage in enumerate(plan.stages))
        figures.append(("configurations", "; ".join(mixes)))
    if plan.stopped in (*LIMITS_REACHED, StopReason.INTERRUPTED):
        figures.append(("stopped", f"{plan.stopped.replace('-', ' ')}: best plan and bound so far"))
    return [*figures, *_rules(problem)]


def _batch(problem: GraphProblem) -> str:
    return counted(problem.mini_batch, "sample")


def _memory_needed(none: NoGraphPlan) -> str:
    least = none.least_memory_bytes
    if none.hopeless:
        return f"none would do ({none.memory.method}, tier {none.memory.tier})"
    bound = f"no plan needs less than {none.memory.value:,} bytes ({none.memory.method}, tier {none.memory.tier})"
    if least is None:
        return f"not known; {bound}"
    exact = "no plan needs less, proven" if none.exact else bound
    return f"{format_bytes(least)} a device ({least:,} bytes): --memory {whole_mebibytes(least)} would do; {exact}"


def _rules(problem: GraphProblem) -> list[tuple[str, str]]:
    from mtpp.formats.results.graph_plan import notes

    rules = problem.rules
    shown = [f"{size:,}" for size in problem.sizes]
    if len(shown) > _MOST_SIZES:
        shown = [*shown[:3], "…", *shown[-3:]]
    samples = "sample" if problem.sizes == [1] else "samples"
    alike = "which may differ by stage" if rules.per_stage else "the same in all stages"
    texts = [f"micro-batches of {', '.join(shown)} {samples}, {alike}"]
    if tuple(rules.intervals) != (1,):
        texts.append(" or ".join(f"{k}F{k}B" for k in rules.intervals))
    if rules.sequential:
        texts.append("one line of stages")
    if rules.in_flight == "least":
        texts.append("fewest in flight")
    texts += [
        f"no {name}"
        for name, used in (("data parallelism", rules.data_parallel), ("recomputation", rules.recompute))
        if not used
    ]
    texts += problem.model.assumptions
    return [("rules", "; ".join(texts)), *(("note", text) for text in notes(problem))]


def _csv_rows(plan: GraphPlan) -> list[list[Any]]:
    from mtpp.formats.results.graph_plan import stage_documents

    rows = []
    for index, (row, stage) in enumerate(zip(stage_documents(plan.problem, plan.stages), plan.stages, strict=True)):
        model = plan.problem.model
        names = [model.layers[layer].name for layer in model.order if layer in stage.configurations]
        before = [str(one.source) for one in plan.graph.transfers if one.target == index]
        shown = {
            **row,
            "layers": len(names),
            "first": names[0],
            "last": names[-1],
            "reads_from": " ".join(before),
            "configurations": _mix(stage),
        }
        rows.append([shown[name] for name in _CSV])
    return rows


def _table(planned: PlannedGraph, columns: list[StageColumn], console: RichConsole) -> str:
    from rich.table import Table

    title = safe_text(_title(planned), "bold")
    if not columns:
        return rendered(console, title, figures_grid(_figures(planned)))
    shown, dropped = fitting_columns(columns, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in shown:
        table.add_column(safe_text(column.name), justify="left" if column.left else "right", no_wrap=True)
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(safe_text, cells))
    lines = _figures(planned, tuple(dropped))
    left_out = [name for name in dropped if name != "configurations"]
    if left_out:
        lines.append(("not shown", f"{', '.join(left_out)}: the terminal is too narrow"))
    return rendered(console, title, table, "", figures_grid(lines))
