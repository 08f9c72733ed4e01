"""Simulated iterations of the verifier, against events in a queue and the known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pipeline_events import order_of, random_stage_graph, simulate_events

from mtpp.checker.training.graphpipe.pipeline import Channel, Pipeline, TimedStage, depth_of, path_bound
from mtpp.checker.training.graphpipe.simulation import passes_in_order, simulated_iteration
from mtpp.checker.training.graphpipe.validity import Schedule, fewest_in_flight


def pipeline(graph: dict[str, Any]) -> Pipeline:
    """Return a stage graph as the verifier simulates it."""
    return Pipeline(
        graph["mini_batch"],
        [
            TimedStage(
                stage["micro_batch"],
                stage.get("k", 1),
                stage["in_flight"],
                stage["forward"],
                stage["backward"],
                stage.get("synchronisation", 0),
            )
            for stage in graph["stages"]
        ],
        [Channel(one["source"], one["target"], one["forward"], one["backward"]) for one in graph["transfers"]],
    )


@pytest.mark.parametrize("seed", range(70))
def test_random_stage_graphs(seed: int) -> None:
    """The same iteration as by events, or none where passes wait for each other; never below the bound of paths."""
    graph = random_stage_graph(seed)
    due, found = simulate_events(graph), simulated_iteration(pipeline(graph))
    assert found == (None if due is None else due["iteration"])
    if found is not None:
        assert path_bound(pipeline(graph)) <= found


def test_orders() -> None:
    """Passes of a stage come in the order of kFkB."""
    for count in range(1, 7):
        for in_flight in range(1, count + 2):
            for k in range(1, 5):
                stage = {"micro_batch": 1, "in_flight": in_flight, "k": k}
                due = [j if kind == "F" else -j for kind, j in order_of(stage, count)]
                assert passes_in_order(count, in_flight, k) == due


def test_simulations_of_the_reference(shared_reference: Path) -> None:
    """Those with orders by rule come to what is known."""
    cases = json.loads((shared_reference / "graphpipe.json").read_text())["simulations"]
    known = [case for case in cases if all("in_flight" in stage for stage in case["graph"]["stages"])]
    assert known
    for case in known:
        assert simulated_iteration(pipeline(case["graph"])) == case["iteration"]


def test_table_2(shared_reference: Path) -> None:
    """Samples in flight follow all rows of the paper's table."""
    for row in json.loads((shared_reference / "graphpipe.json").read_text())["table_2"]["cases"]:
        behind = [Schedule(row["b_y"], row["k_y"], row["i_y"] // row["b_y"])]
        assert fewest_in_flight(row["b_x"], row["k_x"], behind, 10**6) * row["b_x"] == row["i_x"]


def test_a_line_of_32_stages() -> None:
    """Equal stages without transfers take (M + depth - 1)(f + g)."""
    stages = [TimedStage(1, 1, 32 - s, 1, 2, 0) for s in range(32)]
    channels = [Channel(s, s + 1, 0, 0) for s in range(31)]
    assert simulated_iteration(Pipeline(512, stages, channels)) == (512 + 31) * 3
    assert depth_of(32, channels) == 32
