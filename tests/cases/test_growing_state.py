"""Loops whose state grows: known where the number of trips is, else open and at most as large as it can be."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_partitions_equal, random_feeds

import mtpp


@pytest.mark.parametrize(("name", "rows", "certain"), [("m0", 2, True), ("m1", 4, True), ("cond", 22, False)])
def test_rows_follow_from_trips(name: str, rows: int, certain: bool, shared_data: Path, tmp_path: Path) -> None:
    """The state has the rows of the trips that are known; stages run whatever the number is."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "growing-state" / f"{name}.onnx"
    reading = mtpp.read(model)
    (tensor,) = (reading.graph.tensor_bytes[i] for i, one in enumerate(reading.graph.tensor_names) if one == "y")
    assert tensor == rows * 8 * 4
    told = " ".join(reading.assumptions())
    assert ("y:0 = 22" in told) is not certain
    feeds = [random_feeds(model, seed) for seed in range(4)]
    feeds += [{"x": 0.2 * feeds[0]["x"]}, {"x": 9 * feeds[0]["x"]}]  # many trips, and one
    assert_partitions_equal(model, tmp_path, feeds)
