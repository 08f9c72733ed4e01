"""Tables of split points: no number is cut, at any width."""

from __future__ import annotations

import pytest
from rich.console import Console

import mtpp
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.views.training.split_plan import split_plan_text


@pytest.mark.parametrize("width", [48, 60, 72, 80, 120, 200])
def test_numbers_are_whole_at_every_width(width: int) -> None:
    """Columns are left out, and named, before a number loses its end; both tables keep what they are about."""
    model = multi_branch_model("mmt", branches=2, layers=3)
    sizes = {"devices": 3, "micro_batches": 12, "memory": "16GiB"}
    plan = mtpp.plan_training(model, planner="pfeife", **sizes)  # type: ignore[call-overload]
    text = split_plan_text(plan.planned, "table", Console(width=width, no_color=True, force_terminal=False))
    _, stages, devices, figures = text.split("\n\n")[-4:] if text.count("\n\n") > 2 else ("", *text.split("\n\n"))
    assert all("…" not in cell for line in devices.splitlines() for cell in line.split())
    for line in stages.splitlines()[2:]:
        assert "…" not in line.split()[-1]
    assert {"busy", "memory"} <= set(devices.splitlines()[0].split())
    shown = set(devices.splitlines()[0].split()) | set(stages.splitlines()[-1 - len(plan.stages)].split())
    assert figures.count("not shown") <= 1
    if "idle" not in shown:
        assert "too narrow" in " ".join(figures.split())
