"""``mtpp inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.reading import Reading
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options
from mtpp.ranges import MOST_DEPTH

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("inspect")
@click.argument("model", type=MODEL)
@click.option("--ops", is_flag=True, help="List every op with its work and sizes.")
@click.option(
    "--modules",
    type=click.IntRange(1, MOST_DEPTH),
    metavar="DEPTH",
    help="List modules in place of kinds of ops: 2 names of a path tell layers.0 from layers.1 (ONNX, PyTorch).",
)
@memory_limit_option()
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    ops: bool,
    modules: int | None,
    output_format: str,
    memory_limit: str | None,
    reading: Reading,
    console: Console,
) -> None:
    """Show what MODEL is made of, what its ops cost, and what the cost model does not know."""
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inspect import inspection
    from mtpp.cli.terminal.output import write_stdout

    if ops and modules is not None:
        raise click.UsageError("--ops and --modules exclude each other", ctx)
    read = read_model(model, reading, console.warn)
    write_stdout(inspection(read, ops=ops, modules=modules).text(output_format))
