"""Check that the files of ``mtpp certify`` and ``mtpp bound`` can be written, before the work."""

from __future__ import annotations


def check_table_outputs(*, output: str | None = None, plot: str | None = None, export: str | None = None) -> None:
    """Check that everything can be written.

    Parameters
    ----------
    output, plot, export
        Options of these names; a picture has a CSV beside it.

    Raises
    ------
    InputError
        If there is no place for one, or its name does not say what it is to be.
    """
    from mtpp.api.mip_export import check_export
    from mtpp.api.output import check_output
    from mtpp.views.certificate_plot import check_plot

    if output not in (None, "-"):
        check_output(output)
    if plot is not None:
        check_plot(plot)
    if export is not None:
        check_export(export)
