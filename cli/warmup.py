"""``mtpp warmup``."""

from __future__ import annotations

import click

from mtpp.cli.options.shared import noise_options


@click.command("warmup")
@noise_options()
def command(quiet: bool, verbose: bool) -> None:
    """Compile all inner loops now, so that later runs start at once.

    Machine code is kept beside the installed package (or in the user's cache folder where that cannot be written).
    Run it once when building a container image.
    """
    from mtpp.api.warmup import warmup
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.host.process_age import process_age_s

    Console(quiet=quiet, verbose=verbose).note("compiling …")
    count = warmup()
    write_stdout(f"ready: {count} solvers compiled in {process_age_s():.1f} s")
