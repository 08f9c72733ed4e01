"""Table of a range of plans: a line for each number of stages, and where further devices bring little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.formats.results.plan_range import RangePoint, gains
from mtpp.inference.cost_columns import CostColumns
from mtpp.names import CONTEXT_OBJECTIVE, PHASES
from mtpp.views.partition_plan import rate_text, ratio_words, unit_text
from mtpp.views.renderer import view
from mtpp.views.shown_plan import ShownPlan, shown_document
from mtpp.views.table import Column, Figure, Table, table_of_records
from mtpp.views.terminal import Medium
from mtpp.wording import counted, first_of

_FEW = 3


@view
def range_text(
    document: Mapping[str, Any],
    medium: Medium,
    assumptions: Sequence[str],
    *,
    claimed: bool,
    plans: Sequence[Mapping[str, Any]],
) -> Iterable[Table]:
    """Return a line for each plan.

    Parameters
    ----------
    claimed
        Whether these are a document's word that nobody has verified.
    plans
        The documents of the plans.
    """
    shown = [shown_document(plan) for plan in plans]
    points = [RangePoint.of(plan) for plan in plans]
    if medium.form == "csv":
        return [table_of_records(_flat(document, plans, shown))]
    costs = CostColumns.of(shown[-1], max(plan.bottleneck for plan in shown))
    columns = [
        Column("k"),
        Column("bottleneck", costs.text),
        Column(rate_name(shown[0].serving)),
        Column("latency", costs.text, spare=1),
        Column("gain"),
        Column("ratio"),
        Column("bound", left=True, spare=2),
        Column("capacity", "{:,}".format),
        Column("stages"),
    ]
    rows = [
        [
            document["rows"][i]["k"],
            plan.bottleneck,
            None if point.throughput_per_s is None else rate_text(point.throughput_per_s),
            point.latency,
            None if gain is None else f"{float(gain):+.1%}",
            _ratio_cell(plan, claimed=claimed),
            plan.lower.method,
            None if plan.capacity is None else plan.capacity["value"],
            _busy(plan),
        ]
        for i, (plan, point, gain) in enumerate(zip(shown, points, gains(points), strict=True))
    ]
    every = all(row[-1] == row[0] for row in rows)
    kept = [
        j
        for j, column in enumerate(columns)
        if any(row[j] is not None for row in rows) and not (column.name == "stages" and every)
    ]
    title = f"{shown[0].name}: {shown[0].ops:,} ops, {shown[0].tensors:,} tensors{unit_text(shown[0], costs)}"
    styles = {i: "bold" for i, row in enumerate(rows) if row[0] == document["knee"]}
    figures = _figures(document, shown, points, assumptions, claimed=claimed)
    return [Table(title, [columns[j] for j in kept], [[row[j] for j in kept] for row in rows], figures, styles=styles)]


def _busy(plan: ShownPlan) -> int:
    """Return the number of stages that have ops."""
    return plan.k - plan.empty_count


def rate_name(serving: Mapping[str, Any]) -> str:
    """Return the unit of throughput of a model with a load, or of one without."""
    if not serving:
        return "inferences/s"
    return "tokens/s" if serving["phase"] == PHASES[0] else "prompt tokens/s"


def _ratio_cell(plan: ShownPlan, *, claimed: bool) -> str:
    certificate = plan.certificate
    if certificate.ratio is None:
        return "none"
    if certificate.optimal:
        return "1"
    if certificate.closed_by_solver:
        return "1*"
    return ratio_words(certificate.ratio) + ("" if plan.lower.is_proof or claimed else "*")


def _figures(
    document: Mapping[str, Any],
    shown: Sequence[ShownPlan],
    points: Sequence[RangePoint],
    assumptions: Sequence[str],
    *,
    claimed: bool,
) -> list[Figure]:
    figures: list[Figure] = []
    last = points[-1].k
    if document["knee"] is not None:
        figures.append(("knee", f"k = {document['knee']}: up to {last} no further device brings a tenth of throughput"))
    elif len(points) > 1 and points[0].comparable:
        figures.append(("knee", f"none up to {last}: the last step brings a tenth or more per device"))
    if any(gain is not None for gain in gains(points)):
        figures.append(("gain", "of throughput against the k before, for each further device"))
    optimal, word = sum(plan.certificate.optimal for plan in shown), "claimed" if claimed else "proven"
    figures.append(("optimal", f"{optimal} of {len(shown)} {word}" + (", not verified" if claimed else "")))
    if any(not plan.lower.is_proof for plan in shown):
        figures.append(("*", "by HiGHS's word, not proven"))
    if shown[0].capacity is not None:
        of = "tokens of a sequence" if shown[0].capacity["objective"] == CONTEXT_OBJECTIVE else "sequences"
        figures.append(("capacity", f"{of} that the devices hold"))
    if any(_busy(plan) < point.k for plan, point in zip(shown, points, strict=True)):
        figures.append(("stages", "that have ops"))
    by_reason: dict[str, list[str]] = {}
    for one in document["missing"]:
        by_reason.setdefault(one["why"], []).append(str(one["k"]))
    figures += [("no plan", f"k = {first_of(counts, _FEW)}: {why}") for why, counts in by_reason.items()]
    if assumptions:
        figures.append(("assumptions", "; ".join(assumptions)))
    return figures


def _flat(
    document: Mapping[str, Any], plans: Sequence[Mapping[str, Any]], shown: Sequence[ShownPlan]
) -> Iterable[dict[str, Any]]:
    """Yield a line of CSV for each plan."""
    for row, plan, one in zip(document["rows"], plans, shown, strict=True):
        yield {
            **row,
            "lower_bound": one.lower.value,
            "method": one.lower.method,
            "tier": str(one.lower.tier),
            "ratio": one.certificate.ratio,
            "optimal": str(one.certificate.optimal).lower(),
            "busy_stages": _busy(one),
            "capacity": None if one.capacity is None else one.capacity["value"],
            "objective": one.certificate.objective,
            "stopped": plan.get("stopped"),
            "time_unit": one.time_unit,
            "ticks_per_unit": one.ticks_per_unit,
        }


def knee_words(document: Mapping[str, Any]) -> str:
    """Say where further devices bring little, in a line."""
    if document["knee"] is None:
        return f"{counted(len(document['rows']), 'plan')}, no knee"
    return f"beyond k = {document['knee']} no further device brings a tenth of throughput"
