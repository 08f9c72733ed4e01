"""``mtpp convert``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options import FormatOption, model_options, noise_options


@click.command("convert")
@click.argument("model")
@click.argument("output")
@click.option(
    "--to", "to_format", metavar="FORMAT", cls=FormatOption, formats="WRITERS",
    help="Write as {} [default: by OUTPUT's suffix].",
)  # fmt: skip
@model_options()
@noise_options()
def command(model: str, output: str, to_format: str | None, quiet: bool, verbose: bool, **options: Any) -> None:
    """Write MODEL as a graph with costs to OUTPUT (a name ending in .gz is compressed; - is standard output).

    The work of ONNX ops is modelled on the system chosen here and becomes part of the graph.
    """
    from mtpp.cli.console import Console
    from mtpp.cli.options import read_model
    from mtpp.cli.output import write_stdout
    from mtpp.formats.recognise import writer_for
    from mtpp.formats.sink import check_output, write_text_atomically

    writer = writer_for(output, to_format)
    if output != "-":
        check_output(output)
    console = Console(quiet=quiet, verbose=verbose)
    read = read_model(model, options, console.warn)
    assert writer.write is not None
    text = writer.write(read.graph)
    if output == "-":
        write_stdout(text)
    else:
        write_text_atomically(output, text)
        console.note(f"{output}: {read.graph.op_count} ops, {read.graph.tensor_count} tensors, {writer.name}")
