"""``mtpp generate transformer-training``, ``mmt``, ``dlrm`` and ``candle-uno``: models to be trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.cli.options.file_types import OUTPUT, SYSTEM
from mtpp.cli.options.generating import number_option
from mtpp.cli.options.made import stack
from mtpp.cli.options.shared import noise_options
from mtpp.cli.options.values import whole_numbers

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

F = TypeVar("F", bound=Callable[..., Any])

_MOST_SAMPLES = 10**6


def _run_options(system: str) -> Callable[[F], F]:
    """Add ``--system``, ``-o``, ``-q``, ``-v`` and ``--debug``."""
    return stack(
        click.option(
            "--system", type=SYSTEM, default=system, show_default=True, metavar="NAME|FILE",
            help="Whose peak rates times follow.",
        ),
        click.option(
            "-o", "--output", type=OUTPUT, default="-", metavar="FILE",
            help="Where to write [default: standard output].",
        ),
        noise_options(),
    )  # fmt: skip


def _branch_options(sizes: str) -> Callable[[F], F]:
    """Add what models of parallel branches share; *sizes* are the usual ones of micro-batches, for the help."""
    return stack(
        click.option(
            "--micro-batch-sizes", callback=whole_numbers(_MOST_SAMPLES), metavar="LIST",
            help=f"Samples that a device may take at once [default: {sizes}].",
        ),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), metavar="S",
            help="Draw the size of each branch [default: all are equal].",
        ),
        _run_options("v100"),
    )  # fmt: skip


@click.command("transformer-training", short_help="Transformers to be trained, for `mtpp plan`.")
@number_option("--layers", default=24, most=10_000, help="Layers between the embedding and the head.")
@number_option("--hidden", default=2048, most=10**6, help="Width of a token.")
@number_option("--heads", default=16, most=10**4, help="Attention heads.")
@number_option("--sequence", default=1024, most=10**6, help="Tokens of a sample.")
@number_option("--vocabulary", default=51_200, most=10**7, help="Words that a token may be.")
@number_option("--micro-batch-size", default=1, most=10**6, help="Samples of a micro-batch.")
@_run_options("a100")
def transformer_training(output: str, system: str, console: Console, **sizes: Any) -> None:
    """Make a decoder with configurations for 1, 2, 4 and 8 devices, with and without recomputation.

    Nothing is random. Memory is that of PipeDream-2BW with Adam; the system's link joins devices that share a layer.
    """
    from mtpp.api.generate import generate_transformer_training

    _write(lambda: generate_transformer_training(system, **sizes), output, console)


@click.command("mmt", short_help="Multi-modal transformers to be trained: branches that join at the end.")
@number_option("--branches", default=4, most=1_000, help="Modalities.")
@number_option("--layers", default=8, most=10_000, help="Transformer layers of each branch.")
@_branch_options("1,2,4,8,16,32")
def mmt(output: str, system: str, console: Console, **sizes: Any) -> None:
    """Make branches of Transformer layers that are concatenated at the end, with costs by micro-batch size.

    Shapes are those of GraphPipe's evaluation: 256 tokens of width 1024, 16 heads, feed-forward layers of width 4096,
    float32. Times are a roofline of whole layers, for each size, at the system's peak rates: 125 TFLOP/s of a V100.
    """
    from mtpp.api.generate import generate_multi_branch

    _write(lambda: generate_multi_branch("mmt", system, **sizes), output, console)


@click.command("dlrm", short_help="Recommendation models to be trained: dense and sparse branches.")
@number_option("--branches", default=7, most=1_000, help="Branches of dense features.")
@number_option("--sparse", default=7, most=1_000, least=0, help="Branches of sparse features, a table each.")
@number_option("--layers", default=4, most=10_000, help="Feed-forward layers of each dense branch.")
@_branch_options("16,32,64,128,256,512,1024,2048")
def dlrm(output: str, system: str, console: Console, branches: int, **sizes: Any) -> None:
    """Make a recommendation model of dense and sparse branches, with costs by micro-batch size.

    Shapes are those of GraphPipe's evaluation: feed-forward layers of width 4096, tables of a million embeddings of
    width 64 in bags of 100, and four feed-forward layers behind the join, whose number the paper does not state.
    """
    from mtpp.api.generate import generate_multi_branch

    _write(lambda: generate_multi_branch("dlrm", system, dense=branches, **sizes), output, console)


@click.command("candle-uno", short_help="CANDLE-Uno to be trained: branches of feed-forward layers.")
@number_option("--branches", default=7, most=1_000, help="Branches.")
@number_option("--layers", default=4, most=10_000, help="Feed-forward layers of each branch.")
@_branch_options("64,128,256,512,1024,2048,4096")
def candle_uno(output: str, system: str, console: Console, **sizes: Any) -> None:
    """Make branches of feed-forward layers that are concatenated, with costs by micro-batch size.

    Shapes are those of GraphPipe's evaluation: layers of width 4096, and four more behind the join.
    """
    from mtpp.api.generate import generate_multi_branch

    _write(lambda: generate_multi_branch("candle-uno", system, **sizes), output, console)


def _write(make: Callable[[], Any], output: str, console: Console) -> None:
    """Make a model, and write it to a file or to standard output."""
    from mtpp.api.generate import training_model_text, write_training_model_file
    from mtpp.api.output import check_output
    from mtpp.cli.terminal.output import write_stdout

    if output != "-":
        check_output(output)
    model = make()
    if output == "-":
        write_stdout(training_model_text(model))
        return
    write_training_model_file(model, output)
    console.say(f"{output}: {len(model.layers):,} layers, {len(model.edges):,} edges")
