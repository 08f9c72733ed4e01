"""Initializers that are the defaults of inputs: stages can be given other values, as the whole model can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stage_equality import assert_partitions_equal, onnx_session, random_feeds

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
