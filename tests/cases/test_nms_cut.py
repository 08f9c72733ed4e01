"""A cut behind boxes that only a run keeps: their axis stays open in the stage files."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp


def test_kept_boxes_stay_open_across_every_cut(shared_data: Path, tmp_path: Path) -> None:
    """Stages cut anywhere run for any number of kept boxes, and write no size for it."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "nms-cut" / "model.onnx"
    model = mtpp.read(path, dims="auto")
    assert dict(model.dims) == {"sel:0": 8}
    feeds = [random_feeds(path, seed) for seed in range(5)]
    ops = model.graph.op_names
    for cut in range(len(ops)):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))
        for file in (tmp_path / "stages").glob("*.onnx"):
            for value in [*onnx.load(file).graph.input, *onnx.load(file).graph.output]:
                if value.name in ("sel", "idx", "ix", "bx", "z"):
                    assert not value.type.tensor_type.shape.dim[0].HasField("dim_value")
