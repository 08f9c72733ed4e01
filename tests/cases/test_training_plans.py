"""Plans for training on models that once showed faults: their optimum, their memory, and the training that they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning import plan_with

import mtpp
from mtpp.api.training.plan_results import GraphPlanResult, SplitPlanResult

IRREGULAR: dict[str, tuple[int, dict[str, Any]]] = {
    "cases/planner-irregular/default-sizes.json": (
        1_206,
        {
            "devices": 3,
            "memory": 2_000,
            "bandwidth": "1000GB/s",
            "batch_size": 4,
            "kfkb": (2,),
            "sequential": True,
            "recompute": False,
        },
    ),
    "cases/planner-irregular/refused.json": (
        71_767,
        {"devices": 3, "memory": 10**6, "bandwidth": "10GB/s", "batch_size": 8, "micro_batch_sizes": (2,)},
    ),
    "trust/planner_irregular_sizes.json": (
        6,
        {"devices": 3, "memory": "1MB", "bandwidth": "10GB/s", "batch_size": 2, "micro_batch_sizes": (2,)},
    ),
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_irregular_sizes_are_planned_to_the_optimum(shared_data: Path, name: str) -> None:
    """The iteration is that of brute force, ``optimal``, and nothing in the plan is false."""
    iteration, asked = IRREGULAR[name]
    _check_optimum(shared_data / name, iteration, asked)


def test_sizes_that_not_all_layers_list_are_tried_by_default(shared_data: Path) -> None:
    """Without sizes, on two devices: one sample at a time in two stages."""
    asked = {"devices": 2, "memory": "1MB", "bandwidth": "10GB/s", "batch_size": 2}
    _check_optimum(shared_data / "trust/planner_irregular_sizes.json", 6, asked)


def _check_optimum(path: Path, iteration: int, asked: dict[str, Any]) -> None:
    found = plan_with(path, planner="graphpipe", **asked)
    assert found.plan.iteration == iteration
    assert found.optimal
    assert [row.claim for row in mtpp.verify(found, path).rows if row.verdict == "false"] == []


@pytest.mark.parametrize(
    ("file", "devices", "micro_batches", "iteration"),
    [
        # a before b: stages of 15 ps and a hand-over of 1 each way, two micro-batches.
        ("trust/order_not_topological.json", 2, 2, 47),
        # The fastest of all orders, splits and schedules, by going through them.
        ("cases/planner-irregular/order-search.json", 3, 1, 69_240),
    ],
)
def test_orders_are_searched_whatever_the_file_says(
    shared_data: Path, file: str, devices: int, micro_batches: int, iteration: int
) -> None:
    """The plan is the fastest of all, needs no less than nothing of memory, and each of its claims holds."""
    model = shared_data / file
    found = plan_with(model, planner="pfeife", devices=devices, micro_batches=micro_batches, order="search")
    assert isinstance(found, SplitPlanResult)
    document = found.document()
    assert document["iteration_ticks"] == iteration
    assert document["family_bound"]["value"] <= iteration
    assert all(row["peak_bytes"] >= 0 for row in document["devices"])
    assert mtpp.verify(found, model).verdict == "ok"


MORE_FREEDOM: dict[str, dict[str, Any]] = {
    "plain": {},
    "sizes by stage": {"per_stage_micro_batch": True},
    "two orders": {"kfkb": (1, 2)},
}
LESS_FREEDOM: dict[str, dict[str, Any]] = {
    "one line": {"sequential": True},
    "no replicas": {"data_parallel": False},
    "fewest in flight": {"in_flight": "least"},
}

BRANCHES_MS = {"r0": 133.5, "r1": 153.5, "r2": 108.5, "frozen20": 330.0}
"""Iterations without a freedom more, from the brute force of the planner and of the verifier."""


@pytest.mark.parametrize("name", BRANCHES_MS)
def test_a_freedom_more_is_never_slower(shared_data: Path, name: str) -> None:
    """Sizes by stage and two orders of passes are no slower than neither, and what forbids plans is no faster."""
    path = shared_data / "cases/vlm-branches" / f"{name}.json"
    plain = _plan_of_branches(path)
    assert round(plain.iteration_s * 1e3, 1) == BRANCHES_MS[name]
    assert plain.optimal
    for given in MORE_FREEDOM.values():
        found = _plan_of_branches(path, **given)
        assert found.plan.iteration <= plain.plan.iteration
        assert [row.claim for row in mtpp.verify(found, path).rows if row.verdict == "false"] == []
    for given in LESS_FREEDOM.values():
        assert plain.plan.iteration <= _plan_of_branches(path, **given).plan.iteration


def _plan_of_branches(path: Path, **given: Any) -> GraphPlanResult:
    sizes = {} if path.stem == "frozen20" else {"micro_batch_size": 1}
    return plan_with(
        path, planner="graphpipe", devices=6, memory="1GiB", bandwidth="1GB/s", batch_size=8, **sizes, **given
    )


GIB = 2**30


def test_memory_is_that_of_micro_batches_in_flight(shared_data: Path) -> None:
    """Stage d of D keeps D − d micro-batches with their buffers, however many an iteration has; `verify` agrees."""
    model = shared_data / "cases" / "many-micro-batches" / "model.json"
    fixed, kept, crossing = 8 * 1_677_721_600, 8 * 104_857_600, 33_554_432
    due = [fixed + (4 - d) * (kept + (1 if d in (0, 3) else 2) * crossing) for d in range(4)]
    assert due[0] == int(15.75 * GIB)
    for count in (8, 512):
        plan = plan_with(
            model,
            planner="pfeife",
            devices=4,
            schedule="1f1b",
            micro_batches=count,
            memory="16GiB",
            bandwidth="100GB/s",
        )
        assert [one.peak_bytes for one in plan.devices] == due
        assert mtpp.verify(plan, model).passed


def test_two_devices_have_the_memory_for_512(shared_data: Path) -> None:
    """A plan is found within 40 GiB; PyTorch's engine, which makes buffers of all micro-batches, needs more."""
    model = shared_data / "cases" / "many-micro-batches" / "model.json"
    asked = {"planner": "pfeife", "devices": 2, "schedule": "1f1b", "micro_batches": 512, "bandwidth": "100GB/s"}
    plan = plan_with(model, memory="40GiB", **asked)
    assert plan.devices[0].peak_bytes == 16 * 1_677_721_600 + 2 * (16 * 104_857_600 + 33_554_432)
    unlimited = plan_with(model, buffers="torch-pipelining", **asked)
    assert unlimited.devices[0].peak_bytes == 16 * 1_677_721_600 + 2 * 16 * 104_857_600 + 512 * 33_554_432


TWO_DEVICES = {"planner": "pfeife", "devices": 2, "micro_batches": 4, "schedule": "1f1b"}


@pytest.mark.parametrize(("name", "ticks"), [("backbone", 369_280), ("lora", 2_334_080)])
def test_iteration_is_that_of_the_gradients_that_training_needs(name: str, ticks: int, shared_data: Path) -> None:
    """Nothing trained before an op: no gradient of what it reads; frozen: none of its parameters; `verify` agrees."""
    model = shared_data / "cases" / "frozen-weights" / f"{name}.pt2"
    plan = plan_with(model, **TWO_DEVICES)
    assert plan.iteration_ticks == ticks
    assert mtpp.verify(plan, model).passed
    if name == "backbone":
        assert plan.stages[0].backward_ticks == 0


def test_states_are_of_what_is_trained(shared_data: Path) -> None:
    """Frozen weights are held once, adapters with gradients and moments: 60 KiB is enough; `--state` is for these."""
    model = shared_data / "cases" / "frozen-weights" / "lora.pt2"
    plan = plan_with(model, memory="60KiB", **TWO_DEVICES)
    assert mtpp.verify(plan, model).passed
    frozen, adapters, kept, crossing = 3 * 6400, 6 * 320, 3 * (4 * 640 + 32), 640
    assert plan.devices[0].peak_bytes == frozen + 4 * adapters + 2 * (kept + crossing)
    larger = plan_with(model, state=8, **TWO_DEVICES)
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
    plan = plan_with(model, **TWO_DEVICES | {"schedule": schedule})
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
    plan = plan_with(model, costs=tmp_path / "costs.json", **TWO_DEVICES)
    assert mtpp.verify(plan, model, costs=tmp_path / "costs.json").passed


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
