"""``mtpp machine``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.kinds import Flag
from mtpp.api.options.machine import Describing
from mtpp.api.options.option import Option
from mtpp.api.options.path_kinds import InputPath
from mtpp.cli.options.file_types import FileType
from mtpp.cli.options.made import made, options
from mtpp.cli.options.shared import noise_options, output_path

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("machine")
@click.argument("listing", type=FileType(InputPath("the list of GPUs")), metavar="FILE", required=False)
@made("this", Option(False, Flag(), "The machine that this runs on: its GPUs, or else its processor, measured."))
@options(Describing)
@output_path("Write it there, whole or not at all, and over no other file.", "FILE.toml")
@noise_options()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    listing: str | None,
    this: bool,
    output: str | None,
    describing: Describing,
    console: Console,
) -> None:
    """Write a machine file for --machine from a list of GPUs, or of this machine.

    FILE (-: standard input) has what `nvidia-smi --query-gpu=name,memory.total,memory.used --format=csv` prints, with
    or without header and units. Equal GPUs in a row become one table. Memory in use is their reserve. Rates of boards
    that are not known are left open, with a comment: fill them in, or name a preset.
    """
    from mtpp.api.inputs.described_machine import check_new_file, describe_machine
    from mtpp.cli.terminal.output import write_stdout

    if (listing is None) != this:
        raise click.UsageError("give either FILE or --this", ctx)
    if output not in (None, "-"):
        check_new_file(output)
    described = describe_machine(listing, **describing.values())
    for name in described.open_names:
        console.warn(f"{name}: no rates are known; fill in peak_flops, memory_bandwidth and bandwidth of its system")
    if output in (None, "-"):
        write_stdout(described.text)
        return
    described.save(output)
    console.note(f"{output}: {described.devices} device{'s' if described.devices > 1 else ''}")
