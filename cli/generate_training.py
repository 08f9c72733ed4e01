"""``mtpp generate transformer-training``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options.file_types import OUTPUT, SYSTEM
from mtpp.cli.options.generating import number_option
from mtpp.cli.options.shared import noise_options


@click.command("transformer-training", short_help="Transformers to be trained, for `mtpp plan`.")
@number_option("--layers", default=24, most=10_000, help="Layers between the embedding and the head.")
@number_option("--hidden", default=2048, most=10**6, help="Width of a token.")
@number_option("--heads", default=16, most=10**4, help="Attention heads.")
@number_option("--sequence", default=1024, most=10**6, help="Tokens of a sample.")
@number_option("--vocabulary", default=51_200, most=10**7, help="Words that a token may be.")
@number_option("--micro-batch-size", default=1, most=10**6, help="Samples of a micro-batch.")
@click.option(
    "--system",
    type=SYSTEM,
    default="a100",
    show_default=True,
    metavar="NAME|FILE",
    help="Whose peak rates times follow.",
)
@click.option(
    "-o", "--output", type=OUTPUT, default="-", metavar="FILE", help="Where to write [default: standard output]."
)
@noise_options()
def transformer_training(output: str, system: str, quiet: bool, verbose: bool, **sizes: Any) -> None:
    """Make a decoder with configurations for 1, 2, 4 and 8 devices, with and without recomputation.

    Nothing is random. Memory is that of PipeDream-2BW with Adam; the system's link joins devices that share a layer.
    """
    from mtpp.api.generate import generate_transformer_training, training_model_text, write_training_model_file
    from mtpp.api.output import check_output
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.output import write_stdout

    if output != "-":
        check_output(output)
    model = generate_transformer_training(system, **sizes)
    if output == "-":
        write_stdout(training_model_text(model))
        return
    write_training_model_file(model, output)
    Console(quiet=quiet, verbose=verbose).say(f"{output}: {len(model.layers):,} layers, {len(model.edges):,} edges")
