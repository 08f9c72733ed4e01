"""``--export`` of ``mtpp bound``: options that go with it or not, and the file that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.cli.options.cells import CellOptions
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.options.reading import Reading
    from mtpp.cli.terminal.console import Console


class ExportOptions(CellOptions):
    """Values of the options of ``mtpp bound`` that a file with a MIP depends on."""

    export: str | None
    position: int | None
    cutoff: int | None


def check_export_options(export: str | None, position: int | None, output: str | None) -> None:
    """Check that what goes with ``--export`` alone, or not with it, is not given otherwise.

    Raises
    ------
    InputError
        If an option would have no effect.
    """
    if export is None and position is not None:
        raise InputError("goes with --export alone", source="--position", remedy="leave it out")
    if export is not None and output is not None:
        raise InputError("there is no table with --export", source="--output", remedy="leave it out")


def write_mip(
    path: str,
    models: tuple[str, ...],
    reading: Reading,
    options: ExportOptions,
    bounds: Sequence[str],
    console: Console,
) -> None:
    """Write the MIP of a bound to *path*, whole or not at all, and say on standard error what it is about."""
    from mtpp.api.mip_export import ExportRequest, export_mip
    from mtpp.api.options.search import search_memory
    from mtpp.cli.terminal.output import write_stdout

    request = ExportRequest(
        models=models,
        stage_counts=options["stage_counts"],
        bounds=() if options["bounds"] is None else tuple(bounds),
        path=path,
        reading=reading,
        position=options["position"],
        cutoff=options["cutoff"],
        seed=options["seed"],
        memory_bytes=search_memory(None),
    )
    mip = export_mip(request, console)
    if request.path == "-":
        write_stdout(mip.data.decode())
    else:
        mip.save(request.path)
    console.say(mip.describe())
