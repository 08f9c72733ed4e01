"""``mtpp certify``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.cell_options import cell_options
from mtpp.cli.options import FiniteRange, model_options, output_options

INTERRUPTED = 130


@click.command("certify")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@cell_options(bounds="Those to try, from cheap to strong [default: all].")
@click.option("--algorithm", default="auto", show_default=True, help="Of the partitions, as in `mtpp partition`.")
@click.option(
    "--target-ratio", type=FiniteRange(min=1), default=1.0, show_default=True, metavar="R",
    help="A cell is done when a ratio ≤ R is proven.",
)  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write the table as JSON, whole or not at all.")
@model_options()
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[str, ...], output: str | None, output_format: str, **options: Any
) -> None:
    """Partition models and prove how good the partitions are: a table with a row for each model and k.

    PATH is a model or a folder of models. At each cell the bounds are tried from cheap to strong until the ratio will
    do or the time is up. Ctrl-C ends the run with the table of what is done.
    """
    from mtpp.cli.cell_options import cell_limits
    from mtpp.cli.certificate_view import certificates_json, certificates_text
    from mtpp.cli.certifying import certify_models
    from mtpp.cli.console import Console
    from mtpp.cli.planning import available_cores
    from mtpp.cli.results import deliver
    from mtpp.formats.sink import check_output
    from mtpp.solvers.cells.serial import run_here

    if output not in (None, "-"):
        check_output(output)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    limits = cell_limits(options, at_once=1, threads=available_cores())
    table = certify_models(paths, options, limits, run_here, console)
    deliver(output, lambda: certificates_text(table.rows, "json"), lambda: certificates_text(table.rows, output_format))
    if table.interrupted:
        ctx.exit(INTERRUPTED)
    if table.problems:
        ctx.exit(1)
