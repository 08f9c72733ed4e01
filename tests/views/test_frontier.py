"""Tables of the plans that no other one beats."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import mtpp

FINE: dict[str, Any] = {
    "format": "mtpp-graph", "version": 1, "name": "fine", "time_unit": "ps",
    "ops": [{"name": name, "work": work} for name, work in (("a", 60_000_000), ("b", 100), ("c", 60_000_000))],
    "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 10},
                {"name": "u", "producer": "b", "consumers": ["c"], "transfer": 10}],
}  # fmt: skip
"""Three, two or one stage: each plan is faster for one request, and slower for many, by picoseconds."""

POINTS = [(60_000_010, 120_000_140), (60_000_110, 120_000_120), (120_000_100, 120_000_100)]


def test_figures_that_differ_read_differently() -> None:
    """As many digits as tell plans apart stand in the table and on the page, in one unit."""
    plan = mtpp.partition(mtpp.read(FINE), 3, frontier=True)
    assert [(point["bottleneck"], point["latency"]) for point in plan.frontier] == POINTS
    due = [[f"{figure / 10**6:.5f}" for figure in point] for point in POINTS]
    table = plan.text("table").partition("Frontier: 3 plans that no other beats (times in µs)\n")[2]
    assert [row.split()[:2] for row in table.splitlines()[1:4]] == due
    page = mtpp.report(plan.document(embed=True)).html.partition("both bottleneck and latency (times in µs)")[2]
    cells = re.findall(r"<t[dh][^>]*>([\d.]+)</t[dh]>", page.partition("</table>")[0])
    assert [cells[i : i + 2] for i in range(0, len(cells), 4)] == due


def test_the_csv_says_its_unit() -> None:
    """Ticks, with the ticks in a unit of the graph; of a graph without a unit of time too."""
    for graph, unit in ((FINE, "ps"), ({**FINE, "time_unit": "1"}, "1")):
        plan = mtpp.partition(mtpp.read(graph), 3, frontier=True)
        rows = list(csv.DictReader(io.StringIO(plan.text("csv"))))
        assert [(int(row["bottleneck"]), int(row["latency"])) for row in rows] == POINTS
        assert {(row["time_unit"], row["ticks_per_unit"]) for row in rows} == {(unit, "1")}
