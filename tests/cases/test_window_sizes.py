"""Windows whose last place would be in the padding, and transposed ones: sizes of a run, and stages cut behind them."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp

POOLED = {
    "max-gap": (1, 3, 6, 6),
    "avg-gemm": (1, 3, 3, 3),
    "transposed-same": (1, 3, 10, 10),
    "max-opset22": (1, 3, 6, 6),
}


@pytest.mark.parametrize("name", POOLED)
def test_windows_leave_what_the_runtime_leaves(name: str, shared_data: Path, tmp_path: Path) -> None:
    """The tensor behind a window has the bytes of a run, and stages cut at any op compute the whole model."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "window-sizes" / f"{name}.onnx"
    graph = mtpp.read(model).graph
    behind = graph.tensor_names.index("p")
    count = 1
    for size in POOLED[name]:
        count *= size
    assert graph.tensor_bytes[behind] == 4 * count
    feeds = [random_feeds(model, seed) for seed in range(2)]
    for cut in range(1, graph.op_count):
        stages = {op: int(place >= cut) for place, op in enumerate(graph.op_names)}
        assert_onnx_stages_equal(model, stages, tmp_path / str(cut), feeds)
