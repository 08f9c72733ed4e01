"""Stage table of a plan, and the figures below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mtpp.inference.cost_columns import CostColumns, Ticks
from mtpp.names import CONTEXT_OBJECTIVE, PHASES
from mtpp.units import format_bytes, format_share
from mtpp.views.certificate_texts import ON_ENVELOPE
from mtpp.views.renderer import view
from mtpp.views.short_names import shortened_apart
from mtpp.views.shown_plan import ShownPlan, devices_text, each_cost, fullest_stage, in_any_phase, state_bytes
from mtpp.views.table import Column, Table, table_of_records
from mtpp.views.terminal import Medium
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.inference.plan import Plan

_BAR_WIDTH = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NAME_WIDTHS = (8, 28)
"""Fewest and most characters of an op's name in the table; the middle of longer ones is left out."""

_EMPTY_LISTED = 8
_NAMES = ("first op", "last op")
"""Columns that hold names of ops."""

_PARTS = ("work", "input", "output", "overflow")
"""Keys of the parts of a stage's cost."""


@view
def shown_text(plan: ShownPlan, medium: Medium) -> Iterable[Table]:
    """Return a table of the stages."""
    if medium.form == "csv":
        unit = {"time_unit": plan.time_unit, "ticks_per_unit": plan.ticks_per_unit}
        rows = [vars(one) for one in plan.frontier] or map(_flat, plan.stages)
        return [table_of_records([{**row, **unit} for row in rows])]
    stages = Table(_title(plan), _columns(plan), _rows(plan), _figures(plan))
    if medium.form == "table":
        stages = _fitted(stages, plan, medium.terminal)
    elif medium.form == "html":
        stages = _with_bars(stages, plan, "utf-8")
    return [stages, *([frontier_table(plan)] if plan.frontier else [])]


def frontier_table(plan: ShownPlan) -> Table:
    """Return a table of the plans that no other one beats in both bottleneck and latency."""
    points = [(one.bottleneck, one.latency, one.lower) for one in plan.frontier]
    costs = frontier_columns(plan, points)
    proven = sum(one.lower == one.latency for one in plan.frontier)
    every = plan.certificate.optimal and proven == len(plan.frontier)
    word = "claimed" if plan.claimed else "proven"
    return Table(
        f"Frontier: {counted(len(plan.frontier), 'plan')} that no other beats{unit_text(plan, costs)}",
        [
            Column("bottleneck", costs.text),
            Column("latency", costs.text),
            Column("lower bound", costs.text),
            Column("tier", left=True),
            Column("busy stages"),
        ],
        [[one.bottleneck, one.latency, one.lower, one.tier, one.busy] for one in plan.frontier],
        [("frontier", f"{word}: no plan is missing" if every else f"{proven} of {len(plan.frontier)} {word}")],
    )


def frontier_columns(ticks: Ticks, points: Iterable[Sequence[int]]) -> CostColumns:
    """Return the unit and the digits in which figures that differ do not read the same.

    Parameters
    ----------
    points
        Bottleneck, latency and the lower bound on it, of each plan of a frontier.
    """
    bottlenecks, latencies, bounds = zip(*points, strict=True)
    return CostColumns.of(ticks, min(bottlenecks)).apart(bottlenecks, (*latencies, *bounds))


def _flat(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stage with the names of its devices in one field."""
    if "devices" in row:
        own = {key: value for key, value in row.items() if key != "devices"}
        names = " + ".join(one["name"] for one in row["devices"])
        each = " + ".join(str(one["cost"]) for one in row["devices"])
        return {"index": own.pop("index"), "devices": names, "cost_on_devices": each, **own}
    return row if "device" not in row else {**row, "device": row["device"]["name"]}


def _title(plan: ShownPlan) -> str:
    times = unit_text(plan, CostColumns.of(plan, plan.bottleneck))
    stages = f"k = {plan.k}"
    if plan.replicated or plan.devices is not None:
        stages = counted(plan.device_count, "device")
        if plan.most_used is not None and plan.most_used < plan.device_count:
            stages += f", at most {plan.most_used:,} used"
    return f"{plan.name}: {plan.ops:,} ops, {plan.tensors:,} tensors, {stages}{times}"


def _columns(plan: ShownPlan) -> list[Column]:
    costs = CostColumns.of(plan, plan.bottleneck)
    device = [] if plan.devices is None else [Column("device", left=True)]
    each = []
    if plan.replicated:
        device = [Column("devices", left=True)]
        each = [Column("each", lambda ticks: " / ".join(costs.text(one) for one in ticks))]
    degree = [Column("GPUs")] if plan.has_degrees else []
    return [
        Column("stage"),
        *device,
        *degree,
        Column("ops"),
        Column("first op", left=True),
        Column("last op", left=True),
        *(Column(name, costs.text) for name in ("work", "in", "out", "overflow")),
        *each,
        Column("cost", costs.text),
        Column("share", lambda cost: format_share(cost, plan.bottleneck)),
    ]


def _rows(plan: ShownPlan) -> list[list[Any]]:
    streams = any(one.fast_memory_bytes is not None for one in plan.devices or [plan.system])
    hidden = set() if streams else {"overflow"}
    return [
        [
            row["index"],
            *([devices_text(row)] if plan.replicated or plan.devices is not None else []),
            *([row["tensor_parallel"] if row["ops"] else None] if plan.has_degrees else []),
            *(row["ops"], row["first"] or None, row["last"] or None),
            *(None if part in hidden or not row["ops"] else row[part] for part in _PARTS),
            *([tuple(dict.fromkeys(each_cost(row))) if row["ops"] else None] if plan.replicated else []),
            *(None if not row["ops"] else row["cost"] for _ in range(2)),
        ]
        for row in _listed_stages(plan)
    ]


def _listed_stages(plan: ShownPlan) -> Sequence[Mapping[str, Any]]:
    """Return the stages worth a line: all of them, or only the busy ones where very many are empty."""
    if plan.empty_count > _EMPTY_LISTED:
        return [row for row in plan.stages if row["ops"]]
    return plan.stages


def common_unit(plan: Plan) -> CostColumns:
    """Return the unit in which all costs of the table are shown."""
    return CostColumns.of(plan.instance, plan.bottleneck)


def unit_text(ticks: Ticks, costs: CostColumns) -> str:
    """Return what a title says of the unit; nothing where it is that of an abstract graph."""
    what = "times" if ticks.timed else "costs"
    return f" ({what} in {costs.unit})" if costs.unit else ""


def _throughput(plan: ShownPlan) -> str:
    """Return what a pipeline that is full does in a second: inferences, or tokens of a language model."""
    steps = 10**12 / plan.bottleneck
    if not plan.serving:
        return f"{rate_text(steps)} inferences/s"
    step = f"{counted(plan.serving['batch'], 'sequence')} a step, {plan.describe(plan.bottleneck)} apart"
    what = "tokens" if plan.serving["phase"] == PHASES[0] else "tokens of prompts"
    return f"{rate_text(steps * plan.serving['tokens'])} {what}/s ({step})"


def _figures(plan: ShownPlan) -> list[tuple[str, str]]:
    upper, empty = plan.bottleneck, plan.empty_count
    busy = plan.k - empty
    figures = [("empty stages", f"{empty:,}, not listed")] if empty > _EMPTY_LISTED else []
    within = "" if plan.limit is None else f", {plan.describe(plan.limit)} allowed"
    found_by = f", found by {plan.found_by}"
    of_stage = f"{plan.describe(upper)} (stage {plan.slowest})"
    figures += [("bottleneck", of_stage + (within if plan.of_latency else found_by))]
    if upper and plan.timed:
        figures.append(("throughput", _throughput(plan)))
    told = plan.devices is not None or plan.replicated or plan.of_latency or plan.limit is not None or plan.frontier
    request = f"{plan.describe(plan.latency)} on an idle pipeline{found_by if plan.of_latency else within}"
    full = f"{plan.describe(busy * upper)} ({counted(busy, 'busy stage')} × bottleneck)"
    if plan.first_token is not None:
        figures.append(("first token", _first_token_text(plan, plan.first_token)))
    figures += [*([("latency", request)] if told else []), *([] if plan.replicated else [("latency when full", full)])]
    if plan.replicated and busy == 1:
        count = counted(len(plan.stages[0]["devices"]), "device")
        figures.append(("replicas", f"the whole graph on {count}: a cut would only add transfers"))
    if upper and plan.one_stage_known:
        alone = plan.one_stage
        exceeds = "one stage alone exceeds the stage memory"
        none = f"none: {'no device holds the whole graph' if len(set(plan.devices or ())) > 1 else exceeds}"
        on = f" on {plan.alone_on}, the fastest device that holds it" if plan.alone_on else ""
        figures.append(("speed-up", none if alone is None else f"{_factor(alone / upper)}× over one stage{on}"))
        figures += [] if alone is None else _worth(plan, alone, busy)
    if any(one.limits_memory for one in plan.devices or [plan.system]) or any(map(state_bytes, plan.stages)):
        figures.append(("memory", _memory_text(plan)))
    if plan.capacity is not None:
        figures.append(("capacity", _capacity_text(plan.capacity, "claimed" if plan.claimed else "proven")))
    figures.append(("ratio", _ratio_text(plan)))
    if plan.fewest_for is not None:
        word = "claimed, not verified" if plan.claimed else "proven"
        fewest = "fewest stages" if plan.devices is None else "fewest devices"
        figures.append((fewest, f"{plan.most_used} that keep to {plan.describe(plan.fewest_for)}, {word}"))
    if plan.coverage and not plan.certificate.optimal:
        figures.append(("left out", plan.coverage))
    if plan.crossing is not None:
        size = plan.crossing.size_bytes
        crossing = f"{plan.crossing.count} of {plan.crossing.of}"
        figures.append(("crossing tensors", crossing + (f", {format_bytes(size)}" if size else "")))
    figures.append(("assumptions", "; ".join(plan.assumptions)))
    return figures


def _worth(plan: ShownPlan, alone: int, busy: int) -> list[tuple[str, str]]:
    """Say where a pipeline does not pay, and where some of the devices are as good as all of them.

    Parameters
    ----------
    alone
        Ticks of the whole graph in one stage.
    busy
        Number of stages with ops.
    """
    upper = plan.bottleneck
    if plan.k == 1 or not alone or plan.replicated or not plan.timed or plan.of_latency or plan.limit is not None:
        return []
    known = "claimed, not verified" if plan.claimed else "proven"
    if alone <= upper and busy > 1:
        rates = f"{rate_text(10**12 / alone)}/s against {rate_text(10**12 / upper)}/s"
        text = f"no: {plan.describe(alone)} in one stage, {plan.describe(upper)} in the slowest of {busy} ({rates})"
        return [("pipeline pays", text)]
    if alone <= upper:
        best = f"as much as any cut into at most {plan.k} stages, {known}" if plan.certificate.optimal else (
            f"and no cut into at most {plan.k} stages was found to do more"
        )  # fmt: skip
        return [("pipeline pays", f"no: one stage takes {plan.describe(alone)}, {rate_text(10**12 / alone)}/s, {best}")]
    if busy < plan.k and plan.certificate.optimal and plan.fewest_for is None:
        return [("stages used", f"{busy} of {plan.k}: more are no faster, {known}")]
    return []


def _ratio_text(plan: ShownPlan) -> str:
    certificate, lower = plan.certificate, plan.lower
    of = " on the latency" if plan.of_latency else ""
    bound = f"lower bound{of} {plan.describe(lower.value)} by {lower.method}, tier {lower.tier}"
    if lower.on_envelope and len(set(plan.devices or ())) > 1:
        bound += f", {ON_ENVELOPE}"
    if plan.claimed:
        known = {None: "none", 1.0: "1"}.get(certificate.ratio) or ratio_words(certificate.ratio or 1)
        return f"{known} claimed, not verified: {bound}"
    if certificate.optimal:
        return f"1, optimal: {bound}"
    if certificate.ratio is None:
        return f"none proven: {bound}"
    if certificate.closed_by_solver:
        return f"closed to solver tolerance, not proven: {bound}"
    if not lower.is_proof:
        return f"{ratio_words(certificate.ratio)} by the solver's word, not proven: {bound}"
    return f"{ratio_words(certificate.ratio)} proven: {bound}"


def _first_token_text(plan: ShownPlan, first: Mapping[str, Any]) -> str:
    """Return the time of a prompt on an idle pipeline."""
    sizes, limit = first["dims"], first.get("max_latency")
    of = f"{counted(sizes.get('batch', 1), 'prompt')} of {sizes['prompt']:,} tokens"
    within = "" if limit is None else f", {plan.describe(limit)} allowed"
    return f"{plan.describe(first['latency'])} for {of} on an idle pipeline{within}"


def _capacity_text(capacity: Mapping[str, Any], word: str) -> str:
    """Return the largest context or the most sequences, with the word for what is known of the next one."""
    value, following = capacity["value"], capacity["next_infeasible"]
    if capacity["objective"] == CONTEXT_OBJECTIVE:
        what, of = "tokens", f" of {counted(capacity['sequences'], 'sequence')}"
    else:
        what, of = "sequences", f" of {capacity['context']:,} tokens"
    if following is None:
        return f"any number of {what}{of}: nothing grows beyond {value:,}"
    text = f"{counted(value, what[:-1])}{of}; {following:,} fit nowhere, {word}"
    positions = capacity.get("positions")
    if positions is not None and capacity["context"] > positions:
        text += f"; the configuration has {positions:,} positions"
    return text


def _memory_text(plan: ShownPlan) -> str:
    stages = in_any_phase(plan.stages, plan.first_token)
    stage, held, limit = fullest_stage(stages, plan.devices or [plan.system] * len(stages))
    states = next(state_bytes(row) for row in plan.stages if row["index"] == stage)
    kept = f", {format_bytes(states)} for states" if states else ""
    if plan.devices is not None and limit is not None:
        return f"the fullest device (stage {stage}) holds {format_bytes(held)} of {format_bytes(limit)}{kept}"
    allowed = "" if limit is None else f", {format_bytes(limit)} allowed"
    return f"at most {format_bytes(held)} per stage (stage {stage}){allowed}{kept}"


def ratio_words(ratio: float) -> str:
    """Write a ratio above 1 so that it does not read as 1."""
    text = f"{ratio:.4f}" if ratio >= 1.0001 else f"{ratio:.12g}"
    return "just above 1" if text == "1" else text


def _factor(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def rate_text(per_second: float) -> str:
    """Write so many of something in a second."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _fitted(table: Table, plan: ShownPlan, console: RichConsole) -> Table:
    """Return a table with bars where there is room for them, and with names that leave room for the figures."""
    widths = [max(map(len, column)) for column in zip(table.header, *table.cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > console.width and (narrower := table.without_empty()) is not None:
        return _fitted(narrower, plan, console)
    names = [j for j, column in enumerate(table.columns) if column.name in _NAMES]
    fixed = sum(width for j, width in enumerate(widths) if j not in names) + 2 * (len(widths) - 1)
    bars = console.width >= fixed + 2 * _NAME_WIDTHS[0] + _BAR_WIDTH + 2
    least, most = _NAME_WIDTHS
    limit = min(max((console.width - fixed - (_BAR_WIDTH + 2 if bars else 0)) // 2, least), most)
    short = shortened_apart((row[j] for j in names for row in table.cells), limit)
    columns = [replace(column, form=partial(_short, short, column.form)) if j in names else column
               for j, column in enumerate(table.columns)]  # fmt: skip
    shorter = replace(table, columns=columns)
    return _with_bars(shorter, plan, console.encoding or "") if bars else shorter


def _with_bars(table: Table, plan: ShownPlan, encoding: str) -> Table:
    """Return a table with a bar for each stage, as long as its cost against the bottleneck."""
    bottleneck, columns = plan.bottleneck, table.columns
    shares = [stage["cost"] / bottleneck if bottleneck else 0.0 for stage in _listed_stages(plan)]
    return replace(
        table,
        columns=[*columns, Column("", partial(_bar, blocks=encoding.lower().startswith("utf")), left=True)],
        rows=[[*row, share] for row, share in zip(table.rows, shares, strict=True)],
        styles={(i, len(columns)): "bold red" if share == 1 else "cyan" for i, share in enumerate(shares)},
    )


def _short(short: Mapping[str, str], form: Callable[[Any], str], name: Any) -> str:
    return short[form(name)]


def _bar(share: float, *, blocks: bool) -> str:
    if not blocks:
        return "#" * round(min(share, 1.0) * _BAR_WIDTH)
    share = min(share, 1.0)  # a document may claim anything
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
