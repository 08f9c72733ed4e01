"""Ladders of bounds on pages of tables: what nobody can check is called that."""

from __future__ import annotations

from typing import Any

from certificate_documents import certificate_row, table
from graph_strategies import LINK, chain

from mtpp.checker.single_bounds import without_proof
from mtpp.views.report.stated import StatedRow
from mtpp.views.report.table_report import bound_ladders


def texts(row: dict[str, Any]) -> dict[str, str]:
    """Return what the ladder of a row says of each bound."""
    stated = StatedRow.of(row)
    data: dict[str, Any] = {}
    bound_ladders([stated], {stated.path: "net"}, {}, data, [without_proof(row)])
    (cell,) = data["cells"]
    return dict(zip(cell["names"], cell["texts"], strict=True))


def test_bounds_without_a_proof_are_called_unchecked() -> None:
    """The best one has its own verdict, the simple one is derived, others rest on a proof in the row."""
    graph = chain([10, 20, 30, 40], [1, 2, 3], "ms")
    row = table([certificate_row(graph, LINK, 2, [0, 0, 0, 1])])["rows"][0]
    row["bounds"] |= {"node": 40 * 10**9, "crossings": 41 * 10**9}
    row["proofs"] = {"crossings": {"tier": "exact", "proof": {}}}
    said = texts(row)
    assert {name for name, text in said.items() if text.endswith("unchecked")} == {"node"}
    assert said["bottleneck"].startswith("nothing proven")
    solver = {**row, "tier": "solver", "lower_method": "exact-mip", "lower": 51 * 10**9}
    solver["bounds"] = {**row["bounds"], "exact-mip": 51 * 10**9}
    assert texts(solver)["exact-mip"].endswith("unchecked")
