"""Names of schedules: a plan that names one has its passes, whatever else is true of it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from planning import line_of_ops, plan_with
from plans_beside_models import model_file, written

from mtpp import names
from mtpp.api.training.plan_results import SplitPlanResult
from mtpp.checker.training.pfeife.schedule import NAMES, Rows, fault_of_name, named_rows, stated_rows
from mtpp.checker.training.plan import verify_training_plan
from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.training.pfeife import named
from mtpp.training.pfeife.schedule import LETTERS, PassSchedule

LOOPS = {"gpipe": 1, "1f1b": 1, "interleaved": 2, "bfs": 2, "zero-bubble": 1}


CHAIN = line_of_ops(8, "ps", 1, work=10)


def planned(schedule: Any, **asked: Any) -> dict[str, Any]:
    """Return the plan of a chain on 2 devices, with 4 micro-batches."""
    found = plan_with(CHAIN, planner="pfeife", devices=2, micro_batches=4, schedule=schedule, **asked)
    assert isinstance(found, SplitPlanResult)
    return parse_json(found.to_json().encode(), "plan")  # type: ignore[no-any-return]


def failures(plan: Any) -> list[str]:
    """Return the names of what is false, or not checked."""
    report = verify_training_plan(plan, parse_json(json.dumps(CHAIN).encode(), "model"), None)
    return [check.name for check in report.checks if check.passed is not True and not check.fact]


def test_the_names_are_those_of_the_program() -> None:
    """Verifier and planner know the same names."""
    assert NAMES == names.SCHEDULES


@pytest.mark.parametrize("name", NAMES)
def test_passes_are_those_of_the_program(name: str) -> None:
    """For any sizes, what a name stands for was written down twice, and is the same."""
    for devices in range(1, 5):
        for micro_batches in range(1, 10):
            for loops in range(1, 4):
                mine = named_rows(name, devices, micro_batches, loops)
                try:
                    theirs = named.named_schedule(name, devices, micro_batches, loops)
                except InputError:
                    assert isinstance(mine, str)
                    continue
                assert isinstance(mine, Rows)
                assert mine.rows == [
                    [(one.stage, LETTERS[one.kind], one.micro_batch) for one in row] for row in theirs.rows
                ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("called", [*NAMES, "mine.json", None])
def test_a_plan_has_the_passes_of_its_schedule(name: str, called: str | None) -> None:
    """A plan under one schedule is false under the name of another, wherever the name stands."""
    plan = planned(name, loops=[LOOPS[name]])
    assert failures(plan) == []
    for places in ([("schedule", "name")], [("rules", "schedule")], [("schedule", "name"), ("rules", "schedule")]):
        wrong = copy.deepcopy(plan)
        for owner, key in places:
            wrong[owner][key] = called
        rows = stated_rows(plan["schedule"])
        same = called is not None and fault_of_name(called, rows, 4) is None and len(places) == 2
        assert (failures(wrong) == []) == (called == name or same)


def test_a_file_called_like_a_schedule_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a schedule made in Python: both plans verify, under names that promise nothing."""
    other = named.named_schedule("1f1b", 2, 4, 1)
    document = {"format": "mtpp-pass-schedule", "version": 1, "order": [[p.name for p in row] for row in other.rows]}
    (tmp_path / "gpipe").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    for given, called in (
        ("./gpipe", "./gpipe"),
        (PassSchedule.build(other.rows, name="gpipe"), "given"),
        (PassSchedule.build(other.rows, name="1f1b"), "1f1b"),
    ):
        plan = planned(given)
        assert (plan["schedule"]["name"], plan["rules"]["schedule"]) == (called, called)
        assert failures(plan) == []


def test_the_plan_of_least_memory_has_the_schedule_that_was_asked_for(tmp_path: Path) -> None:
    """Where nothing fits, the plan that needs least is one under the named schedule too."""
    model = model_file(tmp_path, CHAIN)
    asked = ("--devices", "2", "--micro-batches", "4", "--memory", "1B", "--schedule", "gpipe")
    plan = written(tmp_path, "plan", model, "--planner", "pfeife", *asked)
    plan["model"]["sha256"] = None
    assert (plan["feasible"], plan["rules"]["schedule"]) == (False, "gpipe")
    assert plan["least_memory_plan"] is not None
    assert "least memory" not in failures(plan)
    plan["rules"]["schedule"] = "1f1b"
    assert "least memory" in failures(plan)
