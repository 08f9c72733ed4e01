"""Report on a plan: what is proven, its stages, the graph in their colours, and what crosses between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mtpp.checker.frontier import BOUNDS
from mtpp.checker.report import BOUND_CHECK, Report
from mtpp.errors import MtppError
from mtpp.inference.cost_columns import CostColumns
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.instance import Instance
from mtpp.language_models.serving_load import BATCH, CONTEXT, PREFILL, PROMPT, SIZES, ServingLoad
from mtpp.machine.machine import Machine
from mtpp.names import CONTEXT_OBJECTIVE
from mtpp.units import format_bandwidth, format_bytes, format_share
from mtpp.views.partition_plan import frontier_columns, unit_text
from mtpp.views.report.claims import claims_of, origin_section, plan_verdict, with_verdict
from mtpp.views.report.colours import PARTS as PART_COLOURS
from mtpp.views.report.context_section import CONTEXTS, ContextCurve, context_section, rate_text
from mtpp.views.report.graph_section import graph_section
from mtpp.views.report.headline import plan_headline
from mtpp.views.report.memory_section import STATES, memory_sections, says_memory
from mtpp.views.report.page import Block, Cell, Chart, Page, Prose, Section, Switch, TableBlock
from mtpp.views.report.request_timeline import request_section
from mtpp.views.report.stage_bars import COST_PARTS, NAMES, bars, bars_height
from mtpp.views.report.stated import StatedPlan, page_costs, ratio_text
from mtpp.views.report.what_if import PARTS, Variant, bandwidth_matters, bytes_over_link, variants
from mtpp.views.shown_plan import devices_text, each_cost, fullest_stage, in_any_phase, state_bytes
from mtpp.views.table import NONE, Column, Table
from mtpp.wording import counted

_MOST_LISTED = 500

_MOST_EMPTY = 8
"""Empty stages that are shown, at most."""

_FIRST_COST = 4
"""Column of the table with the work."""


def plan_page(
    document: Mapping[str, Any],
    report: Report,
    graph: CostGraph,
    modules: Mapping[str, str] | None,
    contexts: ContextCurve | str | None = None,
    shares: Mapping[int, CostGraph] | None = None,
) -> Page:
    """Return the report on a well-formed plan.

    Parameters
    ----------
    report
        What the verifier says of it.
    graph
        The model that it is for, or the graph that it embeds.
    modules
        Path of the module of each op, by name, where they are known.
    contexts
        Figures at other contexts, of a plan of a language model, or why there are none.
    shares
        The graph as one of so many GPUs that share a stage has it, where several do.
    """
    stated, load = StatedPlan.of(document), _load(document["model"]["dims"])
    graph = bytes_over_link(graph, stated.system)
    stages = _stages(document, graph)
    instance, why_not = _instance(graph, stated, stages)
    computed: Sequence[Variant] = []
    if instance is not None and stages is not None:
        computed, why_not = _variants(stated, graph, stages)
    charts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    bandwidths = f"Other bandwidths are left out: {why_not}." if why_not else ""
    sections: list[Section] = []
    if instance is None or stages is None:
        sections.append(Section("graph", "Graph", [Prose(f"Not drawn: {why_not}.")]))
    else:
        sections.append(graph_section(graph, stated, instance, stages, modules, charts, data))
    sections += stages_sections(stated, computed, bandwidths, charts, data)
    sections += [one for one in [request_section(stated, charts, data)] if one is not None]
    if says_memory(stated):
        sections += memory_sections(
            stated,
            None if stages is None else graph,
            stages,
            states=STATES if load is None else "caches",
            shares=shares,
            peaks=[row["peak_bytes"] for row in document.get("first_token", {}).get("stages", ())],
        )
    if isinstance(contexts, ContextCurve):
        sections.append(context_section(contexts, charts))
    elif contexts is not None:
        sections.append(Section("context-part", CONTEXTS, [Prose(f"Not drawn: {contexts}.")]))
    if stated.frontier:
        sections.append(frontier_section(stated, report))
    if instance is not None and stages is not None:
        sections += crossing_sections(graph, stated, instance, stages)
    sections.append(origin_section(document, stated))
    return Page(
        title=stated.name,
        kind=f"plan for {stated.seats}",
        verdict=plan_verdict(report, *plan_headline(stated, document)),
        figures=[
            *_figures(stated, report, load, document.get("first_token")),
            *_figures_of_serving(stated, document, report),
        ],
        sections=sections,
        claims=claims_of(report.checks),
        charts=charts,
        data=data,
    )


def _load(sizes: Mapping[str, int]) -> ServingLoad | None:
    """Return the load of a language model; None where sizes are those of another model."""
    if BATCH not in sizes or not sizes.keys() & {CONTEXT, PROMPT} or sizes.keys() - set(SIZES):
        return None
    return ServingLoad.of_sizes(sizes)


def _stages(document: Mapping[str, Any], graph: CostGraph) -> list[int] | None:
    """Return the stage of each op of the graph; None if the assignment is no partition of it."""
    assignment = document["assignment"]
    if assignment.keys() != set(graph.op_names):
        return None
    stages = [assignment[name] for name in graph.op_names]
    if not all(0 <= stage < len(document["stages"]) for stage in stages):
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
        return Instance.build(graph, Machine.uniform(len(stated.stages), stated.system)), ""
    except MtppError as error:
        return None, str(error)


def _variants(stated: StatedPlan, graph: CostGraph, stages: Sequence[int]) -> tuple[Sequence[Variant], str]:
    """Return the stages' costs under other bandwidths, or none and why there are none."""
    if stated.machine is not None:
        return [], "devices have bandwidths of their own, so that none is tried in place of all"
    if not bandwidth_matters(graph, stated.system):
        return [], "every tensor states the time that it takes to move, so that they change nothing"
    found = variants(graph, stated.system, stages, stated.k)
    planned = next(one for one in found if one.bandwidth_bytes_per_s == stated.system.link.bandwidth_bytes_per_s)
    if [list(row) for row in planned.rows] != [[row[part] for part in PARTS] for row in stated.stages]:
        return [], "the costs that the plan states are not those of its assignment"
    return found, ""


def _figures_of_serving(stated: StatedPlan, document: Mapping[str, Any], report: Report) -> list[tuple[str, str, str]]:
    """Return the time to the first token, and the capacity, of plans that state them."""
    figures = []
    if (first := document.get("first_token")) is not None:
        sizes, limit = first["dims"], first.get("max_latency")
        of = f"{counted(sizes.get('batch', 1), 'prompt')} of {sizes['prompt']:,} tokens on an idle pipeline"
        of += "" if limit is None else f"; {stated.describe(limit)} allowed"
        figures.append(("First token", stated.describe(first["latency"]), with_verdict(of, report, "first token")))
    if (capacity := document.get("capacity")) is not None:
        value, following = capacity["value"], capacity["next_infeasible"]
        of_context = capacity["objective"] == CONTEXT_OBJECTIVE
        of = f"of {counted(capacity['sequences'], 'sequence')}" if of_context else f"of {capacity['context']:,} tokens"
        of += "; nothing grows beyond" if following is None else f"; {following:,} fit nowhere"
        text = counted(value, "token" if of_context else "sequence")
        figures.append(("Capacity", text, with_verdict(of, report, "capacity")))
    return figures


def _request(load: ServingLoad | None) -> str:
    """Return what passes through a pipeline at once."""
    if load is None:
        return "one request"
    return f"{counted(load.batch, 'prompt')}" if load.phase == PREFILL else "a token"


_WORDS = {"ok": "proven", "unchecked": "claimed, not checked in full", "false": "claimed, not verified"}
"""What is said of a ratio, by the verdict on the plan."""


def _figures(
    stated: StatedPlan, report: Report, load: ServingLoad | None, first_token: Mapping[str, Any] | None
) -> list[tuple[str, str, str]]:
    upper, busy = stated.bottleneck, len(stated.stages) - stated.empty_count
    slowest = "" if stated.slowest is None else f"stage {stated.slowest}"
    found_by = f"{stated.method}, tier {stated.tier}"
    bound = "Lower bound on the latency" if stated.of_latency else "Lower bound"
    figures = [
        ("Bottleneck", stated.describe(upper), with_verdict(slowest, report, "bottleneck")),
        (bound, stated.describe(stated.lower), with_verdict(found_by, report, BOUND_CHECK)),
        ("Ratio", ratio_text(stated.ratio), _WORDS[str(report.verdict)]),
    ]
    if upper and stated.timed and load is not None:
        told = f"{load.phase}, {counted(load.batch, 'sequence')} in a step"
        figures.append(("Tokens per second", rate_text(load.tokens * 10**12 / upper), told))
    elif upper and stated.timed:
        figures.append(("Throughput", f"{rate_text(10**12 / upper)}/s", "inferences"))
    figures.append(("Latency", stated.describe(stated.latency), f"of {_request(load)} on an idle pipeline"))
    if not stated.replicated:
        full = stated.describe(busy * upper)
        figures.append(("Latency when full", full, f"in lock step: {counted(busy, 'busy stage')} × bottleneck"))
    if stated.speed_up is not None:
        one = "the fastest device that holds the model" if stated.devices_differ else "one stage"
        figures.append(("Speed-up", f"{stated.speed_up:.3g}×", f"over {one}"))
    kept = any(map(state_bytes, stated.stages))
    if (kept or any(one.limits_memory for one in stated.devices)) and stated.stages:
        stage, held, limit = fullest_stage(in_any_phase(stated.stages, first_token), stated.devices)
        allowed = "" if limit is None else f", of {format_bytes(limit)}"
        states = next(state_bytes(row) for row in stated.stages if row["index"] == stage)
        states_text = f", {format_bytes(states)} for states" if states else ""
        figures.append(("Memory", format_bytes(held), f"of the fullest stage ({stage}){allowed}{states_text}"))
    return figures


def crossing_sections(graph: CostGraph, shown: StatedPlan, instance: Instance, stages: Sequence[int]) -> list[Section]:
    """Return the section on tensors that cross from the stage that makes them to another one, if there are any."""
    transfer = instance.transfer.tolist()
    found = []
    for t, producer in enumerate(graph.tensor_producer.tolist()):
        readers = sorted({stages[v] for v in graph.tensor_consumers(t).tolist()} - {stages[producer]})
        if readers:
            found.append((transfer[t], t, producer, readers))
    if not found:
        return []
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
        Column("transfer" if instance.uniform else "over the fastest link", shown.describe),
    ]
    paid = "at every boundary that it passes" if instance.machine.neighbours else "once by every stage it touches"
    verb = "crosses" if len(found) == 1 else "cross"
    caption = (
        f"{len(found):,} of {counted(graph.tensor_count, 'tensor')} {verb}{total}; "
        f"each is paid {paid}{'' if instance.uniform else ', over the links of their devices'}"
    )
    blocks: list[Block] = [TableBlock("crossing", Table(caption, columns, rows), sortable=True)]
    if len(found) > _MOST_LISTED:
        blocks.append(Prose(f"The {_MOST_LISTED:,} most expensive of them are listed.", quiet=True))
    return [Section("crossing-part", "Tensors between stages", blocks)]


def _size(count: int) -> str:
    return "unknown" if count == UNKNOWN_BYTES else format_bytes(count)


def stages_sections(
    shown: StatedPlan,
    computed: Sequence[Variant],
    why_not: str,
    charts: dict[str, Any],
    data: dict[str, Any],
) -> list[Section]:
    """Return the sections with the bars of all stages and with their table, and add the chart to *charts*.

    Parameters
    ----------
    computed
        Costs under other bandwidths, the plan's own among them; empty where there are none, and *why_not*.
    data
        Takes what the page's script shows for other bandwidths.
    """
    costs = _columns(shown)
    listed = [row for row in shown.stages if row["ops"]] if shown.empty_count > _MOST_EMPTY else shown.stages
    rows = [[row[part] for part in PARTS] for row in listed]
    unit = costs.unit or ("cost" if not shown.timed else "")
    charts["stages"] = bars(
        "stages",
        [f"stage {row['index']}{_on(row, ': ')}" for row in listed],
        COST_PARTS,
        [_bar(row, costs) for row in listed],
        _texts(rows, costs, shown),
        x_label=f"time ({unit})" if shown.timed else unit,
        first=("bottleneck", _value(shown.bottleneck, costs)),
        second=None if shown.of_latency else ("lower bound", _value(shown.lower, costs)),
    ).item()
    blocks: list[Block] = []
    if computed:
        blocks.append(_switch(shown, computed))
        data["what_if"] = _what_if(shown, computed, [row["index"] for row in listed], costs)
    elif why_not:
        blocks.append(Prose(why_not, quiet=True))
    streams = shown.system.fast_memory_bytes is not None
    legend = [(PART_COLOURS[part], NAMES[part]) for part in NAMES if streams or part != "overflow"]
    caption = "Cost of each stage: its work, tensors that come in and go out"
    if streams:
        caption += ", and streaming parameters that do not fit into the fast memory"
    if any(len(row.get("devices", ())) > 1 for row in listed):
        caption += (
            ". Of a stage on several devices they are those on the first, drawn in proportion to the cost of all "
            "together"
        )
    blocks.append(Chart("stages", caption, bars_height(len(listed)), legend))
    table: list[Block] = [_table(shown, listed, costs)]
    if len(listed) < len(shown.stages):
        table.append(Prose(f"{shown.empty_count:,} empty stages are not listed.", quiet=True))
    noun = "Time" if shown.timed else "Cost"
    return [Section("stages-part", f"{noun} of each stage", blocks), Section("stage-figures", "Stages", table)]


def frontier_section(shown: StatedPlan, report: Report) -> Section:
    """Return the section on plans that no other one beats in both bottleneck and latency."""
    rows = [
        [point["bottleneck"], point["latency"], point["lower_bound"]["value"], len(set(point["assignment"].values()))]
        for point in shown.frontier
    ]
    costs = frontier_columns(shown, [row[:3] for row in rows])
    columns = [
        Column("bottleneck", costs.text),
        Column("latency", costs.text),
        Column("lower bound on the latency", costs.text),
        Column("busy stages", "{:,}".format),
    ]
    caption = f"Plans that no other one beats in both bottleneck and latency{unit_text(shown, costs)}"
    said = next(check for check in report.checks if check.name == BOUNDS)
    blocks: list[Block] = [TableBlock("frontier", Table(caption, columns, rows), sortable=True)]
    blocks.append(Prose(f"Lower bounds: {said.detail}.", quiet=True))
    return Section("frontier-part", "Frontier", blocks)


def _on(row: Mapping[str, Any], between: str) -> str:
    """Return the name of a stage's device, or of several, where a plan says them."""
    shared = f" ({row['tensor_parallel']} GPUs)" if row.get("tensor_parallel", 1) > 1 else ""
    return f"{between}{devices_text(row)}{shared}" if row.keys() & {"device", "devices"} else ""


def _table(shown: StatedPlan, listed: Sequence[Mapping[str, Any]], costs: CostColumns) -> TableBlock:
    texts = _texts([_parts(row) for row in listed], costs, shown)
    rows = [
        [
            *(f"{row['index']}{_on(row, ' ')}", row["ops"], row["first"] or NONE, row["last"] or NONE),
            *(Cell(text, row[part]) for part, text in zip(PARTS[:-1], own[:-1], strict=True)),
            *([_each(row, costs)] if shown.replicated else []),
            *(Cell(own[-1], row["cost"]), row["cost"], row["param_bytes"]),
        ]
        for row, own in zip(listed, texts, strict=True)
    ]
    marks = [
        {"stage": str(row["index"]), "shown": str(i), "worst": str(row["index"] == shown.slowest).lower()}
        for i, row in enumerate(listed)
    ]
    what = f"Times are in {costs.unit}" if shown.timed else "Costs are in units of the graph"
    if not shown.timed and costs.unit:
        what = f"Costs are in {costs.unit} of the graph's unit"
    caption = f"{what}; share is of the bottleneck. The slowest stage is in bold."
    columns = [
        Column("stage"),
        Column("ops", "{:,}".format),
        Column("first op", left=True),
        Column("last op", left=True),
        *map(Column, ("work", "in", "out", "overflow", *(["each"] if shown.replicated else []), "cost")),
        Column("share", lambda cost: format_share(cost, shown.bottleneck)),
        Column("parameters", format_bytes),
    ]
    return TableBlock("stage-table", Table(caption, columns, rows), marks, sortable=True)


def _columns(shown: StatedPlan) -> CostColumns:
    """Return the unit of all costs, that of the bottleneck."""
    costs = page_costs(shown, [shown.bottleneck])
    return replace(costs, digits=0) if costs.ticks == 1 else costs


def _bar(row: Mapping[str, Any], costs: CostColumns) -> list[float]:
    """Return the parts of a bar as long as the cost; of several devices in the proportions of the first."""
    parts = [row[part] for part in PARTS[:-1]]
    whole = sum(parts)
    scale = Fraction(row["cost"], whole) if "devices" in row and whole else Fraction(1)
    return [float(ticks * scale / costs.ticks) for ticks in parts]


def _each(row: Mapping[str, Any], costs: CostColumns) -> Cell:
    """Return the costs of a stage on each kind of its devices."""
    each = list(dict.fromkeys(each_cost(row)))
    return Cell(" / ".join(map(costs.text, each)) if row["ops"] else NONE, max(each))


def _parts(row: Mapping[str, Any]) -> list[int]:
    return [row[part] for part in PARTS]


def _value(ticks: int, costs: CostColumns) -> float:
    return float(ticks / costs.ticks)


def _values(rows: Sequence[Sequence[int]], costs: CostColumns) -> list[list[float]]:
    return [[_value(ticks, costs) for ticks in row] for row in rows]


def _texts(rows: Sequence[Sequence[int]], costs: CostColumns, shown: StatedPlan) -> list[list[str]]:
    """Write costs; there is no overflow where there is no fast memory, as in the tables of the command line."""
    texts = [[costs.text(ticks) for ticks in row] for row in rows]
    if shown.system.fast_memory_bytes is None:
        for row in texts:
            row[PARTS.index("overflow")] = "–"
    return texts


def _switch(shown: StatedPlan, computed: Sequence[Variant]) -> Switch:
    planned = _planned(shown, computed)
    choices = [(one.name, format_bandwidth(one.bandwidth_bytes_per_s)) for one in computed]
    return Switch("what-if", "Bandwidth of the link", choices, planned, _note(shown, computed[planned], planned=True))


def _planned(shown: StatedPlan, computed: Sequence[Variant]) -> int:
    return [one.bandwidth_bytes_per_s for one in computed].index(shown.system.link.bandwidth_bytes_per_s)


def _note(shown: StatedPlan, variant: Variant, *, planned: bool) -> str:
    at = f"At {format_bandwidth(variant.bandwidth_bytes_per_s)} this assignment has a bottleneck of "
    at += f"{shown.describe(variant.bottleneck)} (stage {variant.slowest})"
    if planned:
        return f"{at}, as planned."
    return (
        f"{at}, computed exactly. The lower bound is not proven for this bandwidth, and another assignment may be "
        "better: run mtpp partition for it."
    )


def _what_if(
    shown: StatedPlan, computed: Sequence[Variant], listed: Sequence[int], costs: CostColumns
) -> dict[str, Any]:
    planned = _planned(shown, computed)
    states = []
    for i, variant in enumerate(computed):
        rows = [list(variant.rows[s]) for s in listed]
        bottleneck = variant.bottleneck
        share = [format_share(row[-1], bottleneck) for row in rows]
        states.append(
            {
                "values": [row[:-1] for row in _values(rows, costs)],
                "texts": [[*texts, part] for texts, part in zip(_texts(rows, costs, shown), share, strict=True)],
                "ticks": [[*map(str, row), str(row[-1])] for row in rows],
                "bottleneck": _value(bottleneck, costs),
                "bottleneck_ticks": str(bottleneck),
                "bandwidth_bytes_per_s": str(variant.bandwidth_bytes_per_s),
                "slowest": variant.slowest,
                "note": _note(shown, variant, planned=i == planned),
            }
        )
    parts = [f"part-{part}" for part in NAMES]
    return {"parts": parts, "variants": states, "proven": planned, "first_column": _FIRST_COST}
