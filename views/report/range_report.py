"""Report on a range of plans: throughput, latency and gain of each, and what was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.checker.report import Report
from mtpp.checker.table_report import TableReport
from mtpp.formats.results.plan_range import RangePoint, gains
from mtpp.views.partition_plan import rate_text
from mtpp.views.plan_range import knee_words, rate_name
from mtpp.views.report.against_k import against_k
from mtpp.views.report.claims import (
    HELD,
    OPTIMAL,
    checks_table,
    claims_of_rows,
    origin_section,
    table_verdict,
    verdict_cell,
)
from mtpp.views.report.page import Cell, Claims, Page, Section, TableBlock
from mtpp.views.report.stated import StatedPlan, page_costs, ratio_text
from mtpp.views.table import NONE, Column, Table
from mtpp.wording import counted


def range_page(document: Mapping[str, Any], report: TableReport) -> Page:
    """Return the report on a well-formed range.

    Parameters
    ----------
    report
        Verdicts of the verifier on each plan, and on the claims that compare them.
    """
    plans: Sequence[Mapping[str, Any]] = document["plans"]
    stated = [StatedPlan.of(plan) for plan in plans]
    optimal = sum(bool(plan["optimal"]) for plan in plans)
    proven = f"All {len(plans)} plans hold, {optimal} of them proven optimal"
    counts = [plan["k"] for plan in plans]
    charts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    figures = [
        ("Stages", f"{counts[0]} to {counts[-1]}", f"{len(counts)} plans"),
        ("Knee", NONE if document["knee"] is None else f"k = {document['knee']}", knee_words(document)),
        ("Optimal", f"{optimal:,}", f"of {len(plans):,}, as the file says"),
    ]
    return Page(
        title=plans[0]["model"]["name"],
        kind=f"plans for k = {counts[0]} to {counts[-1]}",
        verdict=table_verdict(report, proven, OPTIMAL if optimal == len(plans) else HELD),
        figures=figures,
        charts=charts,
        data=data,
        sections=[
            *_pictures(document, stated[0], charts, data),
            _plans(document, stated, report.reports),
            origin_section(plans[0], stated[0]),
        ],
        claims=_claims(document, report),
    )


def _pictures(
    document: Mapping[str, Any], told: StatedPlan, charts: dict[str, Any], data: dict[str, Any]
) -> list[Section]:
    """Return the section with charts against the number of stages, where there are several."""
    plans: Sequence[Mapping[str, Any]] = document["plans"]
    blocks = against_k(
        [RangePoint.of(plan) for plan in plans],
        [plan["lower_bound"]["value"] for plan in plans],
        told,
        charts,
        data,
        figures=("throughput", "latency", "bottleneck"),
        objective=told.objective,
        knee=document["knee"],
        rate=rate_name(plans[0]["model"].get("serving", {})),
    )
    return [Section("against-k", "Against the number of stages", blocks)] if blocks else []


def _plans(document: Mapping[str, Any], stated: Sequence[StatedPlan], reports: Sequence[Report]) -> Section:
    points = [RangePoint.of(plan) for plan in document["plans"]]
    bottlenecks, latencies = [point.bottleneck for point in points], [point.latency for point in points]
    costs = page_costs(stated[0], bottlenecks)
    over_all = page_costs(stated[0], latencies)
    units = [f", {one.unit}" if one.unit else "" for one in (costs, over_all)]
    rows = []
    for point, gain, found, plan in zip(points, gains(points), reports, document["plans"], strict=True):
        rate, ratio = point.throughput_per_s, plan["ratio"]
        rows.append(
            [
                point.k,
                verdict_cell(found.verdict),
                Cell(costs.text(point.bottleneck), point.bottleneck),
                Cell(NONE if rate is None else rate_text(rate), rate or 0.0),
                Cell(over_all.text(point.latency), point.latency),
                Cell(NONE if gain is None else f"{float(gain):+.1%}", float(gain or 0)),
                Cell(ratio_text(ratio), 10.0**9 if ratio is None else float(ratio)),
                plan["lower_bound"]["method"],
            ]
        )
    columns = [
        Column("k"),
        Column("verdict", left=True),
        Column(f"bottleneck{units[0]}"),
        Column("throughput, 1/s"),
        Column(f"latency{units[1]}"),
        Column("gain per device"),
        Column("ratio"),
        Column("bound", left=True),
    ]
    caption = "Throughput, latency and gain of each number of stages; click a heading to sort"
    return Section("range-part", "Plans", [TableBlock("range", Table(caption, columns, rows), sortable=True)])


def _claims(document: Mapping[str, Any], report: TableReport) -> Claims:
    """Return what the verifier says of each plan, and of all of them together."""
    lines = []
    for plan, found in zip(document["plans"], report.reports, strict=True):
        held = sum(str(one.verdict) == "ok" for one in found.checks)
        others = [one for one in found.checks if one.verdict is not None and str(one.verdict) != "ok"]
        detail = "; ".join(f"{one.name} {one.verdict}: {one.detail}" for one in others) or "all claims hold"
        lines.append([plan["k"], verdict_cell(found.verdict), held, detail])
    columns = [Column("k"), Column("verdict", left=True), Column("claims that hold"), Column("detail", left=True)]
    each = TableBlock("claims", Table("What mtpp verify says of each plan", columns, lines), sortable=True)
    means = TableBlock("range-claims", checks_table("What mtpp verify says of all plans", report.means))
    return claims_of_rows(report, f" of {counted(len(lines), 'plan')}", [each, means])
