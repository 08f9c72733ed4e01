"""``mtpp compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.reading import Reading
from mtpp.api.options.search import Comparing
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options, output_path
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("compare")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="PATH...")
@options(Comparing)
@output_path("Write all runs and their means as JSON, whole or not at all.")
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str | None,
    reading: Reading,
    output_format: str,
    console: Console,
    comparing: Comparing,
) -> None:
    """Measure algorithms against each other on models, as Table 2 of the paper does.

    PATH is a model or a folder of models. Each cell is the geometric mean over the graphs of objective / simple lower
    bound, so 1 is optimal and lower is better. Ctrl-C ends the run with the table of what is done.
    """
    from mtpp.api.compare import Comparison, compare_algorithms, warn_of_gaps
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.terminal.delivery import check_output, deliver
    from mtpp.host.deadline import process_age_s

    check_output(output)
    comparison = compare_algorithms(paths, comparing, reading, console, ProcessOverheads())
    warn_of_gaps(comparison, console)
    deliver(output, Comparison(comparison, process_age_s()), output_format)
    if comparison.interrupted:
        ctx.exit(INTERRUPTED)
    if not any(mean.models for mean in comparison.means()):
        ctx.exit(1)
