"""Requests in the pipeline of a plan: the first leaves after its latency, and then one every bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.views.report.page import TableBlock
from mtpp.views.report.plan_report import crossing_sections
from mtpp.views.report.request_timeline import Visit, request_section, visits
from mtpp.views.report.stated import StatedPlan
from mtpp.views.shown_plan import each_cost

MACHINES = {
    "equal": "",
    "unequal": '[[device]]\nname = "slow"\ncount = 2\n[[device]]\nname = "fast"\nspeed = 3\n',
    "neighbours": 'transport = "neighbours"\n[[device]]\nname = "a"\ncount = 2\n[[device]]\nname = "b"\ncount = 2\n'
    '[[link]]\nbetween = ["a", "b"]\nbandwidth = "3GB/s"\n',
}


def graph() -> dict[str, Any]:
    """Return a chain with an op that takes a third of it, and a tensor that skips."""
    works = [3, 4, 2, 20, 6, 5, 4, 7]
    ops = [{"name": f"op {i}", "work": work} for i, work in enumerate(works)]
    tensors = [
        {"name": f"t{i}", "producer": f"op {i}", "consumers": [f"op {i + 1}"], "bytes": 9000}
        for i in range(len(works) - 1)
    ]
    tensors[1]["consumers"] = ["op 2", "op 6"]
    return {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "us", "ops": ops, "tensors": tensors}


def planned(tmp_path: Path, kind: str, *, replicas: bool = False) -> Mapping[str, Any]:
    """Return the document of a plan on three or four devices."""
    if kind == "equal" and not replicas:
        return mtpp.partition(graph(), 4).document()
    text = MACHINES[kind] or '[[device]]\nname = "d"\ncount = 4\n'
    (tmp_path / "machine.toml").write_text(text)
    model = mtpp.read(graph(), machine=tmp_path / "machine.toml")
    return mtpp.partition(model, replicas=replicas).document()


def sent(document: Mapping[str, Any], requests: int) -> list[list[Visit]]:
    """Return the visits of each stage."""
    costs = [each_cost(row) for row in document["stages"] if row["ops"]]
    found = visits(costs, document["bottleneck"], requests)
    return [list(own) for _, own in groupby(found, key=lambda one: one.stage)]


@pytest.mark.parametrize(
    ("kind", "replicas"),
    [("equal", False), ("unequal", False), ("equal", True), ("neighbours", False), ("unequal", True)],
)
def test_requests_agree_with_the_plan(tmp_path: Path, kind: str, replicas: bool) -> None:
    """Request 0 ends at the latency, results come every bottleneck, and no device has two requests at once."""
    document = planned(tmp_path, kind, replicas=replicas)
    stages = sent(document, 60)
    assert stages[-1][0].end == document["latency"]
    unequal = any(len(set(each_cost(row))) > 1 for row in document["stages"])
    assert unequal == (kind == "unequal" and replicas)
    ends = [one.end for one in stages[-1]]
    if unequal:
        waited = [end - one * document["bottleneck"] for one, end in enumerate(ends)]
        assert max(waited) < 2 * document["latency"]
    else:
        assert {after - before for before, after in pairwise(ends)} == {document["bottleneck"]}
    for own in stages:
        for device in {one.device for one in own}:
            busy = sorted((one.start, one.end) for one in own if one.device == device)
            assert all(end <= start for (_, end), (start, _) in pairwise(busy))
        assert len({one.device for one in own}) == len(
            [row for row in document["stages"] if row["ops"]][own[0].stage].get("devices", [None])
        )
    for before, after in pairwise(stages):
        assert all(one.end <= other.start for one, other in zip(before, after, strict=True))


def test_the_chart_holds_the_parts_of_stages(tmp_path: Path) -> None:
    """Boxes are as long as the parts of the cost; they follow each other, and rows are named after devices."""
    document = planned(tmp_path, "neighbours")
    charts: dict[str, Any] = {}
    section = request_section(StatedPlan.of(document), charts, {})
    assert section is not None
    (chart,) = section.blocks
    latency = StatedPlan.of(document).describe(document["latency"])
    assert f"the first leaves after {latency}, the latency" in chart.caption
    assert "stage 2: b" in str(charts["requests"])
    assert request_section(StatedPlan.of({**document, "bottleneck": 0}), charts, {}) is None


@pytest.mark.parametrize(
    ("kind", "column", "paid"),
    [
        ("equal", "transfer", "each is paid once by every stage it touches"),
        ("unequal", "over the fastest link", "every stage it touches, over the links of their devices"),
        ("neighbours", "over the fastest link", "at every boundary that it passes, over the links of their devices"),
    ],
)
def test_transfers_are_said_to_be_those_of_a_link(tmp_path: Path, kind: str, column: str, paid: str) -> None:
    """Where links differ, or tensors pass several boundaries, a tensor's time is not said to be that of its stages."""
    document = planned(tmp_path, kind)
    machine = None if kind == "equal" else tmp_path / "machine.toml"
    model = mtpp.read(graph(), machine=machine)
    record = mtpp.evaluate(model, document).record
    assert record is not None
    stages = [document["assignment"][name] for name in record.graph.op_names]
    [section] = crossing_sections(record.graph, StatedPlan.of(document), record.instance, stages)
    block = section.blocks[0]
    assert isinstance(block, TableBlock)
    assert [one.name for one in block.table.columns][-1] == column
    assert block.table.title.endswith(paid)
