"""Table of a plan for training: its stages, and the figures below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import Any

from mtpp.formats.results.training_plan import AnyTrainingPlan, Planned, level_one, stage_document
from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.training.nested_plan import NestedPlan, all_superstages
from mtpp.training.plan import LayerStage, chosen_of
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Figure, Table, table_of_columns, table_of_records
from mtpp.views.terminal import Medium
from mtpp.views.training.training_texts import (
    LINES,
    alike_text,
    least_memory_text,
    of_machine,
    proven_text,
    rate_text,
    rules_text,
    size_text,
    system_text,
    unit_of,
)
from mtpp.wording import counted

_UNPROVEN = " (not proven that there is none)"

_CSV = (
    "stage", "layers", "first", "last", "data_parallel", "tensor_parallel", "devices", "in_flight", "memory_bytes",
    "compute", "edges", "gradients", "communication", "time", "utilization", "configurations", "time_unit",
)  # fmt: skip


@view
def training_plan_text(planned: Planned, medium: Medium) -> Iterable[Table]:
    """Return a table of the stages; figures alone where there is no plan."""
    plan = planned.plan
    if medium.form == "csv":
        return [table_of_records([] if plan is None else _records(plan), _CSV)]
    if plan is None:
        return [Table(_title(planned), figures=_figures(planned))]
    table = table_of_columns(_title(planned), _columns(plan), _figures(planned))
    slowest = [i for i, one in enumerate(plan.figures) if one.time == plan.time_per_sample]
    return [replace(table, styles=dict.fromkeys(slowest, "bold")) if medium.form == "table" else table]


def _title(planned: Planned) -> str:
    model = planned.task.problem.model
    times = ""
    if planned.plan is not None:
        times = f" (times in {unit_of(planned.plan.time_per_sample)[0]})"
    sizes = f"{counted(len(model.layers), 'layer')}, {counted(len(model.edges), 'edge')}"
    return f"{terminal_safe(model.name)}: {sizes} on {system_text(planned.task)}{times}"


def _columns(plan: AnyTrainingPlan) -> Iterator[tuple[Column, Sequence[Any]]]:
    limit = level_one(plan.problem).memory_bytes
    _, ticks = unit_of(plan.time_per_sample)
    stages, figures = plan.stages, plan.figures
    digits = next((n for n, limit in ((3, 10), (2, 100)) if plan.time_per_sample < limit * ticks), 1)
    time = CostColumns("", Fraction(ticks), digits).text
    yield Column("stage"), range(len(stages))
    yield Column("layers"), [len(stage.layers) for stage in stages]
    yield Column("first … last", left=True, names=True), [terminal_safe(_ends(plan, stage)) for stage in stages]
    yield Column("d"), [stage.data_parallel for stage in stages]
    yield Column("t"), [stage.tensor_parallel for stage in stages]
    if isinstance(plan, NestedPlan):
        yield Column("copies"), plan.replicas
    yield Column("devices", spare=6), _devices(plan)
    yield Column("in flight", spare=5), [one.in_flight for one in figures]
    yield Column("memory", format_bytes, spare=4), [one.memory_bytes for one in figures]
    yield Column(f"of {size_text(limit)}"), [_share(one.memory_bytes, limit) for one in figures]
    yield Column("compute", time, spare=1), [one.compute for one in figures]
    yield Column("edges", time, spare=2), [one.edges for one in figures]
    yield Column("gradients", time, spare=3), [one.gradients for one in figures]
    yield Column("time", time), [one.time for one in figures]
    yield Column("busy"), [_share(one.time, plan.time_per_sample) for one in figures]
    if _alike(plan) is None:
        yield Column("configurations", left=True, spare=7), [terminal_safe(_mix(plan, stage)) for stage in stages]


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


def _figures(planned: Planned) -> list[Figure]:
    from mtpp.solvers.planners.registry import PLANNERS

    plan, task = planned.plan, planned.task
    sign = "exactly" if task.flat.exact_micro_batches else "at most"
    batch, rules = f"{sign} {task.micro_batches.text}", ("rules", rules_text(task))
    if plan is None:
        none = planned.no_plan
        assert none is not None
        figures: list[Figure] = [
            ("no plan", f"{none.reason}{of_machine(none.problem)}{'' if none.proven else _UNPROVEN}")
        ]
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
    if (alike := _alike(plan)) is not None:
        figures.append(("configurations", alike_text(alike, len(plan.problem.model.layers))))
    else:
        figures.append(("configurations", _mixes_text(plan), "configurations"))
    if isinstance(plan, NestedPlan):
        figures += _levels(plan)
    if PLANNERS[task.planner].knapsack:
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


def _records(plan: AnyTrainingPlan) -> Iterator[dict[str, Any]]:
    for i, stage in enumerate(plan.stages):
        names = _ordered(plan, stage)
        yield {
            **stage_document(plan, i),
            "stage": i,
            "layers": len(names),
            "first": names[0],
            "last": names[-1],
            "configurations": _mix(plan, stage),
            "time_unit": plan.problem.model.time_unit,
        }
