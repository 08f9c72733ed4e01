"""Bounds for overlapping ranges: above the maximum flow of every placement, Helix's values, forged documents."""

from __future__ import annotations

import copy
import json
from itertools import product
from math import lcm
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest
from processes import refused

import mtpp
from mtpp.api.cells.overlapping import bound_overlapping
from mtpp.solvers.unequal.chains.overlapping import HeldRanges, OverlappingBound


def _greatest_flow(layers: int, times: list[list[int]]) -> tuple[int, int]:
    """Return the largest throughput of all placements, as requests in a number of ticks."""
    period = lcm(*(time for row in times for time in row))
    most = 0
    choices = [
        [(b, b + n) for n in range(1, min(layers, len(row)) + 1) for b in range(layers - n + 1)] for row in times
    ]
    for placed in product(*choices):
        graph = nx.DiGraph()
        graph.add_nodes_from(("in", "out"))
        for i, (begin, end) in enumerate(placed):
            graph.add_edge((i, 0), (i, 1), capacity=period // times[i][end - begin - 1])
            if begin == 0:
                graph.add_edge("in", (i, 0))
            if end == layers:
                graph.add_edge((i, 1), "out")
            for j, (first, last) in enumerate(placed):
                if first <= end < last:
                    graph.add_edge((i, 1), (j, 0))
        if nx.has_path(graph, "in", "out"):
            most = max(most, nx.maximum_flow_value(graph, "in", "out"))
    return most, period


@pytest.mark.parametrize("seed", range(60))
def test_no_placement_beats_the_bound(seed: int) -> None:
    """The maximum flow of every placement of ranges is at most the rate that prices refute."""
    draw = Random(seed)
    layers = draw.randint(1, 4)
    classes = [[draw.randint(1, 12) for _ in range(draw.randint(1, layers))] for _ in range(draw.randint(1, 2))]
    counts = [draw.randint(1, 3 if len(classes) == 1 else 2) for _ in classes]
    found = OverlappingBound(HeldRanges(layers, counts, classes)).run()
    if found is None:
        return
    times = [row for row, count in zip(classes, counts, strict=True) for _ in range(count)]
    served, period = _greatest_flow(layers, times)
    assert served * found.ticks <= period


def _chain(n: int) -> dict[str, Any]:
    tensors = [
        {"name": f"t{i}", "producer": f"layer{i}", "consumers": [f"layer{i + 1}"], "bytes": 8} for i in range(n - 1)
    ]
    ops = [{"name": f"layer{i}", "work": 1} for i in range(n)]
    return {"format": "mtpp-graph", "version": 1, "name": "chain", "time_unit": "ms", "ops": ops, "tensors": tensors}


MACHINE = """
[[device]]
name = "large"
count = 2
stage_times = ["3ms", "5ms", "9ms", "8ms"]
[[device]]
name = "small"
count = 3
stage_times = ["4ms", "11ms"]
"""


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """Return the bound of a small chain."""
    (tmp_path / "graph.json").write_text(json.dumps(_chain(9)))
    (tmp_path / "machine.toml").write_text(MACHINE)
    found = bound_overlapping(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"))
    assert found.ticks > 0
    assert found.millitokens_per_s is not None
    assert mtpp.verify(found, tmp_path / "graph.json").passed
    return found.document()


def test_forged_bounds_fail(document: dict[str, Any]) -> None:
    """A bound with more ticks, other prices that prove nothing, fewer devices' times or another rate is refuted."""
    assert mtpp.verify(document).passed
    proof = ("lower_bound", "proof")
    for place, by in [
        (("lower_bound", "value"), 1),
        ((*proof, "ticks"), 1),
        ((*proof, "price_of_layer"), 10**9),
        ((*proof, "prices", "large"), 10**9),
        (("layers",), -1),
        (("millitokens_per_s",), 1),
        (("machine", "devices", 0, "stage_times_ps", 0), -1),
    ]:
        forged = copy.deepcopy(document)
        inner: Any = forged
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] += by
        assert not mtpp.verify(forged).passed, place
    forged = copy.deepcopy(document)
    forged["lower_bound"]["value"] += 10**9
    forged["lower_bound"]["proof"]["ticks"] += 10**9
    assert not mtpp.verify(forged).passed


def test_no_limit_is_no_claim(tmp_path: Path) -> None:
    """Layers that take no time may be served at any rate, and a verified bound does not say otherwise."""
    (tmp_path / "graph.json").write_text(json.dumps(_chain(2)))
    (tmp_path / "machine.toml").write_text('[[device]]\nstage_times = ["1ms", "0ms"]\n')
    found = bound_overlapping(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"))
    verified = mtpp.verify(found, tmp_path / "graph.json")
    assert (found.ticks, verified.passed) == (0, True)
    assert "no limit" in verified.sentence


def test_needs_times_of_stages(tmp_path: Path) -> None:
    """Devices without times of stages are refused, with the place."""
    (tmp_path / "graph.json").write_text(json.dumps(_chain(3)))
    (tmp_path / "machine.toml").write_text('[[device]]\nstage_times = ["1ms"]\n[[device]]\n')
    with pytest.raises(mtpp.InputError, match="machine: /device/1/stage_times: device 'd1' has none"):
        bound_overlapping(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"))
    line = refused("bound", "graph.json", "--overlapping", "--machine", "machine.toml", cwd=tmp_path)
    assert line == "error: machine.toml: /device/1/stage_times: device 'd1' has none, which overlapping ranges need\n"


@pytest.mark.parametrize("cluster", ["10", "24"])
def test_helix_wide_bounds(cluster: str, shared_data: Path, shared_reference: Path) -> None:
    """At most a ten-thousandth above the least rate that prices of this kind can refute."""
    data = json.loads((shared_data / "helix" / f"helix_{cluster}.json").read_text())
    times = [[-(-(10**15) // rate) for rate in one["millitokens_per_s_of_layers"]] for one in data["classes"]]
    counts = [one["count"] for one in data["classes"]]
    found = OverlappingBound(HeldRanges(data["layers"], counts, times)).run()
    assert found is not None
    due = json.loads((shared_reference / "machine.json").read_text())["chains"][cluster]["wide_bound"]
    assert due * (1 - 1e-6) <= 10**15 / found.ticks <= due * (1 + 1e-4)
