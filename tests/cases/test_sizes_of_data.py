"""Sizes that only a run tells, of arguments, chosen rows and counts: open in stages, whatever was estimated of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from stage_equality import assert_cuts_equal, assert_onnx_stages_equal, random_feeds, read_manifest

import mtpp

OPEN: dict[str, tuple[dict[str, int] | None, dict[str, list[int | None]]]] = {
    "computed-args/topk-last": ({"v:1": 4}, {"v": [4, None], "z": [4, None]}),
    "computed-args/slice": ({"v:1": 4}, {"v": [4, None], "z": [4, None]}),
    "computed-args/pad": ({"v:1": 12}, {"v": [4, None], "z": [4, None]}),
    "computed-args/split": ({"v:1": 4}, {"v": [4, None], "z": [4, None]}),
    "computed-args/resize-scales": ({"r:2": 3, "r:3": 4}, {"r": [1, 2, None, None], "y": []}),
    "data-dependent/compress": (None, {"c": [None, 8], "cc": [None, 8], "z": [None, 8]}),
    "data-dependent/range": (None, {"rg": [None], "rows": [None, 8], "z": [None, 8]}),
}
"""Estimates, where they are known, and the shapes that stages write of tensors with open axes."""

COUNTS = ["model", "size", "constantofshape", "if", "loop"]


@pytest.mark.parametrize("name", OPEN)
def test_only_axes_that_data_decide_are_open(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Stages cut anywhere run for any number of rows; the manifest gives sizes of all other axes."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / f"{name}.onnx"
    estimates, shapes = OPEN[name]
    model = mtpp.read(path, dims="auto")
    if estimates is not None:
        assert dict(model.dims) == estimates
        assert any("estimated" in text for text in model.assumptions())
    feeds = [random_feeds(path, seed) for seed in range(5)]
    for folder in assert_cuts_equal(path, tmp_path, feeds, dims=dict(model.dims)):
        for stage in read_manifest(folder)["stages"]:
            for tensor in [*stage["inputs"], *stage["outputs"]]:
                assert tensor["shape"] == shapes.get(tensor["name"], tensor["shape"])
                assert tensor["name"] in shapes or None not in tensor["shape"]


def test_kept_boxes_stay_open_across_every_cut(shared_data: Path, tmp_path: Path) -> None:
    """Stages cut anywhere run for any number of kept boxes, and write no size for it."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "nms-cut" / "model.onnx"
    assert dict(mtpp.read(path, dims="auto").dims) == {"sel:0": 8}
    for folder in assert_cuts_equal(path, tmp_path, [random_feeds(path, seed) for seed in range(5)], dims="auto"):
        for file in folder.glob("*.onnx"):
            for value in [*onnx.load(file).graph.input, *onnx.load(file).graph.output]:
                if value.name in ("sel", "idx", "ix", "bx", "z"):
                    assert not value.type.tensor_type.shape.dim[0].HasField("dim_value")


def test_proposals_agree_with_declared_sizes(shared_data: Path, tmp_path: Path) -> None:
    """Slices by counts of a table's rows: tensors have the sizes that the file declares, and every cut runs."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "computed-args" / "dlrm-embeddingbag.onnx"
    model = mtpp.read(path, dims="auto")
    declared = {
        value.name: 4 * int(np.prod([dim.dim_value for dim in value.type.tensor_type.shape.dim]))
        for value in onnx.load(path).graph.value_info
        if value.name.startswith("getitem")
    }
    sizes = dict(zip(model.graph.tensor_names, model.graph.tensor_bytes, strict=True))
    assert declared
    assert {name: sizes[name] for name in declared} == declared
    feeds = [random_feeds(path, seed) for seed in range(3)]
    assert_cuts_equal(path, tmp_path, feeds, range(0, model.graph.op_count, 5), dict(model.dims))


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_computed_at_run_time(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Stages compute the whole model's results for inputs with other counts than the plan's, wherever it is cut."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "count-of-data" / f"{name}.onnx"
    assert_cuts_equal(path, tmp_path, [random_feeds(path, seed) for seed in range(4)], dims="auto")


@pytest.mark.parametrize("name", COUNTS)
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
    feeds: list[dict[str, Any]] = [{"x": np.full((4, 8), scale, dtype=np.float32)} for scale in (0, 1, -1, 5)]
    assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims={"c:0": 1})
