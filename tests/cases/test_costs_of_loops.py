"""Loops in the form of a while, and loops that break, cost the trips that run."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtpp


@pytest.mark.parametrize(
    ("name", "trips", "macs"),
    [("loop-max-int32", 4, 2 * 8 * 8 * 5), ("loop-break-at-3", 3, 3 * 4 * 32 * 32)],
)
def test_trips_that_run_are_counted(name: str, trips: int, macs: int, shared_data: Path) -> None:
    """Counter and condition are run, whatever limit an exporter writes for no limit."""
    graph = mtpp.read(shared_data / "cases" / "costs" / f"{name}.onnx").graph
    (control,) = graph.metadata["control_flow"]
    assert control["trip_count"] == trips
    assert graph.metadata["macs"] == macs
    assert not [text for text in graph.metadata.get("assumptions", ()) if "trip" in text or name in text]
