"""``mtpp bound``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from mtpp.api.options.reading import Reading
from mtpp.cli.options.cells import cell_limits, cell_options, total_time_option
from mtpp.cli.options.file_types import MODEL, OUTPUT
from mtpp.cli.options.made import options
from mtpp.cli.options.mip_export import ExportOptions, check_export_options, write_mip
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


class BoundOptions(ExportOptions):
    """Values of the options of ``mtpp bound``."""

    total_time_limit: float | None


@click.command("bound")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="MODEL...")
@cell_options(bounds="Those to work at [default: all], of")
@total_time_option()
@click.option(
    "--export",
    type=OUTPUT,
    metavar="FILE.mps",
    help="Write the MIP of the one bound named, for one model and one k, as MPS or LP (FILE.lp), and stop.",
)
@click.option(
    "--position", type=click.IntRange(min=1), metavar="J",
    help="With --export of bottleneck-guess, a MIP for each J: the stage that has the average work.",
)  # fmt: skip
@click.option(
    "--cutoff", type=click.IntRange(1, 2**62 - 1), metavar="TICKS",
    help="Look for no partition, and for no bound above TICKS, which need not be what any partition costs.",
)  # fmt: skip
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the table as JSON, whole or not at all.")
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("bound")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str | None,
    reading: Reading,
    output_format: str,
    console: Console,
    **asked: Unpack[BoundOptions],
) -> None:
    """Prove what no partition of MODEL into k stages can beat.

    MODEL is a model or a folder of models. Every bound gets an equal share of the time of a cell and is worked at for
    itself; `mtpp certify` goes from cheap to strong ones and stops when the ratio will do.
    """
    from mtpp.api.bound import BoundRequest, bound_cells
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.options.table_outputs import check_table_outputs
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.host.stop_reason import StopReason

    check_table_outputs(output=output, export=asked["export"])
    check_export_options(asked["export"], asked["position"], output)
    limits = cell_limits(asked, each=True, cutoff=asked["cutoff"])
    if asked["export"] is not None:
        write_mip(asked["export"], paths, reading, asked, limits.bounds, console)
        return
    request = BoundRequest(
        models=paths,
        stage_counts=asked["stage_counts"],
        reading=reading,
        limits=limits,
        deadline=deadline_from_start(asked["total_time_limit"]),
        overheads=ProcessOverheads(),
    )
    table = bound_cells(request, console)
    if table.cells:
        deliver(output, table, output_format, as_fraction=asked["shown_as"] == "fraction")
    if table.failure is not None:
        raise table.failure
    if table.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    if table.problems or not table.cells:
        ctx.exit(1)
