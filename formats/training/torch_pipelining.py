"""Plans for PyTorch's pipelining: the passes of each rank as its runtime reads them, and the ops of each stage.

A folder holds three files. ``plan.json`` is the plan. ``schedule.csv`` has the passes of each device on a line, as
``_PipelineScheduleRuntime._load_csv("schedule.csv", format="compute_only")`` reads them (``torch/distributed/
pipelining/schedules.py``, tried with PyTorch 2.13). ``stages.json``, ``mtpp-training-stages`` version 1, says which ops
of which model each stage has. PyTorch is not needed to write them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_lines
from mtpp.formats.training.pass_schedule import write_schedule_csv
from mtpp.training.pfeife.plan import SplitPlan
from mtpp.training.pfeife.problem import SplitProblem

NAME = "torch-pipelining"

FORMAT = "mtpp-training-stages"
VERSION = 1

PLAN, SCHEDULE, STAGES = "plan.json", "schedule.csv", "stages.json"
"""Names of the files."""

OURS = re.compile("|".join(map(re.escape, (PLAN, SCHEDULE, STAGES))))
"""Matches them."""


def check_runnable(problem: SplitProblem) -> None:
    """Check that PyTorch's runtime can run plans for a problem as they are planned.

    Raises
    ------
    InputError
        If tensors do not go from neighbour to neighbour, or the schedule that was given has dependencies of its own, or
        a number of stages that is no multiple of that of the devices.
    """
    rules = problem.rules
    if rules.transport != "neighbours":
        raise InputError(
            "PyTorch's runtime hands tensors from neighbour to neighbour",
            parameter="transport",
            remedy="leave it out for ‹form› torch-pipelining",
        )
    if rules.schedule is None:
        return
    schedule = rules.schedule[1]
    if schedule.dependencies:
        raise InputError(
            "it has dependencies between passes, which PyTorch's runtime does not know",
            parameter="schedule",
            remedy="put them into the order of the passes",
        )
    if schedule.stages % schedule.devices:
        raise InputError(
            f"{schedule.stages:,} stages on {schedule.devices:,} devices: PyTorch's runtime wants equally many on each",
            parameter="schedule",
            remedy="use a multiple of the devices",
        )


def torch_pipelining_files(plan: SplitPlan, model: Mapping[str, Any], document: str) -> dict[str, str]:
    """Return the text of each file by its name.

    Parameters
    ----------
    model
        What the plan's document says of the model.
    document
        Its text.

    Raises
    ------
    InputError
        As :func:`check_runnable`.
    """
    check_runnable(plan.problem)
    stages = {
        "format": FORMAT,
        "version": VERSION,
        "model": {key: model[key] for key in ("kind", "name", "sha256")},
        "devices": plan.problem.devices,
        "micro_batches": plan.problem.micro_batches,
        "stages": [
            {"index": s, "device": s % plan.problem.devices, "ops": list(plan.layers(s))} for s in range(plan.stages)
        ],
    }
    return {
        PLAN: document,
        SCHEDULE: write_schedule_csv(plan.schedule),
        STAGES: dump_lines(stages, ("stages",)) + "\n",
    }
