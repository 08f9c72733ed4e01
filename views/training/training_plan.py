"""Tables of a plan for training, its stages and the figures below them, for terminals, Markdown and CSV; and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mtpp.formats.results.training_plan import level_one
from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.training.nested_plan import NestedPlan, all_superstages
from mtpp.training.plan import chosen_of
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.views.training.stage_columns import StageColumn, fitting_columns
from mtpp.views.training.training_texts import (
    LINES,
    least_memory_text,
    proven_text,
    rate_text,
    rules_text,
    size_text,
    system_text,
    unit_of,
)
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.formats.results.training_plan import AnyTrainingPlan
    from mtpp.training.plan import LayerStage
    from mtpp.views.training.training_results import Planned

_CSV = (
    "stage", "layers", "first", "last", "data_parallel", "tensor_parallel", "devices", "in_flight", "memory_bytes",
    "compute", "edges", "gradients", "communication", "time", "utilization", "configurations", "time_unit",
)  # fmt: skip


def training_plan_text(planned: Planned, output_format: str, terminal: RichConsole | None = None) -> str:
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


def plan_json(planned: Planned) -> str:
    """Return the text of the ``mtpp-training-plan`` document, version 1, of a plan or of there being none."""
    from mtpp.formats.results.training_plan import write_training_plan

    return write_training_plan(planned.document())


def _title(planned: Planned) -> str:
    model = planned.task.problem.model
    times = ""
    if planned.plan is not None:
        times = f" (times in {unit_of(planned.plan.time_per_sample)[0]})"
    sizes = f"{counted(len(model.layers), 'layer')}, {counted(len(model.edges), 'edge')}"
    return f"{terminal_safe(model.name)}: {sizes} on {system_text(planned.task)}{times}"


def _columns(plan: AnyTrainingPlan) -> list[StageColumn]:
    limit = level_one(plan.problem).memory_bytes
    _, ticks = unit_of(plan.time_per_sample)
    stages, figures = plan.stages, plan.figures
    digits = next((n for n, limit in ((3, 10), (2, 100)) if plan.time_per_sample < limit * ticks), 1)

    def times(part: str) -> list[str]:
        columns = CostColumns("", Fraction(ticks), digits)
        return [columns.text(getattr(one, part)) for one in figures]

    mixes = [terminal_safe(_mix(plan, stage)) for stage in stages]
    return [
        StageColumn("stage", [str(i) for i in range(len(stages))]),
        StageColumn("layers", [str(len(stage.layers)) for stage in stages]),
        StageColumn("first … last", [terminal_safe(_ends(plan, stage)) for stage in stages], left=True),
        StageColumn("d", [str(stage.data_parallel) for stage in stages]),
        StageColumn("t", [str(stage.tensor_parallel) for stage in stages]),
        *([StageColumn("copies", list(map(str, plan.replicas)))] if isinstance(plan, NestedPlan) else []),
        StageColumn("devices", [str(count) for count in _devices(plan)], 6),
        StageColumn("in flight", [str(one.in_flight) for one in figures], 5),
        StageColumn("memory", [format_bytes(one.memory_bytes) for one in figures], 4),
        StageColumn(f"of {size_text(limit)}", [_share(one.memory_bytes, limit) for one in figures]),
        StageColumn("compute", times("compute"), 1),
        StageColumn("edges", times("edges"), 2),
        StageColumn("gradients", times("gradients"), 3),
        StageColumn("time", times("time")),
        StageColumn("busy", [_share(one.time, plan.time_per_sample) for one in figures]),
        *([] if _alike(plan) else [StageColumn("configurations", mixes, 7, left=True)]),
    ]  # fmt: skip


def _devices(plan: AnyTrainingPlan) -> list[int]:
    """Return how many devices each stage runs on, in all its copies."""
    copies = plan.replicas if isinstance(plan, NestedPlan) else [stage.data_parallel for stage in plan.stages]
    return [count * stage.tensor_parallel for count, stage in zip(copies, plan.stages, strict=True)]


def _share(part: Any, whole: Any) -> str:
    return format_share(float(part / whole), 1) if whole else "100.0%"


def _ordered(plan: AnyTrainingPlan, stage: LayerStage) -> list[str]:
    """Return the names of a stage's layers from sources to sinks."""
    model = plan.problem.model
    place: dict[int, int] = {layer: at for at, layer in enumerate(model.order)}
    return [model.layers[layer].name for layer in sorted(stage.layers, key=place.__getitem__)]


def _ends(plan: AnyTrainingPlan, stage: LayerStage) -> str:
    names = _ordered(plan, stage)
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _mix(plan: AnyTrainingPlan, stage: LayerStage) -> str:
    """Return how many layers of a stage run as what, most frequent first."""
    counts = Counter(choice.configuration.id for choice in chosen_of(level_one(plan.problem), stage))
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _alike(plan: AnyTrainingPlan) -> str | None:
    """Return what all layers run as, if it is the same."""
    names = {choice.configuration.id for stage in plan.stages for choice in chosen_of(level_one(plan.problem), stage)}
    return names.pop() if len(names) == 1 else None


def _figures(planned: Planned, dropped: Sequence[str] = ()) -> list[tuple[str, str]]:
    plan, task = planned.plan, planned.task
    sign = "exactly" if task.flat.exact_micro_batches else "at most"
    batch, rules = f"{sign} {task.micro_batches.text}", ("rules", rules_text(task))
    if plan is None:
        none = planned.no_plan
        assert none is not None
        figures = [("no plan", none.reason if none.proven else f"{none.reason} (not proven that there is none)")]
        return [*figures, ("least memory", least_memory_text(none)), ("micro-batches", f"{batch} at once"), rules]
    time = plan.time_per_sample
    slowest = f"{format_picoseconds(float(time))} a micro-batch ({_slowest(plan)})"
    figures = [("time per sample", f"{slowest}, planned by {plan.planner}")]
    if time:
        figures.append(("throughput", rate_text(time, task.micro_batches.size)))
    lower = plan.lower
    figures.append(("ratio", proven_text(time, lower.value, plan.ratio, lower.method, lower.tier, LINES)))
    figures.append(("devices", _devices_text(plan)))
    figures.append(("micro-batches", f"{plan.degrees_sum:,} at once (Σ d), {batch} allowed"))
    figures.append(("memory", _memory_text(plan)))
    alike = _alike(plan)
    if alike is not None:
        layers = counted(len(plan.problem.model.layers), "layer")
        figures.append(
            (
                "configurations",
                alike
                if layers == "1 layer"
                else f"{alike} for {'both layers' if layers == '2 layers' else f'all {layers}'}",
            )
        )
    elif "configurations" in dropped:
        figures.append(("configurations", _mixes_text(plan)))
    if isinstance(plan, NestedPlan):
        figures += _levels(plan)
    if task.planner.knapsack:
        figures.append(("bang per buck", _knapsack_text(planned)))
    figures += [("note", text) for text in plan.notes]
    if plan.stopped in (*LIMITS_REACHED, StopReason.INTERRUPTED):
        figures.append(("stopped", f"{plan.stopped.replace('-', ' ')}: best plan and bound so far"))
    figures.append(rules)
    return figures


def _slowest(plan: AnyTrainingPlan) -> str:
    """Return the stage, or else the superstage, that the others wait for."""
    for i, figures in enumerate(plan.figures):
        if figures.time == plan.time_per_sample:
            return f"stage {i}"
    assert isinstance(plan, NestedPlan)
    slowest = max(all_superstages(plan.superstages), key=lambda figures: figures.time)
    return f"links of level {slowest.level} around {_range('stage', range(slowest.first, slowest.last + 1))}"


def _levels(plan: NestedPlan) -> list[tuple[str, str]]:
    """Return how stages are nested: what devices of each outer level hold, in how many copies, how busy links are."""
    texts: dict[int, list[str]] = {}
    for one in all_superstages(plan.superstages):
        known = texts.setdefault(one.level, [])
        busy = f"{'' if known else 'links busy '}{_share(one.time, plan.time_per_sample)}"
        known.append(f"{_range('stage', range(one.first, one.last + 1))} × {one.data_parallel}, {busy}")
    return [(f"level {level}", "; ".join(texts[level])) for level in sorted(texts, reverse=True)]


def _range(what: str, numbers: Sequence[int]) -> str:
    return f"{what} {numbers[0]}" if len(numbers) == 1 else f"{what}s {numbers[0]}–{numbers[-1]}"


def _devices_text(plan: AnyTrainingPlan) -> str:
    """Return how many devices are used, and which part of the time they have something to do."""
    problem = plan.problem
    text = f"{plan.devices_used:,} of {problem.devices:,} used"
    if not plan.time_per_sample:
        return text
    busy = sum(count * figures.time for count, figures in zip(_devices(plan), plan.figures, strict=True))
    share = busy / (plan.devices_used * plan.time_per_sample)
    return f"{text}, busy {float(share):.1%} of the time on average (steady state, without bubbles)"


def _memory_text(plan: AnyTrainingPlan) -> str:
    held = [figures.memory_bytes for figures in plan.figures]
    stage = held.index(max(held))
    limit = size_text(level_one(plan.problem).memory_bytes)
    return f"at most {format_bytes(held[stage])} on a device (stage {stage}) of {limit}"


def _mixes_text(plan: AnyTrainingPlan) -> str:
    texts = []
    for mix, stages in groupby(enumerate(plan.stages), key=lambda item: _mix(plan, item[1])):
        texts.append(f"{_range('stage', [i for i, _ in stages])}: {mix}")
    return "; ".join(texts)


def _knapsack_text(planned: Planned) -> str:
    if planned.task.knapsack == "heuristic":
        assert planned.plan is not None
        faster = "no others are" if planned.plan.optimal else "others may be"
        return f"chose the configurations (--knapsack heuristic): {faster} faster"
    stages = planned.heuristic_differs
    if not stages:
        return "would choose no slower configurations in any stage"
    numbers = ", ".join(map(str, stages))
    return f"would make {'stage' if len(stages) == 1 else 'stages'} {numbers} slower, or find nothing that fits"


def _csv_rows(plan: AnyTrainingPlan) -> list[list[Any]]:
    from mtpp.formats.results.training_plan import stage_document

    rows = []
    for i, stage in enumerate(plan.stages):
        names = _ordered(plan, stage)
        shown = {
            **stage_document(plan, i),
            "stage": i,
            "layers": len(names),
            "first": names[0],
            "last": names[-1],
            "configurations": _mix(plan, stage),
            "time_unit": plan.problem.model.time_unit,
        }
        rows.append([shown[name] for name in _CSV])
    return rows


def _table(planned: Planned, columns: list[StageColumn], console: RichConsole) -> str:
    from rich.table import Table

    title, figures = safe_text(_title(planned), "bold"), figures_grid
    if not columns:
        return rendered(console, title, figures(_figures(planned)))
    shown, dropped = fitting_columns(columns, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in shown:
        table.add_column(safe_text(column.name), justify="left" if column.left else "right", no_wrap=True)
    assert planned.plan is not None
    time = planned.plan.time_per_sample
    for cells, stage in zip(zip(*(column.cells for column in shown), strict=True), planned.plan.figures, strict=True):
        table.add_row(*map(safe_text, cells), style="bold" if stage.time == time else "")
    lines = _figures(planned, dropped)
    left_out = [name for name in dropped if name != "configurations"]
    if left_out:
        lines.append(("not shown", f"{', '.join(left_out)}: the terminal is too narrow"))
    return rendered(console, title, table, "", figures(lines))
