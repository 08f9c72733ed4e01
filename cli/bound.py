"""``mtpp bound``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.cells import Bounding
from mtpp.api.options.option import Options
from mtpp.api.options.reading import Reading
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import SHOWN_AS, output_option, output_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.errors import InputError
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from mtpp.api.cells.overlapping import OverlappingRanges
    from mtpp.api.mip_export import ExportedMip
    from mtpp.cli.terminal.console import Console


class Written(Options):
    """The table, and how it is written."""

    shown_as: str = SHOWN_AS
    output: str | None = output_option("Write the table as JSON, whole or not at all.")


@click.command("bound")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="MODEL...")
@options(Bounding, Written, Reading)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("bound")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    bounding: Bounding,
    written: Written,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Prove what no partition of MODEL into k stages can beat.

    MODEL is a model or a folder of models. Every bound gets an equal share of the time of a cell and is worked at for
    itself; `mtpp certify` goes from cheap to strong ones and stops when the ratio will do.
    """
    from mtpp.api.bound import bound_cells
    from mtpp.api.mip_export import check_export, export_mip
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.terminal.delivery import check_output, deliver
    from mtpp.host.deadline import deadline_from_start
    from mtpp.host.stop_reason import StopReason

    asked, output = bounding, written.output
    check_output(output)
    if asked.export is not None:
        check_export(asked.export)
    if asked.export is None and asked.position is not None:
        raise InputError("goes with --export alone", parameter="position", remedy="leave it out")
    if asked.export is not None:
        if output is not None:
            raise InputError("there is no table with --export", parameter="output", remedy="leave it out")
        _write_mip(asked.export, export_mip(paths, asked, reading, console), console)
        return
    if asked.overlapping:
        deliver(output, _overlapping(paths, asked, reading, console), output_format)
        return
    deadline = deadline_from_start(asked.total_time_limit_s)
    table = bound_cells(paths, asked, reading, console, deadline, ProcessOverheads())
    if table.cells:
        deliver(output, table, output_format, as_fraction=written.shown_as == "fraction")
    if table.failure is not None:
        raise table.failure
    if table.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    if table.problems or not table.cells:
        ctx.exit(1)


def _overlapping(paths: tuple[str, ...], asked: Bounding, reading: Reading, console: Console) -> OverlappingRanges:
    """Return the bound of one model for ranges of layers that overlap."""
    from mtpp.api.cells.overlapping import bound_overlapping
    from mtpp.api.inputs.model import read_model

    for name in ("k", "bounds", "cutoff"):
        if getattr(asked, name) is not None:
            raise InputError("does not go with --overlapping", parameter=name, remedy="leave it out")
    if len(paths) > 1:
        raise InputError("--overlapping is of one model", parameter="model", remedy="give one")
    return bound_overlapping(
        read_model(paths[0], reading, console.warn), None if reading.machine is None else str(reading.machine)
    )


def _write_mip(path: str, mip: ExportedMip, console: Console) -> None:
    """Write a MIP, whole or not at all, and say on standard error what it is about."""
    from mtpp.cli.terminal.output import write_stdout

    if path == "-":
        write_stdout(mip.data.decode())
    else:
        mip.save(path)
    console.say(mip.describe())
