"""``mtpp inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.graphs import Inspecting
from mtpp.api.options.language_models import Stages
from mtpp.api.options.reading import Reading
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import memory_limit_option, output_options

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("inspect")
@click.argument("model", type=MODEL)
@options(Inspecting)
@memory_limit_option()
@options(Stages)
@options(
    Reading,
    machine="Of a language model: devices in order, which may differ. Layers have times on each.",
    batch="Sequences in a step of a language model [default: --sequences, over the stages of -k or --machine].",
)
@output_options("table", "json", "csv", "markdown")
def command(
    model: str,
    inspecting: Inspecting,
    stages: Stages,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Show what MODEL is made of, what its ops cost, and what the cost model does not know.

    Sizes that it leaves open are taken as proposed, unless --dim says them.
    Of a language model (its folder, config.json, .gguf, .safetensors or an index of such) it shows weights and caches.
    """
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.inspect import inspected_file
    from mtpp.api.language_models.inspection import language_model_inspection, refuse_reading, refuse_stages
    from mtpp.cli.terminal.output import write_stdout

    if reading.from_format is None and names_language_model(model):
        refuse_reading(reading)
        found = language_model_inspection(
            model, inspecting, reading, reading.sequences, k=stages.k, machine=reading.placed
        )
        write_stdout(found.text(output_format))
        return
    refuse_stages(stages.k, reading.machine)
    write_stdout(inspected_file(model, reading, inspecting, console).text(output_format))
