"""Tables of split points: no number is cut, at any width."""

from __future__ import annotations

import pytest
from planning import plan_with
from rich.console import Console

import mtpp
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.views.terminal import Medium
from mtpp.views.training.split_plan import split_plan_text


@pytest.mark.parametrize("width", [48, 60, 72, 80, 120, 200])
def test_numbers_are_whole_at_every_width(width: int) -> None:
    """Columns are left out, and named, before a number loses its end; both tables keep what they are about."""
    model = multi_branch_model("mmt", branches=2, layers=3)
    sizes = {"devices": 3, "micro_batches": 12, "memory": "16GiB"}
    plan = plan_with(model, planner="pfeife", **sizes)
    text = split_plan_text(plan.planned, Medium("table", Console(width=width, no_color=True, force_terminal=False)))
    _, stages, devices, figures = text.split("\n\n")[-4:] if text.count("\n\n") > 2 else ("", *text.split("\n\n"))
    assert all("…" not in cell for line in devices.splitlines() for cell in line.split())
    for line in stages.splitlines()[2:]:
        assert "…" not in line.split()[-1]
    assert {"busy", "memory"} <= set(devices.splitlines()[0].split())
    shown = set(devices.splitlines()[0].split()) | set(stages.splitlines()[-1 - len(plan.stages)].split())
    assert figures.count("not shown") <= 1
    if "idle" not in shown:
        assert "too narrow" in " ".join(figures.split())


def test_claims_name_the_plans_that_they_are_of() -> None:
    """A plan that nothing of its class beats says which class that is: a schedule of halves may beat it."""
    ops = [{"name": f"v{v}", "work": 10} for v in range(8)]
    tensors = [
        {"name": f"t{v}", "producer": f"v{v}", "consumers": [f"v{v + 1}"], "transfer": 0, "bytes": 1} for v in range(7)
    ]
    model = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": ops, "tensors": tensors}
    asked = {"devices": 4, "micro_batches": 1, "loops": [1]}
    whole = plan_with(model, planner="pfeife", **asked)
    halves = plan_with(model, planner="pfeife", schedule="zero-bubble", **asked)
    assert whole.optimal
    assert halves.iteration_ticks < whole.iteration_ticks
    over_all = next(line for line in repr(whole).splitlines() if line.startswith("over all"))
    assert "no split under looped schedules with whole backward passes, 1 loop, any prefetch, is faster" in over_all
    given = next(line for line in repr(halves).splitlines() if line.startswith("over all"))
    assert "split under this schedule, the only one allowed" in given
    assert "looped schedules asked for, with whole backward passes" in mtpp.verify(whole, model).sentence


def test_bounds_along_an_order_say_so() -> None:
    """A bound by paths holds along one order of ops: the file's, or the one that was searched."""
    rows = [("a", 9), ("b", 1), ("c", 1), ("d", 9)]
    ops = [{"name": name, "work": work} for name, work in rows]
    tensors = [
        {"name": f"t{u}{v}", "producer": u, "consumers": [v], "transfer": 3, "bytes": 1} for u, v in ("ac", "bd")
    ]
    model = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": ops, "tensors": tensors}
    for order, said in (("file", ", along the file's order"), ("search", ", along this order of ops")):
        asked = {"devices": 2, "micro_batches": 2, "loops": [1], "order": order}
        found = plan_with(model, planner="pfeife", **asked)
        rows_of = {line.split()[0]: line for line in repr(found).splitlines() if line}
        methods = [found.document()[key]["method"] for key in ("lower_bound", "family_bound")]
        assert "paths" in methods
        assert said in rows_of["ratio"] or methods[0] == "loads"
        assert said in mtpp.verify(found, model).sentence or methods[1] == "loads"
