"""Costs of loops that break and of ops that look at a part of a tensor; a cheap bound on many parallel ops."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtpp

BYTES_PER_S = 200 * 10**9
"""Memory of the system that costs are modelled for by default."""


@pytest.mark.parametrize(
    ("name", "flops", "macs", "read_and_written"),
    [
        # 16 keys for each of 128 queries and 8 heads, 32 MACs and 7 operations a pair; prompt: all keys are read.
        ("gqa-window", 8 * 128 * 16 * (2 * 32 + 7), 8 * 128 * 16 * 32, None),
        # 6 × 64 outputs of 36 products; the whole input, offsets, weights and output move.
        ("deformconv", 2 * 6 * 64 * 36, 6 * 64 * 36, 4 * (400 + 36 * 64 + 216 + 6 * 64)),
        # 75 outputs of four neighbours each, which are read, the grid of 25 places, and 75 written.
        ("gridsample", 8 * 75, 0, 4 * (4 * 75 + 50 + 75)),
        # A diagonal of 30 read and written.
        ("einsum-diag", 0, 0, 4 * 60),
    ],
)
def test_what_is_looked_at_counts(
    name: str, flops: int, macs: int, read_and_written: int | None, shared_data: Path
) -> None:
    """Keys in a window, neighbours of a sample, a diagonal."""
    graph = mtpp.read(shared_data / "cases" / "costs" / f"{name}.onnx").graph
    assert (graph.metadata["flops"], graph.metadata["macs"]) == (flops, macs)
    if read_and_written is not None:
        assert int(graph.work[0]) == read_and_written * 10**12 // BYTES_PER_S


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


@pytest.mark.parametrize("k", [4, 8, 16])
def test_a_cheap_bound_closes_it(shared_data: Path, k: int) -> None:
    """The op that gathers all branches costs as much as the slowest stage, whatever is beside it."""
    model = shared_data / "cases" / "wide" / "model.onnx"
    plan = mtpp.partition(model, k)
    assert plan.optimal
    assert plan.lower_bound.method == "node"
    assert mtpp.verify(plan, model).passed
