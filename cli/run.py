"""``mtpp run``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import FOLDER_OF_STAGES, MODEL, OUTPUT
from mtpp.cli.options.running import common_options, inference_options, refuse_idle, training_options
from mtpp.cli.options.shared import output_options
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

_ASKED = ("batches", "warmup", "queue_depth", "threads", "optimise", "pin", "seed")
"""Options that are terms of the run."""


@click.command("run")
@click.argument("folder", type=FOLDER_OF_STAGES)
@click.option("--model", type=MODEL, metavar="FILE", help="The unsplit model, to compare with.")
@training_options()
@inference_options()
@common_options()
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE", help="Write what was measured as JSON, whole or not at all."
)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(ctx: click.Context, /, output: str | None, output_format: str, console: Console, **options: Any) -> None:
    """Run the stages in FOLDER, which `mtpp split` wrote, as a pipeline: a process for each stage.

    Measured first, with nothing else running: the unsplit model, or all stages in turn in one process. Inputs are
    random, and so are weights whose files are absent. Outputs of the pipeline are compared with those of the stages in
    turn. Ctrl-C ends the run with the table of what is done.

    With --engine torch FOLDER holds a training plan: its stages are trained, a process for each device, and losses,
    gradients and buffers are compared with those of --model.
    """
    from mtpp.api.inputs.given_arrays import given_arrays
    from mtpp.api.output import check_output
    from mtpp.api.run_pipeline import RunRequest, run_stages
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.console import TalkativeConsole
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.cli.training_run import trained
    from mtpp.host.stop_reason import StopReason

    refuse_idle(ctx, options["engine"])
    if output not in (None, "-"):
        check_output(output)
    # Nothing that moves: drawing it would take time from what is being measured.
    talkative = sys.stderr is not None and sys.stderr.isatty()
    console = TalkativeConsole(quiet=console.quiet, verbose=console.verbose) if talkative else console
    deadline = deadline_from_start(options["time_limit"])
    if options["engine"] is not None:
        trained(ctx, options, deadline, console, output, output_format)
        return
    model = None if options["model"] is None else Path(options["model"])
    inputs = given_arrays(options["inputs"])
    request = RunRequest(Path(options["folder"]), model, inputs=inputs, **{name: options[name] for name in _ASKED})
    run = run_stages(request, deadline, console)
    deliver(output, run.told(flag_of), output_format)
    if not run.agrees:
        console.complain("the outputs are not those of the unsplit model")
        ctx.exit(1)
    if run.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
