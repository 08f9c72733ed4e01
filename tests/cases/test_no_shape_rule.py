"""Ops that ONNX Runtime runs and onnx cannot tell the shapes of: read, planned, and split at every op."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp


@pytest.mark.parametrize("name", ["greater-or-equal-13", "slice-9-axes-unsorted", "scaler-regressor"])
def test_models_that_run_are_read_and_split(name: str, shared_data: Path, tmp_path: Path) -> None:
    """No size is open, every op is modelled, and stages cut at any op compute the whole model."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "no-shape-rule" / f"{name}.onnx"
    graph = mtpp.read(model).graph
    assert graph.metadata["dims"] == {}
    assert graph.metadata["not_modelled"] == {}
    feeds = [random_feeds(model, seed) for seed in range(2)]
    for cut in range(1, graph.op_count):
        stages = {op: int(place >= cut) for place, op in enumerate(graph.op_names)}
        assert_onnx_stages_equal(model, stages, tmp_path / str(cut), feeds)
