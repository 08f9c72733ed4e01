"""Plans along a searched order of files whose own order is not topological: memory, times and bounds hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import plan_with

from mtpp.api.training.plan_results import SplitPlanResult
from mtpp.api.verify import verify


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
    assert verify(found, model).verdict == "ok"
