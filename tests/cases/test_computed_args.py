"""Arguments that a run computes open the axes that they decide, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp

CASES = {
    "topk-last": ({"v:1": 4}, {"v": [4, None], "z": [4, None]}),
    "slice": ({"v:1": 4}, {"v": [4, None], "z": [4, None]}),
    "pad": ({"v:1": 12}, {"v": [4, None], "z": [4, None]}),
    "split": ({"v:1": 4}, {"v": [4, None], "z": [4, None]}),
    "resize-scales": ({"r:2": 3, "r:3": 4}, {"r": [1, 2, None, None], "y": []}),
}
"""Estimates, and the shapes that stages write."""


@pytest.mark.parametrize("name", CASES)
def test_known_elements_decide_their_axes(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Only what a computed element decides is open; its estimate is the largest size, where there is one."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "computed-args" / f"{name}.onnx"
    estimates, shapes = CASES[name]
    model = mtpp.read(path, dims="auto")
    assert dict(model.dims) == estimates
    assert any("estimated" in text for text in model.assumptions())
    feeds = [random_feeds(path, seed) for seed in range(5)]
    ops = model.graph.op_names
    for cut in range(len(ops)):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        folder = assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))
        manifest = json.loads((folder / "manifest.json").read_text())
        for stage in manifest["stages"]:
            for tensor in [*stage["inputs"], *stage["outputs"]]:
                assert tensor["shape"] == shapes.get(tensor["name"], tensor["shape"])


def test_proposals_agree_with_declared_sizes(shared_data: Path, tmp_path: Path) -> None:
    """Slices by counts of a table's rows: tensors have the sizes that the file declares, and every cut runs."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "computed-args" / "dlrm-embeddingbag.onnx"
    model = mtpp.read(path, dims="auto")
    declared = {
        value.name: 4 * _count(value) for value in onnx.load(path).graph.value_info if value.name.startswith("getitem")
    }
    sizes = dict(zip(model.graph.tensor_names, model.graph.tensor_bytes, strict=True))
    assert declared
    assert {name: sizes[name] for name in declared} == declared
    feeds = [random_feeds(path, seed) for seed in range(3)]
    ops = model.graph.op_names
    for cut in range(0, len(ops), 5):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))


def _count(value: onnx.ValueInfoProto) -> int:
    count = 1
    for dim in value.type.tensor_type.shape.dim:
        count *= dim.dim_value
    return count
