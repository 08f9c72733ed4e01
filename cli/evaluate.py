"""``mtpp evaluate``."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.api.options.reading import Reading
from mtpp.api.options.search import Scoring
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import EMBED, memory_limit_option, output_option, output_options
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import ALGORITHMS

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


class Written(Options):
    """The comparison and the plan, and how they are written."""

    against: str | None = option(
        None, InputPath("an assignment", names=lambda: ALGORITHMS),
        "Compare, stage by stage, with another assignment, or with what an algorithm finds (auto: the usual one).",
        "FILE|ALGORITHM",
    )  # fmt: skip
    output: str | None = output_option("Write the scored plan as JSON.")
    embed: bool = EMBED


@click.command("evaluate")
@click.argument("model", type=MODEL)
@options(Scoring, Written)
@memory_limit_option()
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    scoring: Scoring,
    written: Written,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Score a partition of MODEL that was made by hand or by another tool.

    A partition whose stages need each other's results in a circle, or a stage of which exceeds --stage-memory, is
    invalid: exit code 1. With --against, what is printed is the comparison; -o still writes the scored plan.
    """
    from mtpp.api.evaluate import compare_stages, refuse_cuts, score
    from mtpp.api.inputs.degrees import degrees_given
    from mtpp.api.inputs.model import devices_given, read_model
    from mtpp.api.inputs.user_assignment import labels_of_assignment, labels_of_cuts
    from mtpp.cli.terminal.delivery import check_output, deliver_plan

    assignment, against = scoring.assignment, written.against
    if (assignment is None) == (scoring.cuts is None):
        raise click.UsageError("give either --assignment or --cuts", ctx)
    if [assignment, against, model].count("-") > 1:
        raise click.UsageError("only one of model and assignments can be standard input", ctx)
    check_output(written.output)
    read = read_model(model, reading, console.warn, assignment=assignment)
    if assignment is not None:
        labels = labels_of_assignment(read.graph, assignment)
    else:
        labels = labels_of_cuts(read.graph, scoring.cuts or [""])  # as an empty text says
        refuse_cuts(read, labels, scoring.k)
    devices, degrees = devices_given(read, assignment), degrees_given(read, assignment)
    plan = score(read, labels, scoring.k, console, devices, degrees)
    comparison = None
    if against is not None:
        name = PurePath(assignment or "cuts").name
        plan, comparison = compare_stages(plan, against, console, name=name)
    deliver_plan(plan, console, written.output, output_format, embed=written.embed, instead=comparison)
    if comparison is not None and comparison.comparison.interrupted:
        ctx.exit(INTERRUPTED)
