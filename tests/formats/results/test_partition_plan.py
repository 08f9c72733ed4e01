"""Plan files: recognised, laid out line by line, and read back as they were."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refusal

from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.partition_plan import as_plan

PLAN: dict[str, Any] = {
    "format": "mtpp-plan",
    "version": 1,
    "ratio": 1.2200000001,
    "stages": [{"index": 0, "cost": 3}, {"index": 1, "cost": 0}],
    "assignment": {"a": 0, "b/c": 0},
    "graph": {"format": "mtpp-graph", "ops": [{"name": "a"}, {"name": "b/c"}], "tensors": []},
}


def test_round_trip() -> None:
    """Whole numbers come back as they are, a ratio as the decimal that its float is written as."""
    plan = as_plan(parse_json(document_text(PLAN).encode(), "x"), "x")
    assert float(plan["ratio"]) == PLAN["ratio"]
    assert {**plan, "ratio": None} == {**PLAN, "ratio": None}
    assert list(plan) == list(PLAN)


def test_stages_assignment_and_embedded_ops_have_a_line_each() -> None:
    """Two plans compare line by line."""
    lines = [line.strip().rstrip(",") for line in document_text(PLAN).splitlines()]
    for line in ('{"index": 1, "cost": 0}', '"b/c": 0', '{"name": "a"}', '"version": 1'):
        assert line in lines
    assert document_text(PLAN).endswith("}\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "x: /: missing key 'format'; it must be \"mtpp-plan\""),
        (b'{"format": "mtpp-graph"}', "x: /format: a graph, not a plan; give the plan here and the graph with model"),
        (b'{"format": "csv"}', "x: /format: the format is 'csv'; it must be \"mtpp-plan\""),
        (b'{"format": "mtpp-plan"}', "x: /: missing key 'version'; this program reads version 1"),
        (
            b'{"format": "mtpp-plan", "version": 2}',
            "x: /version: mtpp-plan version 2 is not supported; this program reads version 1",
        ),
    ],
)
def test_what_is_no_plan(data: bytes, message: str) -> None:
    """Each is refused with what to give instead."""
    assert str(refusal(as_plan, parse_json(data, "x"), "x")) == message
