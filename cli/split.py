"""``mtpp split``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import ASSIGNMENT, INPUTS, MODEL, OUTPUT_FOLDER
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.sizes import size_options, sizes_of
from mtpp.names import EXPORTERS

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

UNCHECKED = 3
"""Exit code where a check was asked for and could not be made."""


@click.command("split")
@click.argument("model", type=MODEL)
@click.argument("plan", type=ASSIGNMENT)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Write the stages and their manifest there, all or nothing.",
)
@click.option("--check", is_flag=True, help="Run whole and split on several inputs and compare; exit 1 if they differ.")
@click.option(
    "--inputs", type=INPUTS, metavar="FILE.npz", help="For --check: contents of inputs by name [default: random]."
)
@click.option("--force", is_flag=True, help="Replace the stages that an earlier run wrote to FOLDER.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of random inputs and weights."
)
@click.option(
    "--emit",
    "forms",
    multiple=True,
    metavar="NAME",
    shell_complete=names_completion(EXPORTERS),
    help="Print the plan for another program: cut-names, torch, vllm, megatron or tflite-segments (repeatable).",
)
@size_options("Set a size that PLAN has not; '*=1': all others.", "Propose the sizes that PLAN has not.")
@memory_limit_option()
@click.option("--max-input-size", default="2GiB", show_default=True, metavar="SIZE", help="Refuse larger inputs.")
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    plan: str,
    output: str | None,
    output_format: str,
    console: Console,
    **options: Any,
) -> None:
    """Write one model per stage of PLAN, which `mtpp partition MODEL -k 4 -o PLAN` made.

    Stages of an ONNX model are ONNX models, those of an exported PyTorch program (.pt2) are such programs. PLAN may
    also be JSON {"op": stage, …}. The stages are for the sizes that the plan was made for. External weights are copied
    once, and shared by the stages. Each stage reads what earlier ones made: see manifest.json. For --emit alone, MODEL
    may be a graph in any format.

    --check runs whole and split on several sets of inputs, which lean to different sides, so that sizes and branches
    that depend on data differ. It warns of branches that none of them reaches. Exit code 3: the stages are written, and
    no values could be made up for an input.
    """
    from mtpp.api.emit import emit_files
    from mtpp.api.inputs.stage_plan import PlanFiles
    from mtpp.api.split import SplitRequest, split_files
    from mtpp.cli.options.values import input_limit
    from mtpp.cli.terminal.output import write_stdout

    forms = options["forms"]
    if output is None and not options["check"] and not forms:
        raise click.UsageError("give -o FOLDER, --check or --emit NAME", ctx)
    if options["inputs"] is not None and not options["check"]:
        raise click.UsageError("--inputs goes with --check", ctx)
    if model == plan == "-":
        raise click.UsageError("model and plan cannot both be standard input", ctx)
    if output == "-":
        raise click.UsageError("stages go to a folder, not to standard output", ctx)
    files = PlanFiles(model, plan, sizes_of(options), input_limit(options["max_input_size"]))
    if output is None and not options["check"]:
        write_stdout(emit_files(files, forms, console))
        return
    seed = options["seed"] if options["check"] else None
    request = SplitRequest(files, output, options["force"], seed, forms, options["inputs"])
    result = split_files(request, console)
    write_stdout(result.text(output_format) if result.emitted is None else result.emitted)
    if result.passed is False:
        failure = result.stages.check.failure if result.stages.check is not None else None
        console.complain(failure or "the outputs of the stages are not those of the whole model")
        ctx.exit(1)
    if options["check"] and result.passed is None:
        ctx.exit(UNCHECKED)
