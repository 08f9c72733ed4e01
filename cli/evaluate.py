"""``mtpp evaluate``."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from mtpp.api.options.reading import Reading
from mtpp.cli.options.file_types import ASSIGNMENT, ASSIGNMENT_OR_ALGORITHM, MODEL, OUTPUT
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options
from mtpp.host.interrupts import INTERRUPTED
from mtpp.ranges import MOST_STAGES

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("evaluate")
@click.argument("model", type=MODEL)
@click.option(
    "--assignment", type=ASSIGNMENT, metavar="FILE",
    help='A plan, JSON {"op": stage, …}, a CSV with op and stage, or a split of a placement workload; -: stdin.',
)  # fmt: skip
@click.option("--cuts", metavar="OP,OP", help="Ops that end a stage, in the order in which the file lists the ops.")
@click.option(
    "-k", "--stages", "k", type=click.IntRange(1, MOST_STAGES), help="Stages at most [default: as many as are used]."
)
@click.option(
    "--against", type=ASSIGNMENT_OR_ALGORITHM, metavar="FILE|ALGORITHM",
    help="Compare, stage by stage, with another assignment, or with what an algorithm finds (auto: the usual one).",
)  # fmt: skip
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the scored plan as JSON.")
@click.option("--embed", is_flag=True, help="Put the graph into the plan, so that `mtpp verify` needs no model.")
@memory_limit_option()
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    assignment: str | None,
    cuts: str | None,
    against: str | None,
    k: int | None,
    output: str | None,
    embed: bool,
    memory_limit: str | None,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Score a partition of MODEL that was made by hand or by another tool.

    A partition whose stages need each other's results in a circle, or a stage of which exceeds --stage-memory, is
    invalid: exit code 1. With --against, what is printed is the comparison; -o still writes the scored plan.
    """
    from mtpp.api.evaluate import compare_stages, score
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inputs.user_assignment import labels_of_assignment, labels_of_cuts
    from mtpp.api.output import check_output
    from mtpp.cli.terminal.plan_delivery import deliver_plan

    if (assignment is None) == (cuts is None):
        raise click.UsageError("give either --assignment or --cuts", ctx)
    if [assignment, against, model].count("-") > 1:
        raise click.UsageError("only one of model and assignments can be standard input", ctx)
    if output not in (None, "-"):
        check_output(output)
    read = read_model(model, reading, console.warn, assignment=assignment)
    if assignment is not None:
        labels = labels_of_assignment(read.graph, assignment)
    else:
        labels = labels_of_cuts(read.graph, [name.strip() for name in (cuts or "").split(",")])
    plan = score(read, labels, k, console)
    comparison = None
    if against is not None:
        name = PurePath(assignment or "cuts").name
        plan, comparison = compare_stages(plan, against, console, name=name)
    deliver_plan(plan, console, output, output_format, embed=embed, instead=comparison)
    if comparison is not None and comparison.comparison.interrupted:
        ctx.exit(INTERRUPTED)
