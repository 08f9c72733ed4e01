"""Sizes that only a run tells go on as numbers: no stage may hold the plan's estimate of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp

NAMES = ["model", "size", "constantofshape", "if", "loop"]


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_computed_at_run_time(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Stages compute the whole model's results for inputs with other counts than the plan's, wherever it is cut."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "count-of-data" / f"{name}.onnx"
    model = mtpp.read(path, dims="auto")
    feeds = [random_feeds(path, seed) for seed in range(4)]
    ops = model.graph.op_names
    for cut in range(len(ops)):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))


@pytest.mark.parametrize("name", NAMES)
def test_no_estimate_is_written(name: str, shared_data: Path, tmp_path: Path) -> None:
    """At one stage the file holds no constant that the model does not hold itself."""
    path = shared_data / "cases" / "count-of-data" / f"{name}.onnx"
    model = mtpp.read(path, dims="auto")
    mtpp.split(path, dict.fromkeys(model.graph.op_names, 0), tmp_path / "stages", dims=dict(model.dims))
    own = {tensor.name for tensor in onnx.load(path).graph.initializer}
    stage = onnx.load(tmp_path / "stages" / "stage-0.onnx")
    assert {tensor.name for tensor in stage.graph.initializer} <= own


def test_estimates_are_said(shared_data: Path) -> None:
    """The assumptions name the size that was estimated, though nobody had to give it."""
    model = mtpp.read(shared_data / "cases" / "count-of-data" / "if.onnx")
    assert any("y:0 = 8" in text and "estimated" in text for text in model.assumptions())


def test_a_size_given_for_data_is_an_estimate(shared_data: Path, tmp_path: Path) -> None:
    """A size that a caller gives for an axis that depends on data decides costs, and nothing in a stage."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "count-of-data" / "model.onnx"
    few, many = (mtpp.read(path, dims={"c:0": rows}) for rows in (1, 4))
    assert sum(map(int, few.graph.work)) < sum(map(int, many.graph.work))
    plan = {op: int(index >= 5) for index, op in enumerate(few.graph.op_names)}
    feeds = [{"x": np.full((4, 8), scale, dtype=np.float32)} for scale in (0, 1, -1, 5)]
    assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims={"c:0": 1})
