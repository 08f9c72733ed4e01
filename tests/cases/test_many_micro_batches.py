"""Memory under 1F1B does not grow with the number of micro-batches."""

from __future__ import annotations

from pathlib import Path

from planning import plan_with

import mtpp

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
