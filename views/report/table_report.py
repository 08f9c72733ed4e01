"""Report on a table of certificates: cells as a map, bounds as ladders, verdicts row by row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mtpp.checker.report import Report
from mtpp.checker.table_report import TableReport
from mtpp.checker.tables.single_bounds import without_proof
from mtpp.colours import BLUE, GREY
from mtpp.formats.results.plan_range import RangePoint, knee
from mtpp.inference.cost_columns import CostColumns
from mtpp.language_models.serving_load import CONTEXT, PROMPT
from mtpp.names import BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE
from mtpp.views.certificate_texts import goal_figures, model_labels
from mtpp.views.report.against_k import against_k
from mtpp.views.report.claims import (
    HELD,
    OPTIMAL,
    checks_table,
    claims_of_rows,
    facts_section,
    table_verdict,
    verdict_cell,
)
from mtpp.views.report.colours import ACCENT, INK, NO_RATIO, ON_FILL, RATIOS, ratio_colour
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Cell, Chart, Claims, Page, Prose, Section, TableBlock
from mtpp.views.report.stated import StatedRow, cost_text, page_costs, ratio_text
from mtpp.views.table import NONE, Column, Table
from mtpp.wording import counted

_COLUMNS = (
    Column("model", left=True),
    Column("ops", "{:,}".format),
    Column("k"),
    Column("verdict", left=True),
    *map(Column, ("ratio", BOTTLENECK_OBJECTIVE)),
    Column("found by", left=True),
    Column("lower bound"),
    *(Column(name, left=True) for name in ("method", "tier")),
    Column("seconds", "{:,.2f}".format),
)

_BEST, _OTHER = BLUE, GREY
_ROW, _ROOM = 36, 76

_MOST_DRAWN = 6
"""Models whose figures are drawn against the number of stages, at most."""

_CELL_ROW, _CELL_ROOM = 34, 60

_SIGNS = {"ok": "", "unchecked": " ?", "false": " ✗"}
"""What is written behind the ratio of a cell that was not verified."""


def table_page(document: Mapping[str, Any], report: TableReport, name: str) -> Page:
    """Return the report on a well-formed table.

    Parameters
    ----------
    report
        What the verifier says of it, row by row.
    name
        Of the table.
    """
    rows = [StatedRow.of(row) for row in document["rows"]]
    with_upper = any(row.upper is not None for row in rows)
    labels = model_labels(rows)
    charts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    sections = []
    if with_upper:
        sections.append(cell_map_section(rows, labels, report.reports, charts))
        sections += _against_k(rows, labels, charts, data)
    unproven = [without_proof(row) for row in document["rows"]]
    if rows:
        ladder = bound_ladders(rows, labels, charts, data, unproven)
        sections.append(Section("ladder-part", "Bounds of a cell", ladder))
        sections.append(Section("cells-part", "Cells", [_cells(rows, labels, report.reports)]))
    if any(one["geomean_ratio"] is not None for one in document["summary"]):
        sections.append(_means(document["summary"]))
    sections.append(_origin(rows, labels))
    names = [f"{labels[row.path]}, k = {row.k}: " for row in rows]
    optimal = sum(row.optimal for row in rows)
    proven = "The cell holds" if len(rows) == 1 else f"All {len(rows):,} cells hold"
    if with_upper:
        proven += f", {optimal:,} of them proven optimal"
    return Page(
        title=name,
        kind="table of certificates" if with_upper else "table of lower bounds",
        verdict=table_verdict(report, proven, OPTIMAL if rows and optimal == len(rows) else HELD, names),
        figures=_figures(document, rows, report, with_upper=with_upper),
        sections=sections,
        claims=_claims(rows, labels, report),
        charts=charts,
        data=data,
    )


def _against_k(
    rows: Sequence[StatedRow], labels: Mapping[str, str], charts: dict[str, Any], data: dict[str, Any]
) -> list[Section]:
    """Return the section with charts against the number of stages, where few models have several."""
    blocks: list[Block] = []
    models = list(dict.fromkeys(row.path for row in rows))
    for number, path in enumerate(models if len(models) <= _MOST_DRAWN else []):
        found = {row.k: row for row in rows if row.path == path and row.upper is not None}
        own = [found[k] for k in sorted(found)]
        of_latency = any(row.goal.of_latency for row in own)
        points = [_point(row) for row in own]
        blocks += against_k(
            points,
            [row.lower for row in own],
            rows[0] if not own else own[0],
            charts,
            data,
            figures=("latency",) if of_latency else ("throughput", "bottleneck"),
            objective=LATENCY_OBJECTIVE if of_latency else BOTTLENECK_OBJECTIVE,
            knee=None if of_latency else knee(points),
            rate="steps/s" if own and own[0].dims.keys() & {CONTEXT, PROMPT} else "inferences/s",
            prefix=f"k-{number}",
            label=f"{labels[path]}: " if len(models) > 1 else "",
        )
    return [Section("against-k", "Against the number of stages", blocks)] if blocks else []


def _point(row: StatedRow) -> RangePoint:
    """Return the figures of a row, of which a table has the objective alone."""
    upper = row.upper or 0
    if row.goal.of_latency:
        return RangePoint(row.k, 0, upper, None, row.timed)
    return RangePoint(
        row.k, upper, 0, Fraction(row.ticks_per_unit if not row.timed else 1, upper) if upper else None, row.timed
    )


def _figures(
    document: Mapping[str, Any], rows: Sequence[StatedRow], report: TableReport, *, with_upper: bool
) -> list[tuple[str, str, str]]:
    models, counts = {row.path for row in rows}, sorted({row.k for row in rows})
    held = sum(str(found.verdict) == "ok" for found in report.reports)
    figures = [
        *((name.capitalize(), text, "") for name, text in goal_figures(rows)),
        ("Cells", f"{len(rows):,}", f"{counted(len(models), 'model')}, k = {', '.join(map(str, counts[:8]))}"),
        ("Verified", f"{held:,}", "every claim of the cell holds"),
    ]
    if with_upper:
        closed = sum(row.optimal for row in rows)
        ratios = [row.ratio for row in rows if row.ratio is not None]
        figures.append(("Optimal", f"{closed:,}", f"of {len(rows):,}, as the table says"))
        if ratios:
            figures.append(("Largest ratio", ratio_text(max(ratios)), ""))
    for summary in document["summary"][:4]:
        if summary["geomean_ratio"] is not None:
            figures.append((f"Mean ratio, k = {summary['k']}", f"{float(summary['geomean_ratio']):.4f}", "geometric"))
    return figures


def _cells(rows: Sequence[StatedRow], labels: Mapping[str, str], reports: Sequence[Report]) -> TableBlock:
    costs = _costs(rows)
    lines = [
        [
            *(labels[row.path], row.ops, row.k, verdict_cell(found.verdict)),
            Cell(ratio_text(row.ratio), 10.0**9 if row.ratio is None else row.ratio),
            *(_ticks(row, row.upper, costs), row.found_by or NONE, _ticks(row, row.lower, costs)),
            *(row.method, row.tier, row.seconds),
        ]
        for row, found in zip(rows, reports, strict=True)
    ]
    marks = [{"cell": str(i), "k": str(row.k), "model": labels[row.path]} for i, row in enumerate(rows)]
    caption = "Click a line, or press Enter on it, to see its bounds above; a heading to sort"
    of = next((row.objective for row in rows if row.goal.of_latency), BOTTLENECK_OBJECTIVE)
    columns = [replace(one, name=of) if one.name == BOTTLENECK_OBJECTIVE else one for one in _COLUMNS]
    return TableBlock("cell-table", Table(caption, columns, lines), marks, sortable=True)


def _costs(rows: Sequence[StatedRow]) -> dict[str, CostColumns]:
    """Return the unit of each model's costs, by its path: that of its chart against the number of stages."""
    return {
        path: page_costs(own[0], [row.lower if row.upper is None else row.upper for row in own])
        for path, own in _by_path(rows).items()
    }


def _by_path(rows: Sequence[StatedRow]) -> dict[str, list[StatedRow]]:
    found: dict[str, list[StatedRow]] = {}
    for row in rows:
        found.setdefault(row.path, []).append(row)
    return found


def _text(row: StatedRow, ticks: int, costs: CostColumns) -> str:
    """Write a cost with its unit; one of an abstract graph in that of the file."""
    return cost_text(ticks, costs) if row.timed else row.describe(ticks)


def _ticks(row: StatedRow, ticks: int | None, costs: Mapping[str, CostColumns]) -> Cell:
    return Cell(NONE, -1) if ticks is None else Cell(_text(row, ticks, costs[row.path]), ticks)


def _claims(rows: Sequence[StatedRow], labels: Mapping[str, str], report: TableReport) -> Claims:
    """Return what the verifier says of each row: how many claims hold, and each that does not; and of the means."""
    lines = []
    for row, found in zip(rows, report.reports, strict=True):
        held = len([one for one in found.checks if str(one.verdict) == "ok"])
        others = [one for one in found.checks if one.verdict is not None and str(one.verdict) != "ok"]
        bound = next(one.detail for one in found.checks if one.name == "lower bound")
        detail = "; ".join(f"{one.name} {one.verdict}: {one.detail}" for one in others) or f"lower bound: {bound}"
        lines.append([verdict_cell(found.verdict), labels[row.path], row.k, held, detail])
    columns = [Column(name, left=True) for name in ("verdict", "model", "detail")]
    columns[2:2] = [Column("k"), Column("claims that hold")]
    table = Table("What mtpp verify says of each cell", columns, lines)
    blocks: list[Block] = [TableBlock("claims", table, sortable=True)]
    if report.means:
        blocks.append(TableBlock("means-checked", checks_table("What mtpp verify says of the means", report.means)))
    return claims_of_rows(report, f" of {counted(len(rows), 'cell')}", blocks)


def _means(summary: Sequence[Mapping[str, Any]]) -> Section:
    lines = [
        [
            *(one[key] for key in ("k", "cells", "closed")),
            NONE if one["geomean_ratio"] is None else f"{float(one['geomean_ratio']):.4f}",
        ]
        for one in summary
    ]
    columns = list(map(Column, ("k", "cells", "closed", "geometric mean of ratios")))
    means = Table("Over all models, as the table says", columns, lines)
    return Section("means-part", "Means over all models", [TableBlock("means", means)])


def _origin(rows: Sequence[StatedRow], labels: Mapping[str, str]) -> Section:
    from mtpp.inference.model_file import devices_in_words

    facts = []
    for row in {row.path: row for row in rows}.values():
        dims = "".join(f", {name} = {size}" for name, size in row.dims.items())
        name = row.model if labels[row.path] == row.path else row.path
        said = f"{name}: {row.ops:,} ops, {row.tensors:,} tensors{dims}, SHA-256 {row.sha256}"
        facts.append((labels[row.path], f"{said}, {devices_in_words(row.system, row.machine, modelled=row.modelled)}"))
    return facts_section("origin", "Where it comes from", "Models of the table, as it records them", facts)


def bound_ladders(
    rows: Sequence[StatedRow],
    labels: Mapping[str, str],
    charts: dict[str, Any],
    data: dict[str, Any],
    unproven: Sequence[Collection[str]],
) -> list[Block]:
    """Return the chart, which goes to *charts*; *data* takes what it shows of each cell.

    Parameters
    ----------
    unproven
        Of each row, the bounds that nobody can check.
    """
    costs = _costs(rows)
    cells = [_cell(row, labels[row.path], bounds, costs) for row, bounds in zip(rows, unproven, strict=True)]
    most = max(len(cell["names"]) for cell in cells)
    height = _ROOM + _ROW * most
    drawing = Drawing("ladder", height=height, x=(0, 1), y=(most - 0.4, -1.3), x_label="cost", rows=[])
    nothing: dict[str, list[Any]] = {key: [] for key in ("left", "right", "top", "bottom", "fill", "name", "told")}
    drawing.boxes(nothing, name="rungs", tips=(("bound", "name"), ("value", "told")))
    empty: dict[str, list[Any]] = {"x": [], "y": [], "text": []}
    drawing.texts(empty, name="rung-names", colour=INK, dx=4)
    drawing.lines({"xs": [], "ys": []}, name="upper", colour=ACCENT, width=2)
    drawing.texts(empty, name="upper-name", colour=ACCENT, align="right", dx=-6, bold=True)
    charts["ladder"] = drawing.item()
    data["cells"] = cells
    first = max(range(len(rows)), key=lambda i: rows[i].ratio or 0)
    data["first_cell"] = first
    caption = "Lower bounds of the chosen cell in the order tried; the best one in blue"
    return [Prose(cells[first]["title"], name="ladder-title"), Chart("ladder", caption, height)]


def _cell(row: StatedRow, label: str, unproven: Collection[str], by_path: Mapping[str, CostColumns]) -> dict[str, Any]:
    costs = by_path[row.path]
    names, values, texts, fills = [], [], [], []
    for name, figure in row.bounds.items():
        value = figure.value
        names.append(name)
        values.append(float((value or 0) / costs.ticks))
        text = "nothing proven" if value is None else _text(row, value, costs)
        if value is not None and row.upper:
            text += f" ({value / row.upper:.1%})"
        text = text if figure.solved else f"{text}, cut short"
        texts.append(f"{text}, unchecked" if name in unproven and value is not None else text)
        fills.append(_BEST if name == row.method else _OTHER)
    title = f"{label}, k = {row.k}: ratio {ratio_text(row.ratio)}" if row.upper is not None else f"{label}, k = {row.k}"
    return {
        "title": title,
        "names": names,
        "values": values,
        "texts": texts,
        "fills": fills,
        "ticks": [None if one.value is None else str(one.value) for one in row.bounds.values()],
        "upper": None if row.upper is None else float(row.upper / costs.ticks),
        "upper_text": "" if row.upper is None else f"{row.objective} {_text(row, row.upper, costs)}",
        "unit": costs.unit or "cost",
    }


def _fill(row: StatedRow, found: Report) -> str:
    """Return the colour of a cell: none of a ratio that is false, and that of optima for those that were verified."""
    verdict = str(found.verdict)
    if verdict == "false":
        return NO_RATIO[0]
    return ratio_colour(row.ratio, optimal=row.optimal and verdict == "ok")


def cell_map_section(
    rows: Sequence[StatedRow],
    labels: Mapping[str, str],
    reports: Sequence[Report],
    charts: dict[str, Any],
) -> Section:
    """Return the section with the map, which goes to *charts*."""
    paths = list(dict.fromkeys(row.path for row in rows))
    counts = sorted({row.k for row in rows})
    height = _CELL_ROOM + _CELL_ROW * len(paths)
    drawing = Drawing(
        "cells",
        height=height,
        x=(-0.5, len(counts) - 0.5),
        y=(len(paths) - 0.5, -0.5),
        rows=[labels[path] for path in paths],
        columns=[f"k = {k}" for k in counts],
    )
    x = [counts.index(row.k) for row in rows]
    y = [paths.index(row.path) for row in rows]
    texts = [
        ratio_text(row.ratio) + _SIGNS[str(found.verdict)] for row, found in zip(rows, reports, strict=True)
    ]  # fmt: skip
    columns: dict[str, Any] = {
        "left": [one - 0.48 for one in x],
        "right": [one + 0.48 for one in x],
        "top": [one - 0.46 for one in y],
        "bottom": [one + 0.46 for one in y],
        "fill": [_fill(row, found) for row, found in zip(rows, reports, strict=True)],
        "model": [labels[row.path] for row in rows],
        "k": [str(row.k) for row in rows],
        "ratio": texts,
        "method": [f"{row.method}, tier {row.tier}" for row in rows],
    }
    tips = (("model", "model"), ("k", "k"), ("ratio", "ratio"), ("bound", "method"))
    drawing.boxes(columns, name="cells", tips=tips, clicked=True)
    drawing.texts({"x": x, "y": y, "text": texts}, name="ratios", colour=ON_FILL, align="center")
    charts["cells"] = drawing.item()
    legend = [(colour, name) for _, colour, name in RATIOS]
    legend.append(NO_RATIO)
    of = next((row.objective for row in rows if row.goal.of_latency), BOTTLENECK_OBJECTIVE).capitalize()
    caption = f"{of} over lower bound of each cell; ? not checked in full, ✗ verification failed. Click one to see it."
    return Section("map-part", "Ratios", [Chart("cells", caption, height, legend)])
