"""Table of a planned stage graph: its stages, and the figures below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from mtpp.formats.results.graph_plan import PlannedGraph, no_plan_reason, notes, stage_documents
from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import ScheduledStage
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Figure, Table, table_of_columns, table_of_records
from mtpp.views.terminal import Medium
from mtpp.views.training.training_texts import (
    GRAPHS,
    alike_text,
    memory_each,
    of_machine,
    proven_text,
    size_text,
    throughput,
    unit_of,
    whole_mebibytes,
    would_do,
)
from mtpp.wording import counted

_CSV = (
    "index", "layers", "first", "last", "data_parallel", "devices", "micro_batch", "forwards_backwards", "in_flight",
    "memory_bytes", "forward_ticks", "backward_ticks", "synchronisation_ticks", "reads_from", "configurations",
)  # fmt: skip

_MOST_SIZES = 8
"""Sizes of micro-batches that are listed one by one."""


@view
def graph_plan_text(planned: PlannedGraph, medium: Medium) -> Iterable[Table]:
    """Return a table of the stages; figures alone where there is no plan."""
    plan = planned.plan
    if medium.form == "csv":
        return [table_of_records([] if plan is None else _records(plan), _CSV)]
    if plan is None:
        return [Table(_title(planned), figures=_figures(planned))]
    return [table_of_columns(_title(planned), _columns(plan), _figures(planned))]


def _title(planned: PlannedGraph) -> str:
    problem, model = planned.problem, planned.problem.model
    times = ""
    if planned.plan is not None:
        times = f" (times in {unit_of(_ticks(planned.plan))[0]})"
    sizes = f"{counted(len(model.layers), 'layer')}, {counted(len(model.edges), 'edge')}"
    devices = f"{counted(problem.devices, 'device')} of {size_text(problem.memory_bytes)}"
    link = f"{size_text(problem.costs.link.bandwidth_bytes_per_s)}/s"
    if problem.costs.link.latency_ps:
        link += f" after {format_picoseconds(problem.costs.link.latency_ps)}"
    return f"{terminal_safe(model.name)}: {sizes} on {devices}, {link}{times}"


def _ticks(plan: GraphPlan) -> Fraction:
    """Return the longest pass or synchronisation, whose unit the table's times have."""
    times = ((one.forward_ticks, one.backward_ticks, one.synchronisation_ticks) for one in plan.graph.stages)
    return Fraction(max(map(max, times)))


def _columns(plan: GraphPlan) -> Iterator[tuple[Column, Sequence[Any]]]:
    limit = plan.problem.memory_bytes
    unit, ticks = unit_of(_ticks(plan))
    time = CostColumns(unit, Fraction(ticks), 0 if ticks == 1 else 3).text
    graph, stages = plan.graph, plan.stages
    before: list[list[str]] = [[] for _ in stages]
    for one in graph.transfers:
        before[one.target].append(str(one.source))
    yield Column("stage"), range(len(stages))
    yield Column("after", left=True), [" ".join(one) or "-" for one in before]
    yield Column("layers"), [len(stage.configurations) for stage in stages]
    yield Column("first … last", left=True, names=True), [terminal_safe(one.name) for one in graph.stages]
    yield Column("d"), [stage.data_parallel for stage in stages]
    yield Column("b", "{:,}".format), [stage.micro_batch for stage in stages]
    if any(stage.interval != 1 for stage in stages):
        yield Column("k"), [stage.interval for stage in stages]
    yield Column("in flight", spare=5), [stage.in_flight for stage in stages]
    yield Column("memory", format_bytes, spare=4), plan.memory_bytes
    yield Column(f"of {size_text(limit)}"), [_share(size, limit) for size in plan.memory_bytes]
    yield Column("forward", time, spare=2), [one.forward_ticks for one in graph.stages]
    yield Column("backward", time, spare=3), [one.backward_ticks for one in graph.stages]
    if any(one.synchronisation_ticks for one in graph.stages):
        yield Column("gradients", time, spare=1), [one.synchronisation_ticks for one in graph.stages]
    busy = [one.micro_batches * (one.forward_ticks + one.backward_ticks) for one in graph.stages]
    yield Column("busy"), [_share(ticks, plan.iteration) for ticks in busy]
    if _alike(plan) is None:
        yield Column("configurations", left=True, spare=7), list(map(_mix, stages))


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


def _figures(planned: PlannedGraph) -> list[Figure]:
    plan, problem = planned.plan, planned.problem
    if plan is None:
        none = planned.no_plan
        assert none is not None
        return [
            ("no plan", f"{no_plan_reason(none)}{of_machine(problem)}"),
            ("least memory", _memory_needed(none)),
            *_rules(problem),
        ]
    iteration = plan.iteration
    figures: list[Figure] = [
        ("iteration", f"{format_picoseconds(iteration)} for {_batch(problem)}, planned by graphpipe")
    ]
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
    if (alike := _alike(plan)) is not None:
        figures.append(("configurations", alike_text(alike, len(problem.model.layers))))
    else:
        mixes = (f"stage {s}: {_mix(stage)}" for s, stage in enumerate(plan.stages))
        figures.append(("configurations", "; ".join(mixes), "configurations"))
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
    return f"{memory_each(least)}: {would_do(none.problem, whole_mebibytes(least), '--memory')}; {exact}"


def _rules(problem: GraphProblem) -> list[tuple[str, str]]:
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


def _records(plan: GraphPlan) -> Iterator[dict[str, Any]]:
    model = plan.problem.model
    for index, (row, stage) in enumerate(zip(stage_documents(plan.problem, plan.stages), plan.stages, strict=True)):
        names = [model.layers[layer].name for layer in model.order if layer in stage.configurations]
        before = [str(one.source) for one in plan.graph.transfers if one.target == index]
        yield {
            **row,
            "layers": len(names),
            "first": names[0],
            "last": names[-1],
            "reads_from": " ".join(before),
            "configurations": _mix(stage),
        }
