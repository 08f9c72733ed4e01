"""Report on a plan: what is proven, its stages, the graph in their colours, and what crosses between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.report import BOUND_CHECK, Report
from mtpp.errors import MtppError
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.instance import Instance
from mtpp.units import format_bytes
from mtpp.views.report.claims import claims_section, plan_verdict, with_verdict
from mtpp.views.report.graph_section import graph_section
from mtpp.views.report.origin import origin_section
from mtpp.views.report.page import Block, Page, Prose, Section, TableBlock
from mtpp.views.report.plan_stages import stages_section
from mtpp.views.report.stated import StatedPlan, percent_above, ratio_text
from mtpp.views.report.what_if import PARTS, Variant, bandwidth_matters, bytes_over_link, variants
from mtpp.views.table import Column, Table
from mtpp.wording import counted

_MOST_LISTED = 500


def plan_page(document: Mapping[str, Any], report: Report, graph: CostGraph, modules: Mapping[str, str] | None) -> Page:
    """Return the report on a well-formed plan.

    Parameters
    ----------
    report
        What the verifier says of it.
    graph
        The model that it is for, or the graph that it embeds.
    modules
        Path of the module of each op, by name, where they are known.
    """
    stated = StatedPlan.of(document)
    graph = bytes_over_link(graph, stated.system)
    stages = _stages(document, graph)
    instance, why_not = _instance(graph, stated, stages)
    computed: Sequence[Variant] = []
    if instance is not None and stages is not None:
        computed, why_not = _variants(stated, graph, stages)
    charts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    bandwidths = f"Other bandwidths are left out: {why_not}." if why_not else ""
    sections = [claims_section(report.checks), stages_section(stated, computed, bandwidths, charts, data)]
    if instance is None or stages is None:
        sections.append(Section("graph", "Graph", [Prose(f"Not drawn: {why_not}.")]))
    else:
        sections.append(graph_section(graph, stated, instance, stages, modules, charts, data))
        sections.append(crossing_section(graph, stated, instance, stages))
    sections.append(origin_section(document, stated))
    return Page(
        title=stated.name,
        kind=f"plan for {stated.k:,} stage{'' if stated.k == 1 else 's'}",
        verdict=plan_verdict(report, _headline(stated, grouped=bool(document["together"]))),
        figures=_figures(stated, report),
        sections=sections,
        charts=charts,
        data=data,
    )


def _stages(document: Mapping[str, Any], graph: CostGraph) -> list[int] | None:
    """Return the stage of each op of the graph; None if the assignment is no partition of it."""
    assignment = document["assignment"]
    if assignment.keys() != set(graph.op_names):
        return None
    stages = [assignment[name] for name in graph.op_names]
    if not all(0 <= stage < document["k"] for stage in stages):
        return None
    sources, targets = graph.edges
    if any(stages[u] > stages[v] for u, v in zip(sources.tolist(), targets.tolist(), strict=True)):
        return None
    return stages


def _instance(graph: CostGraph, stated: StatedPlan, stages: Sequence[int] | None) -> tuple[Instance | None, str]:
    """Return the costs of the graph in ticks, or None and why there are none."""
    if stages is None:
        return None, "the assignment is no partition of this model"
    try:
        return Instance.build(graph, stated.system, stated.k), ""
    except MtppError as error:
        return None, str(error)


def _variants(stated: StatedPlan, graph: CostGraph, stages: Sequence[int]) -> tuple[Sequence[Variant], str]:
    """Return the stages' costs under other bandwidths, or none and why there are none."""
    if not bandwidth_matters(graph, stated.system):
        return [], "every tensor states the time that it takes to move, so that they change nothing"
    found = variants(graph, stated.system, stages, stated.k)
    planned = next(one for one in found if one.bandwidth_bytes_per_s == stated.system.bandwidth_bytes_per_s)
    if [list(row) for row in planned.rows] != [[row[part] for part in PARTS] for row in stated.stages]:
        return [], "the costs that the plan states are not those of its assignment"
    return found, ""


def _headline(stated: StatedPlan, *, grouped: bool) -> str:
    """Return what is proven if every claim holds; *grouped* ops have to stay together in every cut that counts."""
    stages = f"{stated.k:,} stage{'' if stated.k == 1 else 's'}"
    stages += " that keeps the groups together" if grouped else ""
    if stated.optimal:
        return f"Proven optimal: no other cut into {stages} is faster"
    if stated.ratio is None or not stated.lower:
        return "Verified; nothing is proven about other cuts"
    within = percent_above(Fraction(stated.bottleneck, stated.lower))
    return f"Proven to be within {within} of the fastest cut into {stages}"


_WORDS = {"ok": "proven", "unchecked": "claimed, not checked in full", "false": "claimed, not verified"}
"""What is said of a ratio, by the verdict on the plan."""


def _figures(stated: StatedPlan, report: Report) -> list[tuple[str, str, str]]:
    upper, busy = stated.bottleneck, len(stated.stages) - stated.empty_count
    slowest = "" if stated.slowest is None else f"stage {stated.slowest}"
    found_by = f"{stated.method}, tier {stated.tier}"
    figures = [
        ("Bottleneck", stated.describe(upper), with_verdict(slowest, report, "bottleneck")),
        ("Lower bound", stated.describe(stated.lower), with_verdict(found_by, report, BOUND_CHECK)),
        ("Ratio", ratio_text(stated.ratio), _WORDS[str(report.verdict)]),
    ]
    if upper and stated.timed:
        rate = 10**12 / upper
        figures.append(("Throughput", f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s", "inferences"))
    figures.append(("Pipeline latency", stated.describe(busy * upper), f"{counted(busy, 'busy stage')} × bottleneck"))
    if upper and not stated.system.limits_memory:
        alone = sum(row["work"] for row in stated.stages)
        figures.append(("Speed-up", f"{alone / upper:.3g}×", "over one stage"))
    if stated.system.limits_memory and stated.stages:
        held = max(row["param_bytes"] + row["peak_bytes"] for row in stated.stages)
        figures.append(("Memory", format_bytes(held), "of the fullest stage"))
    return figures


def crossing_section(graph: CostGraph, shown: StatedPlan, instance: Instance, stages: Sequence[int]) -> Section:
    """Return the section on tensors that an op of another stage reads than the one that makes them."""
    transfer = instance.transfer.tolist()
    found = []
    for t, producer in enumerate(graph.tensor_producer.tolist()):
        readers = sorted({stages[v] for v in graph.tensor_consumers(t).tolist()} - {stages[producer]})
        if readers:
            found.append((transfer[t], t, producer, readers))
    found.sort(key=lambda one: (-one[0], one[1]))
    sizes = [size for _, t, _, _ in found if (size := int(graph.tensor_bytes[t])) != UNKNOWN_BYTES]
    total = f", {format_bytes(sum(sizes))}" if sizes and len(sizes) == len(found) else ""
    rows = [
        [
            *(graph.tensor_names[t], graph.op_names[producer], stages[producer], ", ".join(map(str, readers))),
            *(int(graph.tensor_bytes[t]), ticks),
        ]
        for ticks, t, producer, readers in found[:_MOST_LISTED]
    ]
    columns = [
        Column("tensor", left=True),
        Column("made by", left=True),
        Column("in stage"),
        Column("read in stages"),
        Column("size", _size),
        Column("transfer", shown.describe),
    ]
    verb = "crosses" if len(found) == 1 else "cross"
    caption = (
        f"{len(found):,} of {counted(graph.tensor_count, 'tensor')} {verb}{total}; "
        "each is paid once by every stage it touches"
    )
    blocks: list[Block] = [TableBlock("crossing", Table(caption, columns, rows), sortable=True)]
    if len(found) > _MOST_LISTED:
        blocks.append(Prose(f"The {_MOST_LISTED:,} most expensive of them are listed.", quiet=True))
    return Section("crossing-part", "Tensors between stages", blocks)


def _size(count: int) -> str:
    return "unknown" if count == UNKNOWN_BYTES else format_bytes(count)
