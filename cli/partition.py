"""``mtpp partition``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options.file_types import MODEL, OUTPUT
from mtpp.cli.options.shared import MOST_STAGES, FiniteRange, model_options, output_options, search_options

INTERRUPTED = 130


@click.command("partition")
@click.argument("model", type=MODEL)
@click.option("-k", "--stages", "k", type=click.IntRange(1, MOST_STAGES), help="Number of stages at most.")
@click.option("--max-bottleneck", metavar="TIME", help="In place of -k: the fewest stages that all stay within TIME.")
@click.option(
    "--algorithm",
    default="auto",
    show_default=True,
    help="auto, downset (also called piper), series-parallel, anneal, brkga, mla, mla-weighted, random or slice; "
    "random-100: 100 orders, brkga-100: 10 × 10.",
)
@click.option("--together", multiple=True, metavar="OP,OP", help="Keep these ops in one stage (repeatable).")
@click.option("--together-blocks", is_flag=True, help="Keep each repeated block of an ONNX model, as layers.7, in one.")
@search_options(time_limit="From process start.")
@click.option("--population", type=click.IntRange(2, 100_000), metavar="P", help="Of brkga and mla [default: 100].")
@click.option(
    "--generations", type=click.IntRange(min=1), metavar="G", help="Of brkga and mla [default: 100 if no limit is set]."
)
@click.option("--require-ratio", type=FiniteRange(min=1), metavar="R", help="Exit 1 if no ratio ≤ R is proven.")
@click.option("--require-optimal", is_flag=True, help="Exit 1 unless the plan is proven optimal.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the plan as JSON, whole or not at all.")
@click.option("--embed", is_flag=True, help="Put the graph into the plan, so that `mtpp verify` needs no model.")
@model_options()
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(ctx: click.Context, /, model: str, output: str | None, output_format: str, **options: Any) -> None:
    """Cut MODEL into k pipeline stages and prove how good the cut is.

    MODEL is an ONNX file, a JSON graph with costs (see `mtpp convert`), or - for standard input.
    """
    from dataclasses import replace

    from mtpp.cli.block_groups import block_groups
    from mtpp.cli.options.limits import reading, refuse_too_late
    from mtpp.cli.options.shared import read_model
    from mtpp.cli.planning import PlanRequest, deliver_plan, make_plan, prepare, unmet_requirements
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.console import Console
    from mtpp.formats.io.sink import check_output
    from mtpp.host.process_age import process_age_s

    if (options["k"] is None) == (options["max_bottleneck"] is None):
        raise click.UsageError("give either -k or --max-bottleneck", ctx)
    if output not in (None, "-"):
        check_output(output)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    with reading(model, deadline_from_start(options["time_limit"])):
        read = read_model(model, options, console.warn)
        request = PlanRequest.of(options)
        if options["together_blocks"]:
            request = replace(request, together=(*request.together, *block_groups(read, options)))
        prepared = prepare(read, request)
    refuse_too_late(read.source.display, options["time_limit"], process_age_s(), read.graph)
    plan = make_plan(read, request, console, prepared)
    deliver_plan(plan, read, console, output, output_format, embed=options["embed"])
    if plan.stopped == "interrupted":
        ctx.exit(INTERRUPTED)
    unmet = unmet_requirements(plan, options["require_ratio"], optimal=options["require_optimal"])
    if unmet:
        click.echo(f"unmet: {unmet}", err=True)
        ctx.exit(1)
