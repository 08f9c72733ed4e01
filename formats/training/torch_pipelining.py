"""Plans for PyTorch's pipelining: the passes of each rank as its runtime reads them, and the ops of each stage.

A folder holds three files. ``plan.json`` is the plan. ``schedule.csv`` has the passes of each device on a line, as
``_PipelineScheduleRuntime._load_csv("schedule.csv", format="compute_only")`` reads them (``torch/distributed/
pipelining/schedules.py``, tried with PyTorch 2.13). ``stages.json``, ``mtpp-training-stages`` version 1, says which ops
of which model each stage has, and which Python modules register operators of that (``imports``). PyTorch is not needed
to write them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtpp.errors import Deadlock, InputError
from mtpp.formats.io.json_text import dump_lines
from mtpp.formats.training.pass_schedule import write_schedule_csv
from mtpp.names import TORCH_PIPELINING
from mtpp.training.graph_plan import GraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.pfeife.plan import SplitPlan
from mtpp.training.pfeife.precedence import precedence_order
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule
from mtpp.training.stage_graph import StageGraph

NAME = "torch-pipelining"

FORMAT = "mtpp-training-stages"
VERSION = 1

PLAN, SCHEDULE, STAGES = "plan.json", "schedule.csv", "stages.json"
"""Names of the files."""

OURS = re.compile("|".join(map(re.escape, (PLAN, SCHEDULE, STAGES))))
"""Matches them."""


def check_runnable(problem: SplitProblem) -> None:
    """Check that PyTorch's runtime can run plans for a problem as they are planned."""
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


def check_graph_runnable(problem: GraphProblem) -> None:
    """Check that PyTorch's runtime can run stage graphs that are planned for a problem."""
    if problem.rules.data_parallel:
        raise InputError(
            "PyTorch's runtime runs a stage in one process, without replicas",
            parameter="data_parallel",
            remedy="plan with ‹data_parallel› for ‹form› torch-pipelining",
        )
    if problem.rules.per_stage:
        raise InputError(
            "PyTorch's runtime has one size of micro-batches for all stages",
            parameter="per_stage_micro_batch",
            remedy="leave it out for ‹form› torch-pipelining",
        )


def torch_pipelining_files(
    plan: SplitPlan | GraphPlan, model: Mapping[str, Any], document: str, imports: Sequence[str] = ()
) -> dict[str, str]:
    """Return the text of each file by its name.

    Parameters
    ----------
    plan
        Split points with a schedule, or a stage graph; the stages of that go into a line, a process each, and tensors
        pass through those in between.
    model
        What the plan's document says of the model.
    document
        Its text.
    imports
        Python modules that register operators of the model.

    Raises
    ------
    InputError
        As :func:`check_runnable` and :func:`check_graph_runnable`, if PyTorch's buffers of all micro-batches do not
        fit, and if the passes of a stage graph wait for each other once its stages are in a line.
    """
    if isinstance(plan, SplitPlan):
        check_runnable(plan.problem)
        _check_buffers(plan)
        devices, schedule = plan.problem.devices, plan.schedule
        layers = [list(plan.layers(s)) for s in range(plan.stages)]
    else:
        check_graph_runnable(plan.problem)
        schedule = passes_in_line(plan.graph)
        devices, given = schedule.devices, plan.problem.model
        layers = [[given.layers[v].id for v in given.order if v in one.configurations] for one in plan.stages]
    stages = {
        "format": FORMAT,
        "version": VERSION,
        "model": {
            "kind": model.get("kind", "layers"),
            **{key: model[key] for key in ("name", "sha256")},
            **({"imports": list(imports)} if imports else {}),
        },
        "devices": devices,
        "micro_batches": schedule.micro_batches,
        "stages": [{"index": s, "device": s % devices, "ops": ops} for s, ops in enumerate(layers)],
    }
    return {PLAN: document, SCHEDULE: write_schedule_csv(schedule), STAGES: dump_lines(stages, ("stages",)) + "\n"}


def _check_buffers(plan: SplitPlan) -> None:
    """Raise InputError if devices lack the memory for the buffers that PyTorch's pipelining makes."""
    problem = plan.problem
    if problem.memory_bytes is None:
        return
    torch = replace(problem, rules=replace(problem.rules, buffers=TORCH_PIPELINING))
    for d, (need, limit) in enumerate(
        zip(torch.device_bytes(plan.schedule, plan.split), problem.memory_bytes, strict=True)
    ):
        if need > limit:
            raise InputError(
                f"PyTorch's runtime makes buffers for what all micro-batches hand over: device {d} would need {need:,} "
                f"of {limit:,} bytes",
                parameter="form",
                remedy="plan with ‹buffers› torch-pipelining",
            )


def passes_in_line(graph: StageGraph) -> PassSchedule:
    """Return the passes of a stage graph, a row for each stage, whose neighbours are those in a line."""
    kinds = {True: PassKind.FORWARD, False: PassKind.BACKWARD}
    rows = [
        [Pass(s, kinds[number > 0], abs(number) - 1) for number in stage.order.tolist()]
        for s, stage in enumerate(graph.stages)
    ]
    schedule = PassSchedule.build(rows, [])
    try:
        precedence_order(schedule)
    except Deadlock as error:
        raise InputError(
            f"PyTorch's runtime hands tensors from neighbour to neighbour; with the stages in a line {error.problem}",
            parameter="form",
            remedy="plan with ‹sequential›",
        ) from None
    return schedule
