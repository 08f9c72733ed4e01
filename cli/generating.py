"""What the families of ``mtpp generate`` share: sizes that may be ranges, options of a run, and writing the graphs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mtpp.cli.options.file_types import OUTPUT_FOLDER
from mtpp.cli.options.shared import noise_options
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console
    from mtpp.inference.graph import CostGraph

F = TypeVar("F", bound=Callable[..., Any])

_LARGEST = 2_000_000
_MOST_GRAPHS = 1_000_000
_FILE_SUFFIXES = (".json", ".gz")


class Sizes(NamedTuple):
    """A range of sizes, both ends included, and the name of the option that gave it."""

    low: int
    high: int
    option: str

    @property
    def is_range(self) -> bool:
        """Whether graphs of different seeds may differ in size."""
        return self.low < self.high

    def drawn(self, seed: int) -> int:
        """Return the size of the graph of that seed, drawn apart from every other option's."""
        import numpy as np

        return int(np.random.default_rng([seed, *self.option.encode()]).integers(self.low, self.high + 1))


def size_option(name: str, destination: str, *, default: str, help: str, least: int = 1) -> Callable[[F], F]:
    """Add an option whose value is a whole number, or two with a hyphen between them."""

    def read(ctx: click.Context, param: click.Parameter, text: str) -> Sizes:
        return Sizes(*_range_of(text, least), name)

    return click.option(
        name, destination, callback=read, default=default, show_default=True, metavar="N|LOW-HIGH", help=help
    )


def _range_of(text: str, least: int) -> tuple[int, int]:
    parts = text.split("-")
    # isdecimal alone is true of digits of every script.
    if len(parts) > 2 or not all(part.isascii() and part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is neither a whole number nor a range such as 50-200")
    if max(map(len, parts)) > len(str(_LARGEST)) or max(map(int, parts)) > _LARGEST:
        raise click.BadParameter(f"{text} is above {_LARGEST:,}")
    low, high = int(parts[0]), int(parts[-1])
    if low > high:
        raise click.BadParameter(f"{text} is a range that ends before it begins")
    if low < least:
        raise click.BadParameter(f"{low} is below {least}, the least there is")
    return low, high


def number_option(
    name: str, *, help: str, default: int | None = None, least: int = 1, most: int | None = None
) -> Callable[[F], F]:
    """Add an option whose value is the same for all graphs."""
    return click.option(name, type=click.IntRange(least, most), default=default, show_default=True, help=help)


def choice_option(name: str, *choices: str, help: str, default: str | None) -> Callable[[F], F]:
    """Add an option whose value is one of some words."""
    return click.option(name, type=click.Choice(choices), default=default, show_default=True, help=help)


def run_options(function: F) -> F:
    """Add ``--seed``, ``--count``, ``-o``, ``-q``, ``-v`` and ``--debug``."""
    for decorate in (
        noise_options(),
        click.option(
            "-o", "--output", type=OUTPUT_FOLDER, default="-", metavar="FILE|FOLDER/",
            help="Where to write [default: standard output]; a folder is made if missing.",
        ),
        click.option("--count", type=click.IntRange(1, _MOST_GRAPHS), default=1, metavar="N",
                     help="Graphs, of seeds S to S + N - 1, into a folder [default: 1]."),
        click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="S",
                     help="Of all random choices."),
    ):  # fmt: skip
        function = decorate(function)
    return function


def write_graphs(
    draw: Callable[[int], CostGraph], *, seed: int, count: int, output: str, quiet: bool, verbose: bool
) -> None:
    """Draw a graph per seed and write each, whole or not at all, over what may be there.

    Raises
    ------
    InputError
        If the graphs cannot be drawn or written; those before stay.
    """
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.formats.graphs.native import write_native
    from mtpp.formats.io.sink import check_output

    console = Console(quiet=quiet, verbose=verbose)
    if output == "-" and count == 1:
        write_stdout(write_native(draw(seed)))
        return
    if count > 1 or output.endswith(("/", os.sep)) or os.path.isdir(output):
        _write_folder(draw, range(seed, seed + count), _made_folder(output), console)
        return
    check_output(output)
    _write_file(output, draw(seed), console.say)


def _write_folder(draw: Callable[[int], CostGraph], seeds: range, folder: Path, console: Console) -> None:
    ops = 0
    for seed in seeds:
        graph = draw(seed)
        ops += graph.op_count
        _write_file(str(folder / f"{graph.name}.json"), graph, console.note if len(seeds) > 1 else console.say)
    if len(seeds) > 1:
        console.say(f"{folder}: {len(seeds):,} graphs, {ops:,} ops in all")


def _write_file(path: str, graph: CostGraph, tell: Callable[[str], None]) -> None:
    from mtpp.formats.graphs.native import write_native
    from mtpp.formats.io.sink import write_text_atomically

    write_text_atomically(path, write_native(graph))
    tell(f"{path}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors")


def _made_folder(path: str) -> Path:
    folder = Path(path)
    if path == "-":
        raise InputError("several graphs are no single output", source="--count", remedy="add -o FOLDER/")
    if folder.suffix in _FILE_SUFFIXES and not folder.is_dir() and not path.endswith(("/", os.sep)):
        raise InputError("several graphs do not go into one file", source=path, remedy="give a folder: -o FOLDER/")
    try:
        os.mkdir(path)
    except FileExistsError:
        if not folder.is_dir():
            raise InputError("is not a directory", source=path, remedy="give the name of a folder") from None
    except FileNotFoundError:
        raise InputError(f"there is no directory {str(folder.parent)!r}", source=path, remedy="make it first") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be made: {reason}", source=path, remedy="choose another place") from None
    return folder
