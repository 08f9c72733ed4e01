"""A loss of one number, and results of which one is a view, under zero-bubble schedules."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import plan_with

import mtpp


@pytest.mark.slow
@pytest.mark.parametrize("name", ["m", "two"])
def test_training_in_halves_is_that_of_the_unsplit_model(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Losses and gradients are the same bit for bit."""
    pytest.importorskip("torch")
    model = shared_data / "cases" / "zb-plain" / f"{name}.pt2"
    plan = plan_with(model, planner="pfeife", devices=2, micro_batches=4, schedule="zero-bubble")
    plan.emit("torch-pipelining", tmp_path / "plan")
    run = mtpp.run_training(tmp_path / "plan", model, steps=2).document()
    assert run["agrees"]
    assert run["gradients"]["exact"] == run["gradients"]["count"] == 12
