"""``mtpp certify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from mtpp.api.options.reading import Reading
from mtpp.cli.options.cells import CellOptions, RunOptions, cell_limits, cell_options, run_options
from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import MODEL, OUTPUT, PLOT
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.values import FiniteRange
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import ALGORITHMS

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


class CertifyOptions(CellOptions, RunOptions):
    """Values of the options of ``mtpp certify``."""

    algorithm: str
    target_ratio: float
    require_ratio: float | None
    plot: str | None


@click.command("certify")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="PATH...")
@cell_options(bounds="Those to try, or all [default: those that pay], of")
@click.option(
    "--algorithm", default="auto", show_default=True, shell_complete=names_completion(ALGORITHMS),
    help="Of the partitions, as in `mtpp partition`.",
)  # fmt: skip
@click.option(
    "--target-ratio", type=FiniteRange(min=1), default=1.0, show_default=True, metavar="R",
    help="A cell is done when a ratio ≤ R is proven.",
)  # fmt: skip
@run_options()
@click.option(
    "--require-ratio", type=FiniteRange(min=1), metavar="R", help="Exit 1 unless each cell's ratio is proven ≤ R."
)
@click.option(
    "--plot", type=PLOT, metavar="FILE.png", help="Draw seconds of each method against ops; a CSV lands beside it."
)
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the table as JSON, whole or not at all.")
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("certify")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str | None,
    reading: Reading,
    output_format: str,
    console: Console,
    **asked: Unpack[CertifyOptions],
) -> None:
    """Partition models and prove how good the partitions are: a table with a row for each model and k.

    PATH is a model or a folder of models. At each cell the bounds are tried from cheap to strong until the ratio will
    do or the time is up. Ctrl-C ends the run with the table of what is done; with a store, the next run goes on there.
    """
    from mtpp.api.certify import CertifyRequest, certify_cells
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.options.table_outputs import check_table_outputs
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.host.stop_reason import StopReason
    from mtpp.views.certificate_plot import write_plot

    check_table_outputs(output=output, plot=asked["plot"])
    request = CertifyRequest(
        models=paths,
        stage_counts=asked["stage_counts"],
        reading=reading,
        limits=cell_limits(
            asked,
            target_ratio=asked["target_ratio"],
            algorithm=asked["algorithm"],
            proofs_only=asked["require_ratio"] is not None,
        ),
        deadline=deadline_from_start(asked["total_time_limit"]),
        jobs=asked["jobs"],
        store=asked["store"],
        scheduler=asked["scheduler"],
        overheads=ProcessOverheads(),
    )
    table = certify_cells(request, console)
    if table.cells:
        deliver(output, table, output_format, as_fraction=asked["shown_as"] == "fraction")
        if asked["plot"] is not None:
            write_plot(asked["plot"], table.cells, asked["time_limit"])
    if table.failure is not None:
        raise table.failure
    if table.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    required = asked["require_ratio"]
    unmet = [] if required is None else table.unmet(required)
    for line in unmet:
        click.echo(f"unmet: {line}", err=True)
    if unmet or table.problems or not table.cells:
        ctx.exit(1)
