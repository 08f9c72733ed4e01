"""``mtpp split``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options.file_types import ASSIGNMENT, MODEL, OUTPUT_FOLDER
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.shared import output_options


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
@click.option("--check", is_flag=True, help="Run whole and split on random inputs and compare; exit 1 if they differ.")
@click.option("--force", is_flag=True, help="Replace the stages that an earlier run wrote to FOLDER.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of random inputs and weights."
)
@click.option(
    "--emit",
    "forms",
    multiple=True,
    metavar="NAME",
    help="Print the plan for another program: cut-names, torch, vllm, megatron or tflite-segments (repeatable).",
)
@click.option("--dim", "dims", multiple=True, metavar="NAME=VALUE", help="Set a symbolic dimension that PLAN has not.")
@memory_limit_option()
@click.option("--max-input-size", default="2GiB", show_default=True, metavar="SIZE", help="Refuse larger inputs.")
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context, /, model: str, plan: str, output: str | None, output_format: str, **options: Any
) -> None:
    """Write one ONNX model per stage of PLAN, which `mtpp partition MODEL -k 4 -o PLAN` made.

    PLAN may also be JSON {"op": stage, …}. The stages are for the sizes that the plan was made for. External weights
    are copied once, and shared by the stages. Each stage reads what earlier ones made: see manifest.json. For
    --emit alone, MODEL may be a graph in any format.
    """
    from mtpp.cli.handing_over import check_forms, handover_text, read_request, request_of
    from mtpp.cli.split_plan import read_planned_model
    from mtpp.cli.splitting import split_planned
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.formats.onnx.stages.folder import check_folder
    from mtpp.views.split import split_text

    forms = options["forms"]
    if output is None and not options["check"] and not forms:
        raise click.UsageError("give -o FOLDER, --check or --emit NAME", ctx)
    if model == plan == "-":
        raise click.UsageError("model and plan cannot both be standard input", ctx)
    if output == "-":
        raise click.UsageError("stages go to a folder, not to standard output", ctx)
    if output is not None:
        check_folder(output, force=options["force"])
    if options["check"]:
        from mtpp.runtime.session import onnxruntime

        onnxruntime()  # says so at once if it is not there
    check_forms(forms)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    if output is None and not options["check"]:
        write_stdout(handover_text(read_request(model, plan, options, console), forms))
        return
    planned = read_planned_model(model, plan, options, console)
    text = handover_text(request_of(planned), forms) if forms else None
    seed = options["seed"] if options["check"] else None
    result = split_planned(planned, output, console, force=options["force"], check_seed=seed)
    write_stdout(split_text(result, output, output_format) if text is None else text)
    if result.check is not None and not result.check.passed:
        console.complain("the outputs of the stages are not those of the whole model")
        ctx.exit(1)
