"""Sizes that constants tell: how much a mask keeps, how many boxes are left."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_partitions_equal, random_feeds

import mtpp


@pytest.mark.parametrize("name", ["compress", "nms"])
def test_no_size_is_open(name: str, shared_data: Path, tmp_path: Path) -> None:
    """The constants are looked at, nothing is assumed, and stages compute what the whole does."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "constant-sizes" / f"{name}.onnx"
    graph = mtpp.read(model).graph
    assert "assumptions" not in graph.metadata
    if name == "compress":
        assert [graph.tensor_bytes[i] for i, one in enumerate(graph.tensor_names) if one == "c"] == [2 * 3 * 4]
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])
