"""``mtpp bound``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options.cells import cell_options, total_time_option
from mtpp.cli.options.file_types import MODEL, OUTPUT
from mtpp.cli.options.shared import model_options, output_options

INTERRUPTED = 130


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
@model_options()
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[str, ...], output: str | None, output_format: str, **options: Any
) -> None:
    """Prove what no partition of MODEL into k stages can beat.

    MODEL is a model or a folder of models. Every bound gets an equal share of the time of a cell and is worked at for
    itself; `mtpp certify` goes from cheap to strong ones and stops when the ratio will do.
    """
    from mtpp.cli.certificate_rows import bounds_alone
    from mtpp.cli.certifying import CellRun, certify_models
    from mtpp.cli.exporting import check_export_options, export
    from mtpp.cli.options.cells import cell_limits
    from mtpp.cli.options.table_outputs import check_table_outputs
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.solvers.certify.cells.serial import run_here
    from mtpp.views.certificates import certificates_json, certificates_text
    from mtpp.views.cut_short import bounds_cut_short

    check_table_outputs(output=output, export=options["export"])
    check_export_options(options, output)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    limits = cell_limits(options, each=True)
    if options["export"] is not None:
        export(paths, options, limits.bounds, console)
        return
    deadline = deadline_from_start(options["total_time_limit"])
    plan = CellRun(limits, run_here, jobs=1, deadline=deadline, processes=False)
    table = certify_models(paths, options, plan, console)
    rows = [bounds_alone(row) for row in table.rows]

    def shown() -> str:
        if output_format == "json":
            return certificates_json(rows)
        as_fraction, notes = options["shown_as"] == "fraction", [*bounds_cut_short(rows, limits.bounds)]
        if options["cutoff"] is not None:
            notes.append(("cutoff", f"no bound above {options['cutoff']} ticks was sought"))
        return certificates_text(rows, output_format, as_fraction=as_fraction, with_upper=False, notes=notes)

    if rows:
        deliver(output, lambda: certificates_json(rows), shown)
    if table.failure is not None:
        raise table.failure
    if table.interrupted:
        ctx.exit(INTERRUPTED)
    if table.problems or not rows:
        ctx.exit(1)
