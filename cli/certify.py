"""``mtpp certify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.cells import Certifying
from mtpp.api.options.kinds import Ratio
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import OutputPath
from mtpp.api.options.reading import Reading
from mtpp.cli.options.file_types import MODEL, csv_beside
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import SHOWN_AS, output_option, output_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.cli.terminal.console import Console


class Written(Options):
    """The table, what is required of it, and how it is written."""

    require_ratio: Fraction | None = option(None, Ratio(), "Exit 1 unless each cell's ratio is proven ≤ R.", "R")
    plot: str | None = option(
        None, OutputPath(beside=csv_beside), "Draw seconds of each method against ops; a CSV lands beside it.",
        "FILE.png",
    )  # fmt: skip
    shown_as: str = SHOWN_AS
    output: str | None = output_option("Write the table as JSON, whole or not at all.")


@click.command("certify")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="PATH...")
@options(Certifying, Written, Reading)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("certify")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    certifying: Certifying,
    written: Written,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Partition models and prove how good the partitions are: a table with a row for each model and k.

    PATH is a model or a folder of models. At each cell the bounds are tried from cheap to strong until the ratio will
    do or the time is up. Ctrl-C ends the run with the table of what is done; with a store, the next run goes on there.
    """
    from mtpp.api.certify import certify_cells
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.terminal.delivery import check_output, deliver
    from mtpp.host.deadline import deadline_from_start
    from mtpp.host.stop_reason import StopReason
    from mtpp.views.certificate_plot import check_plot, write_plot

    check_output(written.output)
    if written.plot is not None:
        check_plot(written.plot)
    required, deadline = written.require_ratio, deadline_from_start(certifying.total_time_limit_s)
    table = certify_cells(
        paths, certifying, reading, console, deadline, ProcessOverheads(), proofs_only=required is not None
    )
    if table.cells:
        deliver(written.output, table, output_format, as_fraction=written.shown_as == "fraction")
        if written.plot is not None:
            write_plot(written.plot, table.cells, certifying.time_limit_s)
    if table.failure is not None:
        raise table.failure
    if table.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    unmet = [] if required is None else table.unmet(required)
    for line in unmet:
        click.echo(f"unmet: {line}", err=True)
    if unmet or table.problems or not table.cells:
        ctx.exit(1)
