"""Report on best times per micro-batch: throughput against the number of devices, and every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.report import Report
from mtpp.colours import BLUE, stage_colour
from mtpp.units import format_bytes
from mtpp.views.report.claims import HELD, claims_of, facts_section, plan_verdict
from mtpp.views.report.colours import SURFACE
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Cell, Chart, Page, Prose, Section, TableBlock
from mtpp.views.report.stated import ratio_text
from mtpp.views.report.training.scales import TimeScale, rate_text
from mtpp.views.table import NONE, Column, Table
from mtpp.wording import counted

_HEIGHT = 340
_MOST_LINES = 8
"""Sums of degrees that have a line in the chart: the largest."""

_MOST_LISTED = 4_000
_HEADROOM = 1.1
_WIDEST, _NARROWER = 7.0, 2.0
"""Pixels of the first line, over which those of smaller sums are drawn, and less of each."""

_MARK = (0.008, 0.018)
"""Half the width and height of a mark, as parts of the axes."""

Row = Mapping[str, Any]


def sweep_page(document: Mapping[str, Any], report: Report) -> Page:
    """Return the report on a well-formed table of best times.

    Parameters
    ----------
    report
        Verdict on its figures.
    """
    rows: Sequence[Row] = document["rows"]
    charts: dict[str, Any] = {}
    model = document["model"]
    return Page(
        title=model["name"],
        kind=f"best times of {document['planner']} by number of devices",
        verdict=plan_verdict(report, "Every figure holds", HELD),
        figures=_figures(document, rows),
        sections=[*_chart_section(document, rows, charts), _cells(document, rows), _origin(document)],
        claims=claims_of(report.checks),
        charts=charts,
    )


def _time(row: Row) -> Fraction:
    return Fraction(*row["time_per_sample_ticks"])


def _scale(document: Mapping[str, Any], rows: Sequence[Row]) -> TimeScale:
    """Return the unit of all times, that of the shortest."""
    times = [_time(row) for row in rows if row["feasible"]]
    return TimeScale.of(min(times, default=Fraction(0)), document["ticks_per_unit"], timed=document["time_unit"] != "1")


def _figures(document: Mapping[str, Any], rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    known = [row for row in rows if row["feasible"]]
    figures = []
    if known:
        best = min(known, key=lambda row: (_time(row), row["devices"]))
        first = min(known, key=lambda row: (row["devices"], _time(row)))
        scale = _scale(document, rows)
        on = f"per micro-batch, on {counted(best['devices'], 'device')}"
        figures.append(("Best time", scale.text(_time(best)), on))
        if best["throughput_per_s"] is not None:
            figures.append(("Throughput", f"{rate_text(best['throughput_per_s'])}/s", "micro-batches"))
        if _time(best):
            over = f"over {counted(first['devices'], 'device')}"
            figures.append(("Speed-up", f"{float(_time(first) / _time(best)):.3g}×", over))
    optimal = sum(bool(row["optimal"]) for row in rows)
    figures.append(("Optimal", f"{optimal:,}", f"of {counted(len(rows), 'cell')}, as the file says"))
    none, unknown = (sum(row["feasible"] is said for row in rows) for said in (False, None))
    if none:
        figures.append(("No plan", f"{none:,}", "cells in which none fits"))
    if unknown:
        figures.append(("Not reached", f"{unknown:,}", "cells of which nothing is known"))
    return figures


def _chart_section(document: Mapping[str, Any], rows: Sequence[Row], charts: dict[str, Any]) -> list[Section]:
    """Return the section with a line for each sum of degrees, where there are several numbers of devices."""
    known = [row for row in rows if row["feasible"] and _time(row)]
    if len({row["devices"] for row in known}) < 2:
        return []
    unit, ticks = document["time_unit"], document["ticks_per_unit"]
    second = Fraction(10**12) if unit != "1" else Fraction(ticks)
    axis = "micro-batches/s" if unit != "1" else "micro-batches per unit of time"
    sums = sorted({row["degrees_sum"] for row in known}, reverse=True)
    drawn = sums[:_MOST_LINES]
    last = max(row["devices"] for row in known)
    top = max(float(second / _time(row)) for row in known) * _HEADROOM
    chart = Drawing("sweep", height=_HEIGHT, x=(0, last * 1.03), y=(0, top), x_label="devices at most")
    legend = []
    for place, total in enumerate(drawn):
        colour = BLUE if place == 0 else stage_colour(place)
        own = sorted((row for row in known if row["degrees_sum"] == total), key=lambda row: row["devices"])
        points = [(row["devices"], float(second / _time(row))) for row in own]
        chart.lines(
            {"xs": [[x for x, _ in points]], "ys": [[y for _, y in points]]},
            name=f"line-{total}", colour=colour, width=max(_WIDEST - _NARROWER * place, 1.5),
        )  # fmt: skip
        chart.boxes(_marks(own, points, last, top, _scale(document, rows)), name=f"marks-{total}", fill=colour,
                    edge=SURFACE, tips=_TIPS)  # fmt: skip
        legend.append((colour, f"sum of degrees at most {total:,}"))
    charts["sweep"] = chart.item()
    caption = f"Throughput ({axis}) of the best plan against the number of devices"
    blocks: list[Block] = [Chart("sweep", caption, _HEIGHT, legend)]
    if len(drawn) < len(sums):
        blocks.append(Prose(f"Lines of the {_MOST_LINES} largest of {len(sums):,} sums of degrees.", quiet=True))
    return [Section("sweep-part", "Throughput by number of devices", blocks)]


_TIPS = (("devices at most", "devices"), ("sum of degrees at most", "sum"), ("time per micro-batch", "told"),
         ("micro-batches/s", "rate"), ("stages", "stages"), ("ratio", "ratio"))  # fmt: skip


def _marks(
    rows: Sequence[Row], points: Sequence[tuple[int, float]], last: int, top: float, scale: TimeScale
) -> dict[str, Any]:
    wide, high = _MARK[0] * last, _MARK[1] * top
    return {
        "left": [x - wide for x, _ in points],
        "right": [x + wide for x, _ in points],
        "top": [y + high for _, y in points],
        "bottom": [y - high for _, y in points],
        "devices": [f"{row['devices']:,}" for row in rows],
        "sum": [f"{row['degrees_sum']:,}" for row in rows],
        "told": [scale.text(_time(row)) for row in rows],
        "rate": [rate_text(row["throughput_per_s"]) if row["throughput_per_s"] is not None else NONE for row in rows],
        "stages": [NONE if row["stages"] is None else f"{row['stages']:,}" for row in rows],
        "ratio": [_ratio(row) for row in rows],
    }


def _ratio(row: Row) -> str:
    return "1, optimal" if row["optimal"] else ratio_text(None if row["ratio"] is None else float(row["ratio"]))


def _cells(document: Mapping[str, Any], rows: Sequence[Row]) -> Section:
    scale = _scale(document, rows)
    first = max((_time(row) for row in rows if row["feasible"]), default=None)
    lines = []
    for row in rows[:_MOST_LISTED]:
        place = [row["devices"], row["degrees_sum"]]
        if not row["feasible"]:
            lines.append([*place, Cell("none fits" if row["feasible"] is False else "not reached"), *[None] * 5])
            continue
        time = _time(row)
        rate, stages = row["throughput_per_s"], row["stages"]
        lines.append(
            [
                *(*place, Cell("optimal" if row["optimal"] else "found"), Cell(scale.number(time), float(time))),
                None if rate is None else Cell(rate_text(rate), float(rate)),
                Cell(f"{float(first / time):.2f}×", float(first / time)) if first is not None and time else None,
                stages,
                Cell(_ratio(row), 10.0**9 if row["ratio"] is None else float(row["ratio"])),
            ]
        )
    columns = [
        Column("devices", "{:,}".format),
        Column("sum of degrees", "{:,}".format),
        Column("plan", left=True),
        Column(scale.headed("time per micro-batch")),
        Column("micro-batches/s"),
        Column("speed-up"),
        Column("stages", "{:,}".format),
        Column("ratio"),
    ]
    caption = "Best plans on at most so many devices whose degrees of data parallelism add up to at most the sum"
    blocks: list[Block] = [TableBlock("sweep-table", Table(caption, columns, lines), sortable=True)]
    if len(rows) > _MOST_LISTED:
        blocks.append(Prose(f"The first {_MOST_LISTED:,} of {len(rows):,} cells are listed.", quiet=True))
    return Section("cells-part", "Cells", blocks)


def _origin(document: Mapping[str, Any]) -> Section:
    model, system = document["model"], document["system"]
    facts = [("model", str(model["name"])), ("SHA-256 of its file", str(model.get("sha256") or "none"))]
    facts.append(("devices", f"up to {system['devices']:,}"))
    if isinstance(size := system.get("memory_bytes"), int):
        facts.append(("memory of a device", format_bytes(size)))
    facts.append(("planner", str(document["planner"])))
    facts.append(("ended by", str(document["stopped"])))
    return facts_section("origin", "Where it comes from", "What the file records of the model and of the search", facts)
