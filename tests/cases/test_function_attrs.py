"""Attributes of local functions: the value of the call, else the function's default, else absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_partitions_equal, random_feeds

NAMES = ["absent", "concat-axis-default", "default", "given", "ints-tensor-default", "perm-default"]


@pytest.mark.parametrize("name", NAMES)
def test_stages_take_defaults_as_the_whole_does(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Stages of a model with a function compute what ONNX Runtime does with the whole, whatever its attributes."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "function-attrs" / f"{name}.onnx"
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])
