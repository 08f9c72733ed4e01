"""``--export`` of ``mtpp bound``: options that go with it or not, and the file that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


def check_export_options(options: dict[str, Any], output: str | None) -> None:
    """Check that what goes with ``--export`` alone, or not with it, is not given otherwise.

    Raises
    ------
    InputError
        If an option would have no effect.
    """
    if options["export"] is None and options["position"] is not None:
        raise InputError("goes with --export alone", source="--position", remedy="leave it out")
    if options["export"] is not None and output is not None:
        raise InputError("there is no table with --export", source="--output", remedy="leave it out")


def write_mip(paths: tuple[str, ...], options: dict[str, Any], bounds: Sequence[str], console: Console) -> None:
    """Write the MIP of a bound, whole or not at all, and say on standard error what it is about."""
    from mtpp.api.mip_export import ExportRequest, export_mip
    from mtpp.cli.options.limits import search_memory
    from mtpp.cli.options.shared import reading_of_model
    from mtpp.cli.terminal.output import write_stdout

    request = ExportRequest(
        models=paths,
        stage_counts=options["stage_counts"],
        bounds=() if options["bounds"] is None else tuple(bounds),
        path=options["export"],
        reading=reading_of_model(options),
        position=options["position"],
        cutoff=options["cutoff"],
        seed=options["seed"],
        memory_bytes=search_memory(options["memory_limit"]),
    )
    mip = export_mip(request, console)
    if request.path == "-":
        write_stdout(mip.data.decode())
    else:
        mip.save(request.path)
    console.say(mip.describe())
