"""``mtpp verify``."""

from __future__ import annotations

from typing import Unpack

import click

from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import COSTS, DOCUMENT, MODEL
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.shared import FiniteRange, output_options, reading_options
from mtpp.cli.options.verify_terms import VerifyOptions, held_to_options

FALSE, UNCHECKED = 1, 3
"""Exit codes."""


@click.command("verify")
@click.argument("document", type=DOCUMENT, metavar="FILE")
@click.option(
    "--model", "models", type=MODEL, multiple=True, metavar="PATH",
    help="The model that a plan is for, if it embeds none. Models of a table, or folders of them; repeatable.",
)  # fmt: skip
@click.option("--costs", type=COSTS, metavar="FILE", help="Measured times of the ops, if it was made with them.")
@click.option(
    "--deep/--shallow", default=True, show_default=True, help="Run exhaustive searches again, or leave them out."
)
@click.option(
    "--time-limit", type=FiniteRange(min=0, min_open=True), metavar="S",
    help="Seconds from the start of the process; what is not checked by then is unchecked.",
)  # fmt: skip
@click.option("--accept-unchecked", is_flag=True, help="Exit 0 in place of 3.")
@click.option(
    "--require-tier", type=click.Choice(["exact", "enumerated", "solver"]), help="Exit 1 if a bound is less trusted."
)
@memory_limit_option()
@held_to_options()
@reading_options()
@click.option(
    "--max-input-size", metavar="SIZE", show_default="2GiB for models, 256MiB for FILE", help="Refuse larger inputs."
)
@output_options("table", "json")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    document: str,
    models: tuple[str, ...],
    accept_unchecked: bool,
    require_tier: str | None,
    output_format: str,
    **options: Unpack[VerifyOptions],
) -> None:
    """Check FILE, a plan, a training plan or a table of certificates (- for standard input), and the proofs in it.

    Stages, costs, bounds and ratios are derived from scratch in plain integers and fractions, by code that shares
    nothing with the solvers; the exhaustive search behind a bound of tier enumerated runs again, which takes about as
    long as the first time. Each claim gets a verdict: ok, false, or unchecked, such as bounds of tier solver, which
    nobody can check. Rows that begin with – are what FILE records or chose itself: how it was found is taken as it
    stands, and its system and sizes are held to --system, --bandwidth, --dim and so on where these are given. The
    models of a table are found by SHA-256 among those given, or else where its rows say, seen from the table's folder
    or this one. What decided how a model is read (--time-unit and so on) has to be given again; only training plans
    say themselves what times without a unit are in.

    Exit codes: 0 every claim was checked and holds; 1 something is false; 2 bad usage or a malformed FILE; 3 nothing is
    false, but some claim is unchecked.
    """
    from mtpp.api.verify import verify_document
    from mtpp.cli.options.verify_terms import verify_request
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.terminal_safe import terminal_safe
    from mtpp.views.verification import verification_text

    if [document, options["costs"], *models].count("-") > 1:
        raise click.UsageError("only one of plan, model and costs can be standard input", ctx)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    found = verify_document(verify_request(document, models, options), console).told(flag_of)
    write_stdout(verification_text(found.report, output_format))
    unmet = found.unmet(require_tier) if require_tier else []
    for why in unmet if found.exit_code != FALSE else ():
        click.echo(terminal_safe(f"unmet: --require-tier {require_tier}: {why}"), err=True)
    if unmet:
        ctx.exit(FALSE)
    ctx.exit(0 if accept_unchecked and found.exit_code == UNCHECKED else found.exit_code)
