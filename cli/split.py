"""``mtpp split``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.emitting import Emitting
from mtpp.api.options.splitting import Planned, Splitting
from mtpp.cli.options.file_types import ASSIGNMENT, MODEL
from mtpp.cli.options.made import fields, options
from mtpp.cli.options.shared import memory_limit_option, output_options, output_path

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

UNCHECKED = 3
"""Exit code where a check was asked for and could not be made."""


@click.command("split")
@click.argument("model", type=MODEL, metavar="[MODEL]")
@click.argument("plan", type=ASSIGNMENT, required=False, metavar="PLAN")
@output_path("Write the stages and their manifest there, all or nothing.", "FOLDER", folder=True)
@options(Splitting, Emitting)
@fields(Planned, "from_format", "dims")
@memory_limit_option()
@fields(Planned, "max_input_size")
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    plan: str | None,
    output: str | None,
    splitting: Splitting,
    emitting: Emitting,
    from_format: str | None,
    dims: dict[str, int | str] | None,
    max_input_size: int,
    output_format: str,
    console: Console,
) -> None:
    """Write one model per stage of PLAN, which `mtpp partition MODEL -k 4 -o PLAN` made.

    PLAN alone will do where it records its model's path, relative to itself, and the file there, in PLAN's folder or in
    the working folder has the SHA-256 of the model.

    Stages of an ONNX model are ONNX models, those of an exported PyTorch program (.pt2) are such programs, with the
    weights that the module has when it is built (--from torch). PLAN may
    also be JSON {"op": stage, …}. The stages are for the sizes that the plan was made for. External weights are copied
    once, and shared by the stages. Each stage reads what earlier ones made: see manifest.json. For --emit alone, MODEL
    may be a graph in any format, or a language model's folder, configuration or checkpoint.

    --check runs whole and split on several sets of inputs, which lean to different sides, so that sizes and branches
    that depend on data differ. It warns of branches that none of them reaches. Exit codes: 1 results differ; 3 the
    stages are written, and no values could be made up for an input.
    """
    from mtpp.api.emit import emit_files
    from mtpp.api.inputs.python_models import runnable_model
    from mtpp.api.inputs.stage_plan import PlanFiles, files_of_plan
    from mtpp.api.split import split_files
    from mtpp.cli.terminal.output import write_stdout

    if output is None and not splitting.check and not emitting.form:
        raise click.UsageError("give -o FOLDER, --check or --emit NAME", ctx)
    if model == plan == "-":
        raise click.UsageError("model and plan cannot both be standard input", ctx)
    if output == "-":
        raise click.UsageError("stages go to a folder, not to standard output", ctx)
    if plan is None and from_format is not None:
        raise click.UsageError("--from goes with a function as MODEL, before PLAN", ctx)
    given, runs = dims or {}, output is not None or splitting.check
    with runnable_model(model, from_format, max_input_size, weights=runs) as found:
        if plan is None:
            files = files_of_plan(model, given, max_input_size)
        else:
            files = PlanFiles(found, plan, given, max_input_size)
        if not runs:
            write_stdout(emit_files(files, emitting, console))
            return
        result = split_files(files, output, splitting, console, emitting)
    write_stdout(result.text(output_format) if result.emitted is None else result.emitted)
    if result.passed is False:
        failure = result.stages.check.failure if result.stages.check is not None else None
        console.complain(failure or "the outputs of the stages are not those of the whole model")
        ctx.exit(1)
    if splitting.check and result.passed is None:
        ctx.exit(UNCHECKED)
