"""``mtpp plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.api.options.kinds import Choice
from mtpp.api.options.machine import Devices
from mtpp.api.options.option import Option
from mtpp.api.options.planning import Planning
from mtpp.api.options.reading import Formats
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import fields, made, options
from mtpp.cli.options.shared import memory_limit_option, output_options, output_path
from mtpp.cli.options.training import knapsack_option, planner_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import PLANNERS

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


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
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("plan")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    output: str | None,
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
    from mtpp.cli.planning import Asked, check_target
    from mtpp.cli.terminal.delivery import deliver, deliver_folder
    from mtpp.host.stop_reason import StopReason

    plan = Asked(**asked)
    if plan.swept.sums is not None and plan.swept.devices is None:
        raise click.UsageError("--sums goes with --sweep", ctx)
    check_target(output, plan.emitted)
    planned = plan.planned(model, console)
    if planned.emitted is None or output is None:
        deliver(output, planned.result, output_format)
    else:
        deliver_folder(output, None if planned.problem else planned.emitted, planned.result, output_format)
    if planned.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    if planned.problem is not None:
        console.complain(f"{planned.display}: {planned.problem}")
        ctx.exit(1)
