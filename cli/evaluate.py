"""``mtpp evaluate``."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from mtpp.api.options.kinds import Ratio, Seconds, Text
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.api.options.reading import Reading
from mtpp.api.options.search import Scoring
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import EMBED, memory_limit_option, output_option, output_options
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import ALGORITHMS, LAYOUT_ENGINES

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.evaluate import ComparedStages
    from mtpp.api.run_pipeline import ComparedRun
    from mtpp.cli.terminal.console import Console


class Audited(Options):
    """A layout of an engine in place of an assignment, and a gate."""

    layout: str | None = option(
        None, Text(LAYOUT_ENGINES),
        "A layout of a language model, as its engine takes it: a text, a file of it, or the engine's own rule as "
        "ENGINE=default.", "ENGINE=TEXT",
    )  # fmt: skip
    require_ratio: Fraction | None = option(None, Ratio(), "Exit 1 if no ratio ≤ R is proven.", "R")
    time_limit_s: float | None = option(
        None, Seconds(), "Of the search for the best plan, which a ‹layout› is held against.", "S"
    )


class Written(Options):
    """The comparison and the plan, and how they are written."""

    against: str | None = option(
        None, InputPath("an assignment", names=lambda: ALGORITHMS),
        "Compare, stage by stage, with another assignment, or with what an algorithm finds (auto: the usual one).",
        "FILE|ALGORITHM",
    )  # fmt: skip
    run: str | None = option(
        None, InputPath("the run"), "Compare, stage by stage, with times that `mtpp run -o FILE` measured.", "FILE"
    )
    output: str | None = output_option("Write the scored plan as JSON.")
    embed: bool = EMBED


@click.command("evaluate")
@click.argument("model", type=MODEL)
@options(Scoring, Audited, Written)
@memory_limit_option()
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    scoring: Scoring,
    audited: Audited,
    written: Written,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Score a partition of MODEL that was made by hand or by another tool, or audit a layout of an inference engine.

    A partition whose stages need each other's results in a circle, or a stage of which exceeds --stage-memory, is
    invalid: exit code 1. With --against or --run, what is printed is the comparison; -o still writes the scored plan. A
    layout with findings has exit code 1, one that its engine refuses 2.
    """
    from mtpp.api.evaluate import compare_stages, refuse_cuts, score
    from mtpp.api.inputs.degrees import degrees_given
    from mtpp.api.inputs.model import devices_given, read_model
    from mtpp.api.inputs.user_assignment import labels_of_cuts, plan_among, stage_labels
    from mtpp.cli.terminal.delivery import check_output, deliver_plan, unmet_requirements

    assignment, against = scoring.assignment, written.against
    if [assignment, scoring.cuts, audited.layout].count(None) != 2:
        raise click.UsageError("give one of --assignment, --cuts and --layout", ctx)
    if audited.layout is not None:
        _audit(ctx, model, scoring.k, audited, written, reading, output_format, console)
        return
    if audited.time_limit_s is not None:
        raise click.UsageError("--time-limit goes with --layout", ctx)
    if against is not None and written.run is not None:
        raise click.UsageError("give either --against or --run", ctx)
    if [assignment, against, written.run, model].count("-") > 1:
        raise click.UsageError("only one of model and assignments can be standard input", ctx)
    if written.embed and written.output is None and output_format != "json":
        raise click.UsageError("--embed goes into JSON: give -o FILE or --format json as well", ctx)
    check_output(written.output)
    given = plan_among(assignment, scoring.k)
    read = read_model(model, reading, console.warn, assignment=given)
    if assignment is not None:
        labels = stage_labels(read.graph, given)
    else:
        labels = labels_of_cuts(read.graph, scoring.cuts or [""])  # as an empty text says
        refuse_cuts(read, labels, scoring.k)
    devices, degrees = devices_given(read, given), degrees_given(read, given)
    plan = score(read, labels, scoring.k, console, devices, degrees)
    comparison = None
    if against is not None:
        name = PurePath(assignment or "cuts").name
        comparison = compare_stages(plan, against, console, name=name)
        plan = comparison.plan
    instead: ComparedStages | ComparedRun | None = comparison
    if written.run is not None:
        from mtpp.api.run_pipeline import compare_run

        instead = compare_run(plan, written.run)
    deliver_plan(plan, console, written.output, output_format, embed=written.embed, instead=instead)
    if comparison is not None and comparison.comparison.interrupted:
        ctx.exit(INTERRUPTED)
    unmet = unmet_requirements(plan, audited.require_ratio, optimal=False)
    if unmet:
        click.echo(f"unmet: {unmet}", err=True)
        ctx.exit(1)


def _audit(
    ctx: click.Context,
    model: str,
    k: int | None,
    audited: Audited,
    written: Written,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Audit a layout."""
    from mtpp.api.inputs.file_contents import refuse_inputs
    from mtpp.api.inputs.model import read_model
    from mtpp.api.language_models.given_layout import engine_and_layout, is_file
    from mtpp.api.language_models.layout_evaluation import evaluation_of
    from mtpp.api.options.layouts import Auditing
    from mtpp.cli.terminal.delivery import check_output, deliver

    for name, value in (("--against", written.against), ("--run", written.run), ("--embed", written.embed or None)):
        if value is not None:
            raise click.UsageError(f"{name} does not go with --layout", ctx)
    assert audited.layout is not None
    engine, layout = engine_and_layout(audited.layout)
    check_output(written.output)
    if written.output is not None and is_file(layout):
        refuse_inputs(written.output, {"the layout": Path(layout)})
    asked = Auditing(k=k, time_limit_s=audited.time_limit_s)
    evaluation = evaluation_of(read_model(model, reading, console.warn), engine, layout, asked, console)
    deliver(written.output, evaluation, output_format)
    if evaluation.interrupted:
        ctx.exit(INTERRUPTED)
    unmet = evaluation.unmet(audited.require_ratio)
    if unmet:
        click.echo(f"unmet: --require-ratio {float(audited.require_ratio or 1):g}: {unmet}", err=True)
    if unmet or evaluation.findings:
        ctx.exit(1)
