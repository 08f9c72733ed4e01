"""Options that the families of ``mtpp generate`` share, and the end of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.cli.options.file_types import OUTPUT_FOLDER
from mtpp.cli.options.shared import noise_options
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.recipes import Recipe, Size
    from mtpp.cli.terminal.console import Console

F = TypeVar("F", bound=Callable[..., Any])

_LARGEST = 2_000_000
_MOST_GRAPHS = 1_000_000


def size_option(name: str, destination: str, *, default: str, help: str, least: int = 1) -> Callable[[F], F]:
    """Add an option whose value is a whole number, or two with a hyphen between them."""

    def read(ctx: click.Context, param: click.Parameter, text: str) -> Size:
        return _range_of(text, least)

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


def write_graphs(recipe: Recipe, *, seed: int, count: int, output: str, console: Console) -> None:
    """Draw a graph per seed; print it, or write each to a file.

    Raises
    ------
    InputError
        If the graphs cannot be drawn or written; those before stay.
    """
    from mtpp.api.generate import generate, generate_files, graph_text
    from mtpp.cli.terminal.output import write_stdout

    if output != "-":
        generate_files(recipe, output, seed=seed, count=count, observer=console)
    elif count == 1:
        write_stdout(graph_text(next(generate(recipe, seed=seed))))
    else:
        raise InputError("several graphs are no single output", parameter="count", remedy="add ‹folder› FOLDER/")
