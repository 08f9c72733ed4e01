"""Programs of which most parameters are frozen: passes, memory, profiles and runs know what is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import plan_with

import mtpp

ASKED = {"planner": "pfeife", "devices": 2, "micro_batches": 4, "schedule": "1f1b"}


@pytest.mark.parametrize(("name", "ticks"), [("backbone", 369_280), ("lora", 2_334_080)])
def test_iteration_is_that_of_the_gradients_that_training_needs(name: str, ticks: int, shared_data: Path) -> None:
    """Nothing trained before an op: no gradient of what it reads; frozen: none of its parameters; `verify` agrees."""
    model = shared_data / "cases" / "frozen-weights" / f"{name}.pt2"
    plan = plan_with(model, **ASKED)
    assert plan.iteration_ticks == ticks
    assert mtpp.verify(plan, model).passed
    if name == "backbone":
        assert plan.stages[0].backward_ticks == 0


def test_states_are_of_what_is_trained(shared_data: Path) -> None:
    """Frozen weights are held once, adapters with gradients and moments: 60 KiB is enough; `--state` is for these."""
    model = shared_data / "cases" / "frozen-weights" / "lora.pt2"
    plan = plan_with(model, memory="60KiB", **ASKED)
    assert mtpp.verify(plan, model).passed
    frozen, adapters, kept, crossing = 3 * 6400, 6 * 320, 3 * (4 * 640 + 32), 640
    assert plan.devices[0].peak_bytes == frozen + 4 * adapters + 2 * (kept + crossing)
    larger = plan_with(model, state=8, **ASKED)
    assert (larger.devices[0].peak_bytes or 0) - (plan.devices[0].peak_bytes or 0) == 4 * adapters


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["1f1b", "zero-bubble"])
@pytest.mark.parametrize(("name", "trained"), [("backbone", 2), ("lora", 12)])
def test_runs_train_as_the_unsplit_model_does(
    name: str, trained: int, schedule: str, shared_data: Path, tmp_path: Path
) -> None:
    """What is planned and verified is run: halves of backward passes lose no gradient behind frozen layers."""
    pytest.importorskip("torch")
    model = shared_data / "cases" / "frozen-weights" / f"{name}.pt2"
    plan = plan_with(model, **ASKED | {"schedule": schedule})
    plan.emit("torch-pipelining", tmp_path / "plan")
    run = mtpp.run_training(tmp_path / "plan", model, steps=2).document()
    assert run["agrees"]
    assert run["gradients"]["exact"] == run["gradients"]["count"] == trained


@pytest.mark.parametrize("name", ["backbone", "lora"])
def test_profiles_measure_the_same_backward_passes(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Ops without a backward pass are measured as 0, and a plan of measured costs verifies."""
    pytest.importorskip("torch")
    model = shared_data / "cases" / "frozen-weights" / f"{name}.pt2"
    profile = mtpp.profile(model, backward=True, repeats=2, warmup=0)
    graph = mtpp.read(model).graph
    measured = profile.graph.backward
    for share, took in zip(graph.backward_share, measured, strict=True):
        assert bool(share) >= bool(took)
    profile.save(tmp_path / "costs.json")
    plan = plan_with(model, costs=tmp_path / "costs.json", **ASKED)
    assert mtpp.verify(plan, model, costs=tmp_path / "costs.json").passed
