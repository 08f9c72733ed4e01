"""Shapes that lie beside the model are read from there; without the file, tensor and file are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from stage_equality import assert_equal, random_feeds, run_onnx, run_onnx_stages

import mtpp


def test_arguments_are_read_from_the_data_file(shared_data: Path, tmp_path: Path) -> None:
    """Sizes are known, and stages run, though ONNX Runtime does not load the whole as it lies there."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "external-shapes" / "reshape.onnx"
    graph = mtpp.read(model).graph
    assert graph.metadata["outputs"][0]["shape"] == [2]
    whole = tmp_path / "whole.onnx"
    onnx.save(onnx.load(model), whole)
    for k in (1, 2, 3):
        mtpp.split(model, mtpp.partition(model, k), tmp_path / f"k{k}")
        for seed in range(3):
            feeds = random_feeds(whole, seed)
            assert_equal(run_onnx_stages(tmp_path / f"k{k}", feeds), run_onnx(whole, feeds))


def test_the_model_is_checked_run_and_measured(shared_data: Path, tmp_path: Path) -> None:
    """ONNX Runtime, which takes no shape from another file, is handed the small tensors with the model."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "external-shapes" / "reshape.onnx"
    assert mtpp.split(model, mtpp.partition(model, 2), tmp_path / "stages", check=True).passed
    assert mtpp.run_pipeline(tmp_path / "stages", model=model, batches=2, warmup=0).agrees
    graph = mtpp.profile(model, warmup=0, repeats=1).graph
    assert graph.op_count == mtpp.read(model).graph.op_count


def test_without_the_file_tensor_and_file_are_named(shared_data: Path, tmp_path: Path) -> None:
    """A model that was passed on without its data says which tensor it needs of which file."""
    model = tmp_path / "reshape.onnx"
    shutil.copy(shared_data / "cases" / "external-shapes" / "reshape.onnx", model)
    with pytest.raises(mtpp.InputError, match=r"size of 'h' depends on 't', which lies in 'reshape\.data'"):
        mtpp.read(model)
    with pytest.raises(mtpp.InputError, match=r"depends on 't', which lies in 'reshape\.data'"):
        mtpp.read(model, dims="auto")
    assert np.dtype(np.float32).itemsize == 4
