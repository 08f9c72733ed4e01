"""Stages of ONNX models with overridable initializers, attributes of functions, optionals and shapes in other files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from stage_equality import assert_equal, assert_partitions_equal, onnx_session, random_feeds, run_onnx, run_onnx_stages

import mtpp

OTHERS: dict[str, list[dict[str, Any]]] = {
    "scale": [{"s": np.linspace(-1, 2, 8, dtype=np.float32)}],
    "topk": [{"k": np.array([1])}, {"k": np.array([8])}],
    "reshape": [{"s": np.array([2, 8])}, {"s": np.array([16, 1])}],
    "loop": [{"M": np.array(0)}, {"M": np.array(5)}],
}


@pytest.mark.parametrize("name", OTHERS)
def test_stages_take_other_values(name: str, shared_data: Path, tmp_path: Path) -> None:
    """By default and with other values, stages compute what ONNX Runtime does with the whole, sizes included."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "overridable" / f"{name}.onnx"
    feeds = [{**random_feeds(model, seed), **given} for seed, given in enumerate([{}, *OTHERS[name]])]
    assert_partitions_equal(model, tmp_path, feeds)


@pytest.mark.parametrize("name", OTHERS)
def test_costs_take_the_default(name: str, shared_data: Path) -> None:
    """The model is read, planned and checked as with its defaults."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "overridable" / f"{name}.onnx"
    assert mtpp.split(model, mtpp.partition(model, 2), check=True).passed
    if name == "loop":
        (control,) = mtpp.read(model).graph.metadata["control_flow"]
        assert control["trip_count"] == 2


def test_below_version_4_initializers_are_constants(shared_data: Path, tmp_path: Path) -> None:
    """Where every initializer had to be an input, none is a default: ONNX Runtime lists none in the stages either."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "overridable" / "ir3-weights.onnx"
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])
    for stage in tmp_path.glob("k*/*.onnx"):
        assert not onnx_session(stage).get_overridable_initializers()


NAMES = ["absent", "concat-axis-default", "default", "given", "ints-tensor-default", "perm-default"]


@pytest.mark.parametrize("name", NAMES)
def test_stages_take_defaults_as_the_whole_does(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Stages of a model with a function compute what ONNX Runtime does with the whole, whatever its attributes."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "function-attrs" / f"{name}.onnx"
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])


def test_no_optional_crosses_stages(shared_data: Path, tmp_path: Path) -> None:
    """The ops around an optional share a stage, the assumptions say so, and the results are those of the whole."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "optional-cut" / "if.onnx"
    feeds = [random_feeds(model, seed) for seed in range(5)]
    assert_partitions_equal(model, tmp_path, feeds, ks=(1, 2, 3, 4), dims="auto")
    plan = mtpp.partition(mtpp.read(model, dims="auto"), 2)
    assert any("optionals kept together" in text for text in plan.assumptions)


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
