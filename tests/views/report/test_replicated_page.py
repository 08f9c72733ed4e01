"""Pages of plans with stages on several devices: bars as long as costs, and the cost of each device."""

from __future__ import annotations

import re
from typing import Any

import pytest

import mtpp
from mtpp.inference.cost_columns import CostColumns
from mtpp.views.report.plan_report import _bar
from mtpp.views.report.stated import StatedPlan

GRAPH: dict[str, Any] = {
    "format": "mtpp-graph", "version": 1, "name": "line", "time_unit": "ps",
    "ops": [{"name": name, "work": work, "param_bytes": 10} for name, work in (("a", 60), ("b", 60), ("c", 15))],
    "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 50},
                {"name": "u", "producer": "b", "consumers": ["c"], "transfer": 0}],
}  # fmt: skip


def _document() -> dict[str, Any]:
    """Return a plan of two equal ops and a small one on four devices."""
    document = mtpp.partition(mtpp.read(GRAPH, stage_memory="20B"), 4, replicas=True).document(embed=True)
    assert mtpp.verify(document).passed
    assert len(document["stages"]) > 1
    return document


def test_bars_are_as_long_as_costs() -> None:
    """Parts of the first device, all together as long as the cost of the stage, which is at most the bottleneck."""
    document = _document()
    assert any(len(row["devices"]) > 1 for row in document["stages"])
    for row in document["stages"]:
        parts = _bar(row, CostColumns.of(StatedPlan.of(document), document["bottleneck"]))
        assert sum(parts) == pytest.approx(row["cost"])
        assert row["cost"] <= document["bottleneck"]
        assert [part > 0 for part in parts] == [row[key] > 0 for key in ("work", "input", "output", "overflow")]


def test_the_table_has_the_cost_of_each_device() -> None:
    """Beside that of all together; plans without replicas have no such column."""
    document = _document()
    page = mtpp.report(document).html
    table = page.partition('id="stage-table"')[2].partition("</table>")[0]
    assert re.findall(r"<th[^>]*>(?:<button[^>]*>)?(each|cost)", table) == ["each", "cost"]
    for row in document["stages"]:
        assert re.search(rf">{row['devices'][0]['cost']}(\.0+)?</td>\s*<td[^>]*>{row['cost']}(\.0+)?<", table), row
    plain = mtpp.report(mtpp.partition(mtpp.read(GRAPH, stage_memory="20B"), 2).document(embed=True)).html
    assert ">each" not in plain.partition('id="stage-table"')[2].partition("</table>")[0]
