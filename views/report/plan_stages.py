"""Stages of a plan: a chart, a table, and the same costs under other bandwidths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtpp.inference.cost_columns import CostColumns
from mtpp.units import format_bandwidth, format_bytes, format_share
from mtpp.views.report.colours import PARTS as PART_COLOURS
from mtpp.views.report.page import Block, Cell, Chart, Prose, Section, Switch, TableBlock
from mtpp.views.report.stage_bars import COST_PARTS, NAMES, bars, bars_height
from mtpp.views.report.stated import StatedPlan
from mtpp.views.report.what_if import PARTS, Variant
from mtpp.views.table import NONE, Column, Table

_MOST_EMPTY = 8
"""Empty stages that are shown, at most."""

_FIRST_COST = 4
"""Column of the table with the work."""


def stages_section(
    shown: StatedPlan,
    computed: Sequence[Variant],
    why_not: str,
    charts: dict[str, Any],
    data: dict[str, Any],
) -> Section:
    """Return the section, and add its chart to *charts*.

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
        [f"stage {row['index']}" for row in listed],
        COST_PARTS,
        _values([row[:-1] for row in rows], costs),
        _texts(rows, costs, shown),
        x_label=f"time ({unit})" if shown.timed else unit,
        first=("bottleneck", _value(shown.bottleneck, costs)),
        second=("lower bound", _value(shown.lower, costs)),
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
    blocks.append(Chart("stages", caption, bars_height(len(listed)), legend))
    blocks.append(_table(shown, listed, costs))
    if len(listed) < len(shown.stages):
        blocks.append(Prose(f"{shown.empty_count:,} empty stages are not listed.", quiet=True))
    return Section("stages-part", "Stages", blocks)


def _table(shown: StatedPlan, listed: Sequence[Mapping[str, Any]], costs: CostColumns) -> TableBlock:
    texts = _texts([_parts(row) for row in listed], costs, shown)
    rows = [
        [
            *(row["index"], row["ops"], row["first"] or NONE, row["last"] or NONE),
            *(Cell(text, row[part]) for part, text in zip(PARTS, own, strict=True)),
            *(row["cost"], row["param_bytes"]),
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
        *map(Column, ("work", "in", "out", "overflow", "cost")),
        Column("share", lambda cost: format_share(cost, shown.bottleneck)),
        Column("parameters", format_bytes),
    ]
    return TableBlock("stage-table", Table(caption, columns, rows), marks, sortable=True)


def _columns(shown: StatedPlan) -> CostColumns:
    """Return the unit of all costs, with five digits of the largest one at least."""
    costs = CostColumns.of(shown, shown.bottleneck)
    digits = 0 if costs.ticks == 1 else max(costs.digits, 3 if shown.bottleneck < 100 * costs.ticks else 2)
    return replace(costs, digits=digits)


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
    return [one.bandwidth_bytes_per_s for one in computed].index(shown.system.bandwidth_bytes_per_s)


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
