"""Cases of ``planner-irregular``: layers that list different sizes of micro-batches, planned to the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning import plan_with

import mtpp

CASES: dict[str, tuple[int, dict[str, Any]]] = {
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


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_found(shared_data: Path, name: str) -> None:
    """The iteration is that of brute force, ``optimal``, and nothing in the plan is false."""
    iteration, asked = CASES[name]
    _check(shared_data / name, iteration, asked)


def test_sizes_that_not_all_layers_list_are_tried_by_default(shared_data: Path) -> None:
    """Without sizes, on two devices: one sample at a time in two stages."""
    asked = {"devices": 2, "memory": "1MB", "bandwidth": "10GB/s", "batch_size": 2}
    _check(shared_data / "trust/planner_irregular_sizes.json", 6, asked)


def _check(path: Path, iteration: int, asked: dict[str, Any]) -> None:
    found = plan_with(path, planner="graphpipe", **asked)
    assert found.plan.iteration == iteration
    assert found.optimal
    assert [row.claim for row in mtpp.verify(found, path).rows if row.verdict == "false"] == []
