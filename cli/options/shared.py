"""Options that several commands share, and the objects they turn into."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from mtpp.api.options.kinds import Choice, Flag, MemoryLimit
from mtpp.api.options.option import Option, Options, option
from mtpp.api.options.path_kinds import OutputPath
from mtpp.cli.options.made import made, options, stack

F = TypeVar("F", bound=Callable[..., Any])


SHOWN_AS = option(
    "ratio", Choice(("ratio", "fraction")), "Bounds in summaries: best partition / bound, or bound / best partition."
)
EMBED = option(False, Flag(), "Put the graph into the plan, so that `mtpp verify` needs no model.")


OPEN = option(False, Flag(), "Show the page in a browser.")


def output_option(help: str) -> Any:
    """Return the field of a record for the file that a command writes: ``-o``."""
    return option(None, OutputPath(), help, "FILE", also="-o")


def output_path(help: str, metavar: str = "FILE", *, folder: bool = False, default: Any = None) -> Callable[[F], F]:
    """Add ``-o``, the file or the folder that a command writes."""
    return made("output", Option(default, OutputPath(folder=folder), help, metavar, "-o"))


class Process(Options):
    """Limits of the process that a command runs in."""

    memory_limit: int | None = option(None, MemoryLimit(), "Of all processes together, at least 512MiB.", "SIZE")


def memory_limit_option() -> Callable[[F], F]:
    """Add ``--memory-limit``, which holds for the whole process from here on; the command does not see it."""

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*arguments: Any, process: Process, **values: Any) -> Any:
            return command(*arguments, **values)

        return cast(F, options(Process)(run))

    return decorate


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
            from mtpp.cli.terminal.waiting import waiting_for

            ctx = click.get_current_context()
            name = ctx.command_path.split()[:2][-1]  # of a subcommand, the command
            with waiting_for(name, ctx.params, quiet=noise.quiet) as waiting:
                console = Console(quiet=noise.quiet, verbose=noise.verbose, waiting=waiting)
                return command(*arguments, console=console, **values)

        return cast(F, options(Noise)(run))

    return decorate
