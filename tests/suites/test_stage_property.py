"""Stages of any plan, run one after the other, give the results of the whole: random models of what is hard to cut."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

from seeds import sampled
from stage_property import onnx_faults

KNOWN = {"refused", "not run"}
"""Plans by hand that a split refuses, and models that the runtime or the exporter refuses."""


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 30))])
def test_stages_of_random_onnx_models(seed: int, tmp_path: Path) -> None:
    """Twelve plans of up to four stages, five inputs each, in every other one overridable initializers overridden."""
    assert set(onnx_faults(seed, tmp_path)) <= KNOWN


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(5), 3))
def test_stages_of_random_programs(seed: int, tmp_path: Path) -> None:
    """The same of exported programs, whose buffers go on from input to input."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from program_property import program_faults

    assert set(program_faults(seed, tmp_path)) <= KNOWN
