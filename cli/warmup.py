"""``mtpp warmup``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.options.completing import list_completion
from mtpp.cli.options.shared import noise_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mtpp.cli.terminal.console import Console


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    from mtpp.api.warmup import names_of_commands

    return list_completion(names_of_commands())(ctx, param, incomplete)


@click.command("warmup")
@click.option(
    "--for", "commands", metavar="COMMAND,…", shell_complete=_complete,
    help="Only for these, as partition,verify [default: all].",
)  # fmt: skip
@noise_options()
def command(commands: str | None, console: Console) -> None:
    """Compile inner loops now, so that later runs start at once.

    An installed package has most of them compiled. What is missing is compiled and kept in the user's cache folder, by
    command lines on samples. Run it once when building a container image.
    """
    from mtpp.api.warmup import warmup
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.host.deadline import process_age_s

    console.note("compiling …")
    ready = warmup(commands)
    write_stdout(f"ready: {', '.join(ready)}, in {process_age_s():.1f} s")
