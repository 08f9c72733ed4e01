"""Options that several commands share, and the objects they turn into."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypedDict, TypeVar, cast

import click

from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.made import stack
from mtpp.cli.options.values import FiniteRange

F = TypeVar("F", bound=Callable[..., Any])


class SearchOptions(TypedDict):
    """Values of :func:`search_options`."""

    time_limit: float | None
    work_limit: int | None
    seed: int
    jobs: int | None
    memory_limit: str | None


def output_options(*formats: str) -> Callable[[F], F]:
    """Add ``--format``, ``-q``, ``-v`` and ``--debug``."""
    return stack(
        click.option(
            "--format", "output_format", type=click.Choice(formats), default=formats[0], show_default=True,
            help="What to print on standard output.",
        ),
        noise_options(),
    )  # fmt: skip


def noise_options() -> Callable[[F], F]:
    """Add ``-q``, ``-v`` and ``--debug``; the command gets a ``console``."""

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*arguments: Any, quiet: bool, verbose: bool, **values: Any) -> Any:
            from mtpp.cli.terminal.console import Console

            return command(*arguments, console=Console(quiet=quiet, verbose=verbose), **values)

        return cast(F, _noise(run))

    _noise = stack(
        click.option("-q", "--quiet", is_flag=True, help="No progress and no warnings on standard error."),
        click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is being done."),
        click.option("--debug", is_flag=True, expose_value=False, help="Show a traceback when something fails."),
    )
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
