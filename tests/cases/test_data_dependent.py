"""A cut behind rows that data choose: their axis stays open in the stage files, other axes keep their sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp

CASES = {
    "compress": {"c": [None, 8], "cc": [None, 8], "z": [None, 8]},
    "range": {"rg": [None], "rows": [None, 8], "z": [None, 8]},
}


@pytest.mark.parametrize("name", CASES)
def test_chosen_rows_stay_open(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Stages cut anywhere run for any number of rows; the manifest gives no size for them."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "data-dependent" / f"{name}.onnx"
    model = mtpp.read(path, dims="auto")
    feeds = [random_feeds(path, seed) for seed in range(5)]
    ops = model.graph.op_names
    for cut in range(len(ops)):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        folder = assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))
        manifest = json.loads((folder / "manifest.json").read_text())
        for stage in manifest["stages"]:
            for tensor in [*stage["inputs"], *stage["outputs"]]:
                assert tensor["shape"] == CASES[name].get(tensor["name"], tensor["shape"])
                assert tensor["name"] in CASES[name] or None not in tensor["shape"]
