"""``mtpp verify``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.file_types import COSTS, DOCUMENT, MODEL
from mtpp.cli.options import output_options, reading_options


@click.command("verify")
@click.argument("document", type=DOCUMENT, metavar="FILE")
@click.option(
    "--model", "models", type=MODEL, multiple=True, metavar="PATH",
    help="The model that a plan is for, if it embeds none. Models of a table, or folders of them; repeatable.",
)  # fmt: skip
@click.option("--costs", type=COSTS, metavar="FILE", help="Measured times of the ops, if it was made with them.")
@click.option("--deep", is_flag=True, help="Run the exhaustive search behind a bound of tier enumerated again.")
@click.option(
    "--require-tier", type=click.Choice(["exact", "enumerated", "solver"]), help="Exit 1 if a bound is less trusted."
)
@reading_options()
@click.option("--max-input-size", default="2GiB", show_default=True, metavar="SIZE", help="Refuse larger inputs.")
@output_options("table", "json")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    document: str,
    models: tuple[str, ...],
    costs: str | None,
    deep: bool,
    require_tier: str | None,
    max_input_size: str,
    output_format: str,
    **options: Any,
) -> None:
    """Check FILE, a plan, a training plan or a table of certificates (- for standard input), and the proofs in it.

    Stages, costs, bounds and ratios are derived from scratch in plain integers and fractions, by code that shares
    nothing with the solvers. A bound of tier enumerated rests on an exhaustive search, which only --deep runs again:
    with code of its own too, and about as long as the first time, or longer. How a plan was found (algorithm, seed,
    evaluations, times), what bounds other than the best one came to, why work ended and the model's name are taken as
    they stand. The models of a table are found by SHA-256 among those given, or else where its rows say, seen from the
    table's folder or this one. What decided how a model is read (--time-unit and so on) has to be given again; only
    training plans say themselves what times without a unit are in.
    Exit code 0: all else that FILE says is true; 1: something is false.
    """
    from mtpp.cli.checking import check_plan_document, report_text, unmet_tier
    from mtpp.cli.console import Console
    from mtpp.cli.options import input_limit, reading_of
    from mtpp.cli.output import write_stdout
    from mtpp.cli.table_checking import check_table_document, table_text
    from mtpp.cli.training_checking import check_training_document
    from mtpp.formats.source import read_source
    from mtpp.formats.verifiable import is_table, is_training_plan, read_verifiable

    if [document, costs, *models].count("-") > 1:
        raise click.UsageError("only one of plan, model and costs can be standard input", ctx)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    limit = input_limit(max_input_size)
    source = read_source(document, max_bytes=limit)
    claims = read_verifiable(source.data, source.display)
    if is_table(claims):
        table = check_table_document(
            claims, source, models, limit, reading_of(options), console, deep=deep, costs_path=costs
        )
        write_stdout(table_text(table, output_format))
        named = [
            (f"{row['path']}, k = {row['k']}: ", found) for row, found in zip(table.rows, table.reports, strict=True)
        ]
        passed = table.passed
    else:
        if len(models) > 1:
            raise click.UsageError("a plan is for one model", ctx)
        model, deeply = next(iter(models), None), console if deep else None
        if is_training_plan(claims):
            report = check_training_document(claims, source, model, limit, reading_of(options), deeply, costs)
        else:
            report = check_plan_document(claims, source, model, limit, reading_of(options), deeply, costs)
        write_stdout(report_text(report, output_format))
        named, passed = [("", report)], report.passed
    if not passed:
        ctx.exit(1)
    unmet = [(name, unmet_tier(found, require_tier)) for name, found in named] if require_tier else []
    for name, why in unmet:
        if why is not None:
            click.echo(f"unmet: --require-tier {require_tier}: {name}{why}", err=True)
            passed = False
    ctx.exit(0 if passed else 1)
