"""``mtpp partition``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import click

from mtpp.api.options.reading import Reading
from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import MODEL, OUTPUT, REPORT
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options, search_options
from mtpp.cli.options.values import FiniteRange
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import ALGORITHMS
from mtpp.ranges import MOST_STAGES

if TYPE_CHECKING:
    from mtpp.cli.options.partition_terms import PartitionOptions
    from mtpp.cli.terminal.console import Console


@click.command("partition")
@click.argument("model", type=MODEL)
@click.option("-k", "--stages", "k", type=click.IntRange(1, MOST_STAGES), help="Number of stages at most.")
@click.option("--max-bottleneck", metavar="TIME", help="In place of -k: the fewest stages that all stay within TIME.")
@click.option(
    "--algorithm",
    default="auto",
    shell_complete=names_completion(ALGORITHMS),
    show_default=True,
    help="auto, downset (also called piper), series-parallel, anneal, brkga, mla, mla-weighted, random or slice; "
    "random-100: 100 orders, brkga-100: 10 × 10.",
)
@click.option("--together", multiple=True, metavar="OP,OP", help="Keep these ops in one stage (repeatable).")
@click.option("--together-blocks", is_flag=True, help="Keep each repeated block of an ONNX model, as layers.7, in one.")
@click.option(
    "--ignore-engine", is_flag=True, help="Cut where `mtpp split` cannot, too: for who only wants the number."
)
@search_options(time_limit="From process start.")
@click.option("--population", type=click.IntRange(2, 100_000), metavar="P", help="Of brkga and mla [default: 100].")
@click.option(
    "--generations", type=click.IntRange(min=1), metavar="G", help="Of brkga and mla [default: 100 if no limit is set]."
)
@click.option("--require-ratio", type=FiniteRange(min=1), metavar="R", help="Exit 1 if no ratio ≤ R is proven.")
@click.option("--require-optimal", is_flag=True, help="Exit 1 unless the plan is proven optimal.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the plan as JSON, whole or not at all.")
@click.option(
    "--report", type=REPORT, metavar="FILE",
    help="Make a page to look at, as `mtpp report` does; with --time-limit, no search is run again for it.",
)  # fmt: skip
@click.option("--embed", is_flag=True, help="Put the graph into the plan, so that `mtpp verify` needs no model.")
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("partition")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    output: str | None,
    report: str | None,
    reading: Reading,
    output_format: str,
    console: Console,
    **asked: Unpack[PartitionOptions],
) -> None:
    """Cut MODEL into k pipeline stages and prove how good the cut is.

    MODEL is an ONNX file, a JSON graph with costs (see `mtpp convert`), or - for standard input.
    """
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inputs.reading_in_time import reading as being_read
    from mtpp.api.inputs.reading_in_time import refuse_too_late
    from mtpp.api.output import check_output
    from mtpp.api.partition import find_partition, prepare
    from mtpp.cli.options.overheads import ProcessOverheads, searching_s
    from mtpp.cli.options.partition_terms import partition_request
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.page_delivery import check_page, deliver_page
    from mtpp.cli.terminal.plan_delivery import deliver_plan, unmet_requirements
    from mtpp.host.process_age import process_age_s
    from mtpp.host.stop_reason import StopReason

    limit_s = asked["time_limit"]
    if (asked["k"] is None) == (asked["max_bottleneck"] is None):
        raise click.UsageError("give either -k or --max-bottleneck", ctx)
    if output not in (None, "-"):
        check_output(output)
    if report is not None:
        check_page(report)
    with being_read(model, deadline_from_start(limit_s)):
        read = read_model(model, reading, console.warn)
        request = partition_request(read, asked)
        prepared = prepare(request)
    refuse_too_late(read.source.display, limit_s, process_age_s(), read.graph, ProcessOverheads())
    request = replace(request, deadline=deadline_from_start(searching_s(limit_s, read.graph.op_count)))
    plan = find_partition(request, console, prepared)
    deliver_plan(plan, console, output, output_format, embed=asked["embed"])
    if report is not None:
        deliver_page(plan, read, report, console, shallow=limit_s is not None or plan.stopped == StopReason.INTERRUPTED)
    if plan.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    unmet = unmet_requirements(plan, asked["require_ratio"], optimal=asked["require_optimal"])
    if unmet:
        click.echo(f"unmet: {unmet}", err=True)
        ctx.exit(1)
