"""Stages compute what the whole model does: random models and partitions, compared bit for bit."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

pytest.importorskip("onnxruntime")

from random_onnx_models import random_labels, random_model, read_model, split_into

from mtpp.formats.results.stage_manifest import read_manifest
from mtpp.runtime.checking.split_check import check_split


@pytest.mark.parametrize("seed", range(40))
def test_split_and_whole_are_the_same_bit_for_bit(seed: int, tmp_path: Path) -> None:
    """Whatever the model holds and wherever it is cut, the results stay the same to the last bit."""
    path = tmp_path / "model.onnx"
    model = random_model(seed)
    reading = read_model(model, path, {"rows": 2})
    labels = random_labels(reading.graph, 4, seed)
    manifest, _ = split_into(tmp_path / "stages", path, reading, labels)
    assert read_manifest(tmp_path / "stages") == manifest
    assert [stage.index for stage in manifest.stages] == sorted(set(labels))
    assert [stage.ops for stage in manifest.stages] == [labels.count(i) for i in sorted(set(labels))]
    for stage in manifest.stages:
        onnx.checker.check_model(tmp_path / "stages" / stage.file, full_check=True)
    found = check_split(path.read_bytes(), tmp_path, manifest, tmp_path / "stages", display="model.onnx", seed=seed)
    assert [output.name for output in found.outputs] == [value.name for value in model.graph.output]
    assert all(output.identical and output.finite for output in found.outputs)
    assert {entry.name for entry in tmp_path.iterdir()} == {"model.onnx", "stages"}
