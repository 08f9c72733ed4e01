"""``mtpp plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import MODEL, OUTPUT_FOLDER
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.splits import split_options
from mtpp.cli.options.training import (
    graph_options,
    planner_option,
    rule_options,
    run_options,
    sweep_options,
    system_options,
)
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import TIME_UNITS

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("plan")
@click.argument("model", type=MODEL)
@planner_option()
@system_options()
@rule_options()
@graph_options()
@split_options()
@sweep_options()
@click.option(
    "--time-unit", metavar="UNIT", shell_complete=names_completion(TIME_UNITS),
    help="Of times in a file that names none: ps, ns, us, ms or s.",
)  # fmt: skip
@run_options()
@click.option("-o", "--output", type=OUTPUT_FOLDER, metavar="FILE", help="Write the plan as JSON, whole or not at all.")
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("plan")
@click.pass_context
def command(
    ctx: click.Context, /, model: str, output: str | None, output_format: str, console: Console, **options: Any
) -> None:
    """Plan how to train MODEL on K devices: pipeline stages with data and tensor parallelism and recomputation.

    The planners piper, equi and pipedream-2bw make least the time of the slowest stage of a line. graphpipe lets stages
    form any acyclic graph and makes least the time of an iteration of --batch-size samples. pfeife cuts an order of ops
    and finds a schedule with it: it makes least the time of an iteration of --micro-batches.

    MODEL is a file of layers with their configurations (see docs/formats.md), with pfeife also any graph or ONNX model;
    or - for standard input. Exit code 1: no plan fits; the least memory that would do is printed.
    """
    from mtpp.cli.planning import check_target, planner_of
    from mtpp.cli.terminal.delivery import deliver, deliver_folder
    from mtpp.host.stop_reason import StopReason

    if options["sums"] is not None and options["sweep"] is None:
        raise click.UsageError("--sums goes with --sweep", ctx)
    check_target(output, options)
    result = planner_of(options)(model, options, console)

    def shown() -> str:
        return result.written() if output_format == "json" else result.shown(output_format)

    if options["emit"] is None or output is None:
        deliver(output, result.written, shown)
    else:
        deliver_folder(output, None if result.problem else result.emitted, shown)
    if result.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    if result.problem is not None:
        console.complain(f"{result.display}: {result.problem}")
        ctx.exit(1)
