"""``mtpp plan``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import MODEL, OUTPUT
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.training import (
    DEFAULT,
    planner_option,
    rule_options,
    run_options,
    sweep_options,
    system_options,
    training_request,
)
from mtpp.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mtpp.api.training.task import TrainingPlanRequest
    from mtpp.cli.terminal.console import Console
    from mtpp.views.training.training_results import Swept, TrainingTask

INTERRUPTED = 130


@click.command("plan")
@click.argument("model", type=MODEL)
@planner_option()
@system_options()
@rule_options()
@sweep_options()
@click.option("--time-unit", metavar="UNIT", help="Of times in a file that names none: ps, ns, us, ms or s.")
@run_options()
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the plan as JSON, whole or not at all.")
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(ctx: click.Context, /, model: str, output: str | None, output_format: str, **options: Any) -> None:
    """Plan how to train MODEL on K devices: pipeline stages with data and tensor parallelism and recomputation.

    MODEL is a file of layers with their configurations (see docs/formats.md), or - for standard input. Exit code 1:
    no plan fits; the least memory that would do is printed.
    """
    from mtpp.api.inputs.reading_in_time import reading
    from mtpp.api.output import check_output
    from mtpp.api.plan_training import plan_task
    from mtpp.api.training.task import read_training_task
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.host.stop_reason import StopReason
    from mtpp.views.training.training_plan import plan_json, training_plan_text
    from mtpp.views.training.training_sweep import sweep_json, sweep_text
    from mtpp.views.training.training_texts import no_plan_text

    if options["sums"] is not None and options["sweep"] is None:
        raise click.UsageError("--sums goes with --sweep", ctx)
    if output not in (None, "-"):
        check_output(output)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    with reading(model, deadline_from_start(options["time_limit"])):
        request = training_request(model, options)
        task = read_training_task(request, console)
    if options["sweep"] is not None:
        swept = _sweep(task, request, options, console)
        stopped, problem = swept.stopped, swept.problem
        written, shown = partial(sweep_json, swept), partial(sweep_text, swept)
    else:
        planned = plan_task(task, request, console)
        stopped, none = planned.stopped, planned.no_plan
        problem = None if none is None else no_plan_text(none)
        written, shown = partial(plan_json, planned), partial(training_plan_text, planned)
    deliver(output, written, lambda: written() if output_format == "json" else shown(output_format))
    if stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    if problem is not None:
        console.complain(f"{task.source.display}: {problem}")
        ctx.exit(1)


def _sweep(task: TrainingTask, request: TrainingPlanRequest, options: Mapping[str, Any], console: Console) -> Swept:
    from mtpp.api.sweep_training import refuse_unswept, sweep_axes, sweep_task

    refuse_unswept(task)
    try:
        axes = sweep_axes(task.flat, None if options["sweep"] == DEFAULT else options["sweep"], options["sums"])
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
    return sweep_task(task, *axes, request, console)
