"""``mtpp plan``: stages in a line or in a graph, splits with a schedule, and sweeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mtpp.api.options.graphpipe import GraphPipe
from mtpp.api.options.kinds import Choice
from mtpp.api.options.machine import Devices
from mtpp.api.options.option import Option
from mtpp.api.options.pfeife import Pfeife
from mtpp.api.options.planning import Planning
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Verifying
from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import fields, made, options
from mtpp.cli.options.shared import memory_limit_option, output_options, output_path
from mtpp.cli.options.training import Emitted, Swept, knapsack_option, planner_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.cli.terminal.page import Paged
from mtpp.errors import InputError
from mtpp.host.deadline import deadline_from_start
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import PLANNERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mtpp.api.observer import Observer
    from mtpp.api.output import ShownResult
    from mtpp.api.training.graph_task import GraphTask
    from mtpp.api.training.split_task import SplitTask
    from mtpp.cli.terminal.console import Console
    from mtpp.host.deadline import Deadline
    from mtpp.host.stop_reason import StopReason

Task = TypeVar("Task", "SplitTask", "GraphTask")


@click.command("plan")
@click.argument("model", type=MODEL)
@made(
    "planner",
    Option(
        PLANNERS[0], Choice(PLANNERS),
        "Any stages, the equal ones of two baselines, a graph of stages, or splits with a schedule.",
    ),
)  # fmt: skip
@options(Devices)
@planner_options()
@fields(Formats, "time_unit")
@knapsack_option()
@options(Planning)
@memory_limit_option()
@output_path("Write the plan as JSON, whole or not at all.", folder=True)
@options(Paged)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("plan")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    output: str | None,
    paged: Paged,
    output_format: str,
    console: Console,
    **asked: Any,
) -> None:
    """Plan how to train MODEL on K devices: pipeline stages with data and tensor parallelism and recomputation.

    The planners piper, equi and pipedream-2bw make least the time of the slowest stage of a line. graphpipe lets stages
    form any acyclic graph and makes least the time of an iteration of --batch-size samples. pfeife cuts an order of ops
    and finds a schedule with it: it makes least the time of an iteration of --micro-batches.

    MODEL is a file of layers with their configurations (see docs/formats.md), with pfeife also any graph or ONNX model;
    or - for standard input. Exit code 1: no plan fits; the least memory that would do is printed.
    """
    from mtpp.cli.terminal.delivery import deliver, deliver_folder
    from mtpp.host.stop_reason import StopReason

    plan = Asked(**asked)
    if plan.swept.sums is not None and plan.swept.devices is None:
        raise click.UsageError("--sums goes with --sweep", ctx)
    _check_target(output, plan.emitted)
    _check_page(paged, model, plan.swept)
    planned = plan.planned(model, console)
    if planned.emitted is None or output is None:
        deliver(output, planned.result, output_format)
    else:
        deliver_folder(output, None if planned.problem else planned.emitted, planned.result, output_format)
    if paged.report is not None:
        shallow = plan.planning.time_limit_s is not None or planned.stopped == StopReason.INTERRUPTED
        paged.deliver(planned.result, model, console, *plan.verified(shallow=shallow))
    if planned.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    if planned.problem is not None:
        console.complain(f"{planned.display}: {planned.problem}")
        ctx.exit(1)


class PlanResult(NamedTuple):
    """What is printed of a plan or a sweep: its result, and the fault of having none.

    *emitted* writes it into a folder for another program, where the planner can.
    """

    display: str
    stopped: StopReason
    problem: str | None
    result: ShownResult
    emitted: Callable[[str], None] | None = None


class Asked(NamedTuple):
    """A planner with its options, the devices, and what becomes of the plan."""

    planner: Any
    devices: Devices
    time_unit: str | None
    planning: Planning
    emitted: Emitted
    swept: Swept

    def planned(self, model: str, console: Console) -> PlanResult:
        """Plan, or sweep."""
        from mtpp.api.inputs.reading_in_time import reading

        kinds = {Pfeife: _planned_split, GraphPipe: _planned_graph}
        with reading(model, deadline_from_start(self.planning.time_limit_s)):
            plan = kinds.get(type(self.planner), _planned_line)(model, self, console)
        return plan()

    def verified(self, *, shallow: bool) -> tuple[Verifying, Formats]:
        """Return how the plan is verified, and how its model is read for that."""
        costs, dims, form = (getattr(self.planner, name, None) for name in ("costs", "dims", "from_format"))
        verifying = Verifying(shallow=shallow, costs=costs, dims=dims)
        return verifying, Formats(from_format=form, time_unit=self.time_unit)

    def deadline(self, ops: int) -> Deadline:
        """Return the end of a search that leaves time to write a result about so many layers or ops."""
        from mtpp.cli.options.overheads import searching_s

        return deadline_from_start(searching_s(self.planning.time_limit_s, ops))


def _check_target(output: str | None, emitted: Emitted) -> None:
    """Check that the result can be written where it should be, before the work.

    Raises
    ------
    InputError
        If it cannot.
    click.UsageError
        If options do not go together.
    """
    from mtpp.api.training.emit_plan import check_emitted
    from mtpp.cli.terminal.delivery import check_output

    if emitted.form is None:
        for name in ("force", "imports"):
            if getattr(emitted, name):
                raise click.UsageError(f"{flag_of(name)} goes with --emit")
        check_output(output)
        return
    if output in (None, "-"):
        raise click.UsageError("--emit writes a folder: give -o FOLDER")
    check_emitted(emitted.form, output, force=emitted.force)


def _check_page(paged: Paged, model: str, swept: Swept) -> None:
    """Check that a page can be made, before the work.

    Raises
    ------
    InputError
        If it cannot.
    click.UsageError
        If there is to be one of a sweep, or of a model that cannot be read again.
    """
    paged.check()
    if paged.report is not None and swept.devices is not None:
        raise click.UsageError("--report is a page of one plan: leave out --sweep")
    if paged.report is not None and model == "-":
        raise click.UsageError("--report reads the model again: give a file in place of standard input")


def _planned_split(model: str, asked: Asked, console: Console) -> Callable[[], PlanResult]:
    """Read a model for split points and a schedule, and return what plans them."""
    from mtpp.api.training.plan_results import SplitPlanResult
    from mtpp.api.training.split_task import SplitTerms, plan_split_task, read_split_task
    from mtpp.views.training.split_plan_texts import no_split_plan_text

    task = read_split_task(model, SplitTerms(asked.planner, asked.devices, asked.time_unit), console)
    size = task.problem.line.costs.ops
    return lambda: _emitted(task, size, asked, console, plan_split_task, SplitPlanResult, no_split_plan_text)


def _planned_graph(model: str, asked: Asked, console: Console) -> Callable[[], PlanResult]:
    """Read a model for a stage graph, and return what plans it."""
    from mtpp.api.training.graph_task import plan_graph_task, read_graph_task
    from mtpp.api.training.plan_results import GraphPlanResult
    from mtpp.views.training.training_texts import no_graph_plan_text

    task = read_graph_task(model, asked.planner, asked.devices, asked.time_unit, console)
    size = len(task.problem.model.layers)
    return lambda: _emitted(task, size, asked, console, plan_graph_task, GraphPlanResult, no_graph_plan_text)


def _emitted(
    task: Task,
    size: int,
    asked: Asked,
    console: Console,
    plan: Callable[[Task, Deadline, int | None, Observer], Any],
    result: Callable[[Any], ShownResult],
    no_plan_text: Callable[[Any], str],
) -> PlanResult:
    """Plan a model of *size* layers or ops; a plan can be written for another program, where that takes it."""
    from mtpp.api.training.emit_plan import check_runnable, emit_plan

    form, force, imports = asked.emitted.form, asked.emitted.force, asked.emitted.imports
    if form is not None:
        check_runnable(task.problem, form)
    planned = plan(task, asked.deadline(size), asked.planning.jobs, console)
    problem = None if planned.no_plan is None else no_plan_text(planned.no_plan)
    emitted = None if form is None else partial(emit_plan, planned, form, force=force, imports=imports)
    return PlanResult(task.source.display, planned.stopped, problem, result(planned), emitted)


def _planned_line(model: str, asked: Asked, console: Console) -> Callable[[], PlanResult]:
    """Read a model for a line of stages, and return what plans it, or sweeps."""
    from mtpp.api.plan_training import plan_task
    from mtpp.api.sweep_training import Sweep, refuse_unswept, sweep_axes, sweep_task
    from mtpp.api.training.plan_results import TrainingPlanResult
    from mtpp.api.training.task import read_training_task
    from mtpp.views.training.training_texts import no_plan_text

    task = read_training_task(model, asked.planner, asked.devices, asked.time_unit, console)

    def plan() -> PlanResult:
        deadline, display = asked.deadline(len(task.flat.model.layers)), task.source.display
        if asked.swept.devices is not None:
            refuse_unswept(task)
            devices, sums = asked.swept
            try:
                axes = sweep_axes(task.flat, None if isinstance(devices, str) else devices, sums)
            except InputError as error:
                raise click.UsageError(error.told(flag_of)) from None
            swept = sweep_task(task, *axes, deadline, asked.planning.jobs, console)
            return PlanResult(display, swept.stopped, swept.problem, Sweep(swept))
        planned = plan_task(task, deadline, asked.planning.jobs, console)
        problem = None if planned.no_plan is None else no_plan_text(planned.no_plan)
        return PlanResult(display, planned.stopped, problem, TrainingPlanResult(planned))

    return plan
