"""``mtpp verify``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options import output_options


@click.command("verify")
@click.argument("plan")
@click.option("--model", metavar="FILE", help="The model that the plan is for; not needed if the plan embeds it.")
@click.option("--deep", is_flag=True, help="Run the exhaustive search behind a bound of tier enumerated again.")
@click.option(
    "--require-tier", type=click.Choice(["exact", "enumerated", "solver"]), help="Exit 1 if the bound is less trusted."
)
@click.option("--max-input-size", default="2GiB", show_default=True, metavar="SIZE", help="Refuse larger inputs.")
@output_options("table", "json")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    plan: str,
    model: str | None,
    deep: bool,
    require_tier: str | None,
    max_input_size: str,
    output_format: str,
    **options: Any,
) -> None:
    """Check PLAN (a file, or - for standard input) from scratch, and the proof that it carries.

    Stages, costs, bound and ratio are derived anew in plain integers, by code that shares nothing with the solvers. A
    bound of tier enumerated rests on an exhaustive search, which only --deep runs again: with code of its own too, and
    about as long as the first time. How the plan was found (algorithm, seed, evaluations, times) is taken as it stands.
    Exit code 0: all else that the plan says is true; 1: something is false.
    """
    from mtpp.cli.checking import check_plan_file, report_text
    from mtpp.cli.console import Console
    from mtpp.cli.output import write_stdout
    from mtpp.verify import meets_tier

    if plan == "-" and model == "-":
        raise click.UsageError("plan and model cannot both be standard input", ctx)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    report = check_plan_file(plan, model, max_input_size, console if deep else None)
    write_stdout(report_text(report, output_format))
    if not report.passed:
        ctx.exit(1)
    if require_tier is not None and not meets_tier(report, require_tier):
        unmet = f"the bound is of tier {report.tier}"
        if report.tier == require_tier:
            unmet = f"the bound, of tier {report.tier}, was not checked again: use --deep"
        click.echo(f"unmet: --require-tier {require_tier}: {unmet}", err=True)
        ctx.exit(1)
