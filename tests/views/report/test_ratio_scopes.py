"""Ratios at the top of pages of training plans: each says which schedules it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import plan_with

import mtpp

_MODEL = {
    "format": "mtpp-graph",
    "version": 1,
    "name": "two",
    "time_unit": "ns",
    "ops": [{"name": "a", "work": 5}, {"name": "b", "work": 7}],
    "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 1}],
}


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (None, "Ratio under looped schedules asked for, with whole backward passes"),
        ("zero-bubble", "Ratio under the schedule asked for"),
    ],
)
def test_the_ratio_over_schedules_names_them(tmp_path: Path, schedule: str | None, said: str) -> None:
    """A schedule of halves may be faster than a bound on schedules of whole backward passes."""
    plan = plan_with(_MODEL, planner="pfeife", devices=2, micro_batches=2, loops=[1], schedule=schedule, jobs=1)
    plan.save(tmp_path / "plan.json")
    page = mtpp.report(tmp_path / "plan.json", model=_MODEL).html
    assert f">{said}<" in page
