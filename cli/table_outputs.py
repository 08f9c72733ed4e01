"""The files that ``mtpp certify`` and ``mtpp bound`` are to write: looked at before the work, each another one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mtpp.errors import InputError


def check_table_outputs(
    paths: Sequence[str],
    *,
    output: str | None = None,
    store: str | None = None,
    plot: str | None = None,
    export: str | None = None,
) -> None:
    """Check that everything can be written, and that nothing takes the place of something else.

    Parameters
    ----------
    paths
        Of the models.
    output, store, plot, export
        Options of these names; a picture has a CSV beside it.

    Raises
    ------
    InputError
        If two of them are the same file, there is no place for one, or its name does not say what it is to be.
    """
    from mtpp.cli.certificate_plot import check_plot, csv_path
    from mtpp.cli.exporting import check_export
    from mtpp.formats.sink import check_output

    if output not in (None, "-"):
        check_output(output)
    if plot is not None:
        check_plot(plot)
    if export is not None:
        check_export(export)
    named = [
        ("--output", output),
        ("--store", store),
        ("--plot", plot),
        ("--plot", None if plot is None else csv_path(plot)),
        ("--export", export),
    ]
    taken = {os.path.realpath(path): "a model" for path in paths if path != "-"}
    for option, path in named:
        if path is None or path == "-":
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise InputError(f"{path} is {taken[place]} too", source=option, remedy="name another file")
        taken[place] = f"the file of {option}"
