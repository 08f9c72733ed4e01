"""``mtpp completion``."""

from __future__ import annotations

import click

from mtpp.cli.options.values import OneOf


@click.command("completion")
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
@click.option("--debug", is_flag=True, expose_value=False, help="Show a traceback when something fails.")
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what SHELL needs to complete commands, options, their values and files of mtpp.

    For this shell alone: eval "$(mtpp completion bash)"; in fish: mtpp completion fish | source. For good, write it to
    a file that the shell reads:

    \b
    mtpp completion bash > ~/.local/share/bash-completion/completions/mtpp
    mtpp completion zsh > FOLDER/_mtpp       # a folder of $fpath
    mtpp completion fish > ~/.config/fish/completions/mtpp.fish
    """  # noqa: D301 - click reads the character
    from mtpp.cli.terminal.completing import script
    from mtpp.cli.terminal.output import write_stdout

    write_stdout(script(shell, ctx.find_root().command))
