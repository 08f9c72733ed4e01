"""Known sizes and costs: constants, trips, windows and rules of ONNX Runtime tell them; stages compute the whole."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from stage_equality import assert_cuts_equal, assert_partitions_equal, random_feeds

import mtpp
from mtpp.inference.graph import CostGraph

POOLED = {
    "max-gap": (1, 3, 6, 6),
    "avg-gemm": (1, 3, 3, 3),
    "transposed-same": (1, 3, 10, 10),
    "max-opset22": (1, 3, 6, 6),
}
"""Shapes behind windows whose last place would be in the padding, and behind transposed ones."""


def _bytes_of(graph: CostGraph, name: str) -> int:
    return int(graph.tensor_bytes[graph.tensor_names.index(name)])


@pytest.mark.parametrize("name", ["compress", "nms"])
def test_no_size_is_open(name: str, shared_data: Path, tmp_path: Path) -> None:
    """How much a mask keeps, how many boxes are left: constants are looked at, nothing is assumed."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "constant-sizes" / f"{name}.onnx"
    graph = mtpp.read(model).graph
    assert "assumptions" not in graph.metadata
    if name == "compress":
        assert _bytes_of(graph, "c") == 2 * 3 * 4
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])


@pytest.mark.parametrize(("name", "rows", "certain"), [("m0", 2, True), ("m1", 4, True), ("cond", 22, False)])
def test_rows_follow_from_trips(name: str, rows: int, certain: bool, shared_data: Path, tmp_path: Path) -> None:
    """A growing state has the rows of the trips that are known, else at most as many; stages run either way."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "growing-state" / f"{name}.onnx"
    reading = mtpp.read(model)
    assert _bytes_of(reading.graph, "y") == rows * 8 * 4
    told = " ".join(reading.assumptions())
    assert ("y:0 = 22" in told) is not certain
    feeds = [random_feeds(model, seed) for seed in range(4)]
    feeds += [{"x": 0.2 * feeds[0]["x"]}, {"x": 9 * feeds[0]["x"]}]  # many trips, and one
    assert_partitions_equal(model, tmp_path, feeds)


@pytest.mark.parametrize("name", POOLED)
def test_windows_leave_what_the_runtime_leaves(name: str, shared_data: Path, tmp_path: Path) -> None:
    """The tensor behind a window has the bytes of a run, and stages cut at any op compute the whole model."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "window-sizes" / f"{name}.onnx"
    graph = mtpp.read(model).graph
    assert _bytes_of(graph, "p") == 4 * math.prod(POOLED[name])
    assert_cuts_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(2)], range(1, graph.op_count))


@pytest.mark.parametrize("name", ["greater-or-equal-13", "slice-9-axes-unsorted", "scaler-regressor"])
def test_models_that_run_are_read_and_split(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Of ops whose shapes onnx cannot tell no size is open; every op is modelled, and any cut computes the whole."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "no-shape-rule" / f"{name}.onnx"
    graph = mtpp.read(model).graph
    assert graph.metadata["dims"] == {}
    assert graph.metadata["not_modelled"] == {}
    assert_cuts_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(2)], range(1, graph.op_count))


def test_a_sum_that_does_not_fit_is_a_size_of_its_own(shared_data: Path, tmp_path: Path) -> None:
    """With 4 tokens the mask of past + 4 is proposed although its name says past + 1, and stages run with it."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "dim-sums" / "plus-one.onnx"
    sizes = dict(mtpp.read(path, dims={"*": "auto", "sequence_length": 4}).dims)
    assert sizes["past_sequence_length + 1"] == 132
    assert sizes["past_sequence_length"] == 128
    feeds = [random_feeds(path, seed, sizes) for seed in range(2)]
    assert_partitions_equal(path, tmp_path, feeds, dims=sizes)


def test_a_sum_that_fits_is_taken(shared_data: Path) -> None:
    """With one token the name is what it says."""
    path = shared_data / "cases" / "dim-sums" / "plus-one.onnx"
    assert mtpp.read(path, dims="auto").dims["past_sequence_length + 1"] == 129


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
