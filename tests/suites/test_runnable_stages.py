"""Stages that pass the check run as a pipeline: a sample of the cases that showed faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from runnable_stages import run_faults

pytest.importorskip("onnxruntime")

MODELS = [
    "nms-cut/model", "overridable/topk", "results-listed/twice", "computed-args/split", "optional-cut/if",
    "no-shape-rule/scaler-regressor", "function-attrs/given", "window-sizes/max-gap", "constant-sizes/compress",
    "growing-state/cond",
]  # fmt: skip
PROGRAMS = [
    "data-dependent-torch/m",
    "kwargs-dict/out-onlyinput",
    "results-listed/twice",
    "unused-outputs/batch-counter",
]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_models_that_pass_the_check_run(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Each plan for one, two and three stages runs and gives the outputs of the whole model."""
    found = list(run_faults(shared_data / "cases" / f"{name}.onnx", tmp_path))
    assert set(found) <= {"runs", "refused"}
    assert found.count("runs") >= 4


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.slow
def test_programs_that_pass_the_check_run(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Each plan for one and two stages runs and gives the outputs of the whole program."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    found = list(run_faults(shared_data / "cases" / f"{name}.pt2", tmp_path, ks=(1, 2)))
    assert set(found) <= {"runs", "refused"}
    assert found.count("runs") >= 3
