"""Options that several commands share, and the objects they turn into."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypedDict, TypeVar, cast

import click

from mtpp.api.options.kinds import Choice, Flag
from mtpp.api.options.option import Option, Options, option
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.made import made, options, stack
from mtpp.cli.options.values import FiniteRange

F = TypeVar("F", bound=Callable[..., Any])


class SearchOptions(TypedDict):
    """Values of :func:`search_options`."""

    time_limit: float | None
    work_limit: int | None
    seed: int
    jobs: int | None
    memory_limit: str | None


class Noise(Options):
    """Things that a command says on standard error."""

    quiet: bool = option(False, Flag(), "No progress and no warnings on standard error.", also="-q")
    verbose: bool = option(False, Flag(), "Say on standard error what is being done.", also="-v")
    debug: bool = option(False, Flag(), "Show a traceback when something fails.")


def output_options(*formats: str) -> Callable[[F], F]:
    """Add ``--format``, ``-q``, ``-v`` and ``--debug``."""
    form = Option(formats[0], Choice(formats), "What to print on standard output.")
    return stack(made("output_format", form), noise_options())


def noise_options() -> Callable[[F], F]:
    """Add ``-q``, ``-v`` and ``--debug``; the command gets a ``console``."""

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*arguments: Any, noise: Noise, **values: Any) -> Any:
            from mtpp.cli.terminal.console import Console

            return command(*arguments, console=Console(quiet=noise.quiet, verbose=noise.verbose), **values)

        return cast(F, options(Noise)(run))

    return decorate


def search_options(*, time_limit: str) -> Callable[[F], F]:
    """Add what bounds a search; *time_limit* says in the help what the seconds are counted from."""
    return stack(
        click.option("--time-limit", type=FiniteRange(min=0, min_open=True), metavar="S", help=time_limit),
        click.option("--work-limit", type=click.IntRange(min=1), metavar="N", help="Evaluate at most N candidates."),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of all random choices."
        ),
        click.option(
            "-j", "--jobs", type=click.IntRange(min=1),
            help="Threads [default: all cores]; without --time-limit they never change the result.",
        ),
        memory_limit_option("; by default an exhaustive search may take half of what is free"),
    )  # fmt: skip
