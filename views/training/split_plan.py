"""Tables of planned split points: stages, devices, and the figures below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mtpp.formats.results.split_plan import PlannedSplit, no_plan_reason
from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.inference.cost_columns import CostColumns
from mtpp.names import TORCH_PIPELINING
from mtpp.terminal_safe import terminal_safe
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Figure, Table, table_of_columns, table_of_records
from mtpp.views.terminal import Medium
from mtpp.views.training.split_plan_texts import (
    configurations_text,
    enough_memory,
    family_scope,
    own_scope,
    schedule_text,
)
from mtpp.views.training.training_texts import memory_each, of_machine, size_text, would_do
from mtpp.wording import counted

_CSV = (
    "index", "device", "ops", "first", "last", "forward_ticks", "backward_ticks", "handover_ticks",
)  # fmt: skip

_VISIBLY_ABOVE_1 = 1.00005


@view
def split_plan_text(planned: PlannedSplit, medium: Medium) -> Iterable[Table]:
    """Return a table of the stages and one of the devices; figures alone where there is no plan."""
    plan = planned.plan
    if medium.form == "csv":
        return [table_of_records([] if plan is None else _records(plan), _CSV)]
    if plan is None:
        return [Table(_title(planned), figures=_figures(planned))]
    stages, devices = table_of_columns(_title(planned), _stages(plan)), table_of_columns("", _devices(plan))
    if medium.form == "html":
        return [replace(stages, figures=[*_figures(planned), *_device_figures(devices)])]
    return [stages, devices, Table(figures=_figures(planned))]


def _title(planned: PlannedSplit) -> str:
    problem, line = planned.problem, planned.problem.line
    what = "op" if line.kind == "graph" else "layer"
    devices = counted(problem.devices, "device")
    if problem.memory_bytes is not None:
        sizes = list(dict.fromkeys(problem.memory_bytes))
        devices += f" of {' or '.join(map(size_text, sizes))}"
    link = f"{size_text(problem.machine.device.link.bandwidth_bytes_per_s)}/s"
    if line.costs.latency:
        link += f" after {format_picoseconds(line.costs.latency)}"
    times = ""
    if planned.plan is not None and (unit := _cost_columns(planned.plan).unit):
        times = f" (times in {unit})"
    return f"{terminal_safe(line.name)}: {counted(line.costs.ops, what)} on {devices}, {link}{times}"


def _cost_columns(plan: SplitPlan) -> CostColumns:
    return CostColumns.of(plan.problem.line, max(map(max, plan.stage_ticks)))


def _stages(plan: SplitPlan) -> Iterator[tuple[Column, Sequence[Any]]]:
    time, places = _cost_columns(plan).text, range(plan.stages)
    named = [plan.layers(s) for s in places]
    forward, backward, handover = zip(*plan.stage_ticks, strict=True)
    yield Column("stage"), places
    yield Column("device", spare=3), [s % plan.problem.devices for s in places]
    yield Column("ops" if plan.problem.line.kind == "graph" else "layers", "{:,}".format), list(map(len, named))
    yield Column("first … last", left=True, names=True), list(map(_ends, named))
    yield Column("forward", time), forward
    yield Column("backward", time, spare=2), backward
    if plan.problem.rules.transport == "neighbours":
        yield Column("hand-over", time, spare=1), handover


def _ends(names: Any) -> str:
    first, last = terminal_safe(str(names[0])), terminal_safe(str(names[-1]))
    return first if len(names) == 1 else f"{first} … {last}"


def _devices(plan: SplitPlan) -> Iterator[tuple[Column, Sequence[Any]]]:
    problem, iteration = plan.problem, plan.iteration
    busy = [ticks / iteration if iteration else 1.0 for ticks in plan.busy_ticks]
    yield Column("device"), range(problem.devices)
    yield Column("busy", _share), busy
    yield Column("idle", _share, spare=3), [1 - share for share in busy]
    yield Column("in flight", spare=2), plan.schedule.in_flight
    if plan.looped is not None:
        yield Column("warm-up", spare=4), plan.looped.warm_up
    if problem.line.sizes_known:
        yield Column("memory", format_bytes), plan.peak_bytes
    if problem.memory_bytes is not None:
        shares = zip(plan.peak_bytes, problem.memory_bytes, strict=True)
        yield Column("of its memory", _share, spare=1), [size / limit for size, limit in shares]


def _share(share: float) -> str:
    return format_share(share, 1)


def _device_figures(devices: Table) -> list[Figure]:
    names = devices.header[1:]
    return [
        (f"device {cells[0]}", ", ".join(f"{name} {cell}" for name, cell in zip(names, cells[1:], strict=True)))
        for cells in devices.cells
    ]


def _figures(planned: PlannedSplit) -> list[Figure]:
    plan, problem = planned.plan, planned.problem
    if plan is None:
        none = planned.no_plan
        assert none is not None
        return [
            ("no plan", f"{no_plan_reason(none)}{of_machine(problem)}"),
            ("least memory", _memory_needed(none)),
            *_rules(problem),
        ]
    line = problem.line
    count = counted(problem.micro_batches, "micro-batch")
    figures: list[Figure] = [("iteration", f"{line.describe(plan.iteration)} for {count}, planned by pfeife")]
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
    lower = plan.problem.line.describe(bound)
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
    bound = f"no plan needs less than {none.memory.value:,} bytes on some device, tier {none.memory.tier}"
    if least is None:
        return f"not known; {bound}"
    return f"{memory_each(least)}: {would_do(none.problem, enough_memory(least), '--memory')}; {bound}"


def _rules(problem: SplitProblem) -> list[tuple[str, str]]:
    rules, line = problem.rules, problem.line
    what = "graph" if line.kind == "graph" else "model"
    texts = [f"backward passes {float(problem.backward_ratio):g} × forward passes where the {what} says nothing"]
    if line.kind == "layers":
        texts.append(configurations_text(line))
    if line.sizes_known and line.kind == "graph":
        which = "parameters" if line.trained is None else "trained parameters"
        texts.append(f"{float(problem.state):g} bytes of state for each byte of {which}")
    if line.repeated_bytes:
        texts.append("every op keeps all weights that it reads")
    if set(problem.speeds) != {1}:
        texts.append(f"speeds {', '.join(f'{float(speed):g}' for speed in problem.speeds)}")
    if rules.transport == "direct":
        texts.append("tensors go straight to the stages that read them")
    if rules.buffers == TORCH_PIPELINING:
        texts.append("buffers for what all micro-batches hand over, as PyTorch's pipelining has")
    if rules.search == "beam":
        texts.append("beam search")
    return [("rules", "; ".join(texts))]


def _records(plan: SplitPlan) -> Iterator[dict[str, Any]]:
    for s, (forward, backward, handover) in enumerate(plan.stage_ticks):
        names = plan.layers(s)
        moved = handover if plan.problem.rules.transport == "neighbours" else ""
        row = (s, s % plan.problem.devices, len(names), names[0], names[-1], forward, backward, moved)
        yield dict(zip(_CSV, row, strict=True))
