"""``mtpp systems``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.machine import preset_names
from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.shared import output_options

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("systems")
@click.argument("name", required=False, shell_complete=names_completion(preset_names))
@output_options("table", "json", "csv", "markdown")
def command(name: str | None, output_format: str, console: Console) -> None:
    """List the systems that --system knows by name, with their figures.

    NAME shows one of them with the sources of its figures; case and punctuation do not count: A100, RTX-4090.
    """
    from mtpp.api.inputs.systems import systems
    from mtpp.cli.terminal.output import write_stdout

    write_stdout(systems(name).text(output_format))
