"""Plans for training, of stages in a line or in a graph, and sweeps, as ``mtpp plan`` prints them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mtpp.cli.flags import flag_of
from mtpp.cli.options.training import DEFAULT, graph_request_of, training_request
from mtpp.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mtpp.api.training.graph_task import GraphPlanRequest
    from mtpp.api.training.split_task import SplitPlanRequest
    from mtpp.api.training.task import TrainingPlanRequest
    from mtpp.cli.terminal.console import Console
    from mtpp.host.stop_reason import StopReason
    from mtpp.views.training.training_results import Swept, TrainingTask

Request = TypeVar("Request", "TrainingPlanRequest", "GraphPlanRequest", "SplitPlanRequest")


class PlanResult(NamedTuple):
    """What is printed of a plan or a sweep: its document, its table by format, and the fault of having none.

    *emitted* writes it into a folder for another program, where the planner can.
    """

    display: str
    stopped: StopReason
    problem: str | None
    written: Callable[[], str]
    shown: Callable[[str], str]
    emitted: Callable[[str], None] | None = None


def check_target(output: str | None, options: Mapping[str, Any]) -> None:
    """Check that the result can be written where it should be, before the work.

    Raises
    ------
    InputError
        If it cannot.
    click.UsageError
        If options do not go together.
    """
    from mtpp.api.output import check_output
    from mtpp.api.training.emit_plan import check_emitted

    if options["emit"] is None:
        if options["force"]:
            raise click.UsageError("--force goes with --emit")
        if output not in (None, "-"):
            check_output(output)
        return
    if output in (None, "-"):
        raise click.UsageError("--emit writes a folder: give -o FOLDER")
    check_emitted(options["emit"], output, force=options["force"])


def planned_split(model: str, options: Mapping[str, Any], console: Console) -> PlanResult:
    """Plan split points and a schedule."""
    from mtpp.api.inputs.reading_in_time import reading
    from mtpp.api.training.emit_plan import check_runnable, emit_plan
    from mtpp.api.training.split_planning import plan_split_task
    from mtpp.api.training.split_task import read_split_task
    from mtpp.cli.options.splits import split_request_of
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.views.training.split_plan import split_plan_json, split_plan_text
    from mtpp.views.training.split_plan_texts import no_split_plan_text

    with reading(model, deadline_from_start(options["time_limit"])):
        request = split_request_of(model, options)
        task = read_split_task(request, console)
    if options["emit"] is not None:
        check_runnable(task.problem, options["emit"])
    planned = plan_split_task(task, _with_time_to_write(request, options, task.problem.line.costs.ops), console)
    problem = None if planned.no_plan is None else no_split_plan_text(planned.no_plan)
    shown = partial(split_plan_text, planned)
    emitted = partial(emit_plan, planned, options["emit"], force=options["force"])
    written = partial(split_plan_json, planned)
    return PlanResult(task.source.display, planned.stopped, problem, written, shown, emitted)


def planner_of(options: Mapping[str, Any]) -> Callable[[str, Mapping[str, Any], Console], PlanResult]:
    """Return what plans with the planner asked for; options that mean nothing to it are refused."""
    from mtpp.api.training.parameters import PLAN_GRAPHS, PLAN_SPLITS
    from mtpp.cli.options.splits import refuse_split_options

    if options["planner"] in PLAN_SPLITS:
        return planned_split
    graphs = options["planner"] in PLAN_GRAPHS
    refuse_split_options({**options, "emit": None} if graphs else options)
    return planned_graph if graphs else planned_line


def planned_graph(model: str, options: Mapping[str, Any], console: Console) -> PlanResult:
    """Plan a stage graph."""
    from mtpp.api.inputs.reading_in_time import reading
    from mtpp.api.training.emit_plan import check_runnable, emit_plan
    from mtpp.api.training.graph_task import plan_graph_task, read_graph_task
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.views.training.graph_plan import graph_plan_json, graph_plan_text
    from mtpp.views.training.graph_plan_texts import no_graph_plan_text

    with reading(model, deadline_from_start(options["time_limit"])):
        request = graph_request_of(model, options)
        task = read_graph_task(request, console)
    if options["emit"] is not None:
        check_runnable(task.problem, options["emit"])
    planned = plan_graph_task(task, _with_time_to_write(request, options, len(task.problem.model.layers)), console)
    problem = None if planned.no_plan is None else no_graph_plan_text(planned.no_plan)
    shown = partial(graph_plan_text, planned)
    emitted = partial(emit_plan, planned, options["emit"], force=options["force"])
    return PlanResult(task.source.display, planned.stopped, problem, partial(graph_plan_json, planned), shown, emitted)


def planned_line(model: str, options: Mapping[str, Any], console: Console) -> PlanResult:
    """Plan a line of stages, or sweep."""
    from mtpp.api.inputs.reading_in_time import reading
    from mtpp.api.plan_training import plan_task
    from mtpp.api.training.task import read_training_task
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.views.training.training_plan import plan_json, training_plan_text
    from mtpp.views.training.training_sweep import sweep_json, sweep_text
    from mtpp.views.training.training_texts import no_plan_text

    with reading(model, deadline_from_start(options["time_limit"])):
        request = training_request(model, options)
        task = read_training_task(request, console)
    request = _with_time_to_write(request, options, len(task.flat.model.layers))
    display = task.source.display
    if options["sweep"] is not None:
        swept = _sweep(task, request, options, console)
        return PlanResult(display, swept.stopped, swept.problem, partial(sweep_json, swept), partial(sweep_text, swept))
    planned = plan_task(task, request, console)
    problem = None if planned.no_plan is None else no_plan_text(planned.no_plan)
    return PlanResult(
        display, planned.stopped, problem, partial(plan_json, planned), partial(training_plan_text, planned)
    )


def _with_time_to_write(request: Request, options: Mapping[str, Any], layers: int) -> Request:
    """Return a request whose search ends early enough for a result about so many layers or ops to be written."""
    from mtpp.cli.options.overheads import searching_s
    from mtpp.cli.terminal.clock import deadline_from_start

    return replace(request, deadline=deadline_from_start(searching_s(options["time_limit"], layers)))


def _sweep(task: TrainingTask, request: TrainingPlanRequest, options: Mapping[str, Any], console: Console) -> Swept:
    from mtpp.api.sweep_training import refuse_unswept, sweep_axes, sweep_task

    refuse_unswept(task)
    try:
        axes = sweep_axes(task.flat, None if options["sweep"] == DEFAULT else options["sweep"], options["sums"])
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
    return sweep_task(task, *axes, request, console)
