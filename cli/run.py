"""``mtpp run``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mtpp.api.options.kinds import Choice
from mtpp.api.options.option import options_of
from mtpp.api.options.path_kinds import OutputPath
from mtpp.api.options.running import Pipelining, Training, Workers
from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import FOLDER_OF_STAGES, MODEL
from mtpp.cli.options.made import options, single
from mtpp.cli.options.shared import memory_limit_option, output_options, output_path
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import TORCH
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("run")
@click.argument("folder", type=FOLDER_OF_STAGES)
@single("model", MODEL.kind, "The unsplit model, to compare with.", "FILE")
@single(
    "engine", Choice((TORCH,)),
    "Train the plan in FOLDER, which `mtpp plan --emit torch-pipelining` wrote, with PyTorch.",
)  # fmt: skip
@single(
    "write_machine", OutputPath(),
    "Write this machine, with the hand-overs measured, for --machine of other commands; over no other file.",
    "FILE.toml",
)  # fmt: skip
@options(
    Training,
    Pipelining,
    Workers,
    steps="Of training with --engine.",
    compare="Of training: leave out the unsplit model; nothing is compared, and programs may draw random numbers.",
)
@memory_limit_option()
@output_path("Write what was measured as JSON, whole or not at all.")
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    folder: str,
    model: str | None,
    engine: str | None,
    write_machine: str | None,
    training: Training,
    pipelining: Pipelining,
    workers: Workers,
    output: str | None,
    output_format: str,
    console: Console,
) -> None:
    """Run the stages in FOLDER, which `mtpp split` wrote, as a pipeline: a process for each stage.

    Measured first, with nothing else running: the unsplit model, or all stages in turn in one process. Inputs are
    random, and so are weights whose files are absent. Outputs of the pipeline are compared with those of the stages in
    turn. With --from torch the unsplit model is what a function builds, as for `mtpp split`. Messages of several sizes
    are handed over first, to see what that takes. Ctrl-C ends the run with the table of what is done.

    With --engine torch FOLDER holds a training plan: its stages are trained, a process for each device, and losses,
    gradients and buffers are compared with those of --model, unless --no-compare leaves that out.
    """
    from mtpp.api.inputs.described_machine import check_new_file
    from mtpp.api.run_pipeline import run_request, run_stages
    from mtpp.api.training.run_training import train_stages
    from mtpp.cli.terminal.console import TalkativeConsole
    from mtpp.cli.terminal.delivery import check_output, deliver
    from mtpp.host.deadline import deadline_from_start
    from mtpp.host.stop_reason import StopReason

    _refuse_idle(ctx, engine)
    check_output(output)
    if write_machine is not None:
        if engine is not None or write_machine == "-":
            raise click.UsageError("--write-machine takes a file, and goes without --engine", ctx)
        check_new_file(write_machine)
    # Once a second: drawing more would take time from what is being measured.
    talkative = sys.stderr is not None and sys.stderr.isatty()
    if talkative:
        console.waiting.refresh_per_second = 1
        console = TalkativeConsole(quiet=console.quiet, verbose=console.verbose, waiting=console.waiting)
    deadline = deadline_from_start(workers.time_limit_s)
    if engine is not None:
        if model is None:
            raise click.UsageError("--engine torch trains a model: give --model FILE", ctx)
        trained = train_stages(Path(folder), Path(model), training, workers, deadline, console)
        deliver(output, trained, output_format)
        if trained.agrees is False:
            console.complain("the stages do not train as the unsplit model does")
            ctx.exit(1)
        return
    with run_request(Path(folder), model, pipelining, workers) as request:
        run = run_stages(request, deadline, console)
    deliver(output, run.told(flag_of), output_format)
    if write_machine is not None:
        run.write_machine(write_machine)
        console.note(f"{write_machine}: {counted(run.machine.devices, 'device')}")
    if not run.agrees:
        console.complain("the outputs are not those of the unsplit model")
        ctx.exit(1)
    if run.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)


def _refuse_idle(ctx: click.Context, engine: str | None) -> None:
    """Refuse options that have no effect with the engine.

    Raises
    ------
    click.UsageError
        If one was given.
    """
    for name in options_of(Training if engine is None else Pipelining):
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            if engine is None:
                raise click.UsageError(f"{flag_of(name)} goes with --engine {TORCH}", ctx)
            raise click.UsageError(f"{flag_of(name)} has no effect with --engine {engine}: leave it out", ctx)
