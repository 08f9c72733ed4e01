"""``mtpp plan``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.cli.options import output_options
from mtpp.cli.training_options import rule_options, run_options, system_options

INTERRUPTED = 130


@click.command("plan")
@click.argument("model")
@click.option(
    "--planner", type=click.Choice(("piper", "equi", "pipedream-2bw")), default="piper", show_default=True,
    help="Any stages, or the equal ones of two baselines.",
)  # fmt: skip
@system_options()
@rule_options()
@click.option("--time-unit", metavar="UNIT", help="Of times in a file that names none: ps, ns, us, ms or s.")
@run_options()
@click.option("-o", "--output", metavar="FILE", help="Write the plan as JSON, whole or not at all.")
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(ctx: click.Context, /, model: str, output: str | None, output_format: str, **options: Any) -> None:
    """Plan how to train MODEL on K devices: pipeline stages with data and tensor parallelism and recomputation.

    MODEL is a file of layers with their configurations (see docs/formats.md), or - for standard input. Exit code 1:
    no plan fits; the least memory that would do is printed.
    """
    from mtpp.cli.console import Console
    from mtpp.cli.results import deliver
    from mtpp.cli.training_plan_view import training_plan_text
    from mtpp.cli.training_planning import make_training_plan, plan_json, read_task
    from mtpp.cli.training_texts import no_plan_text
    from mtpp.formats.sink import check_output

    if output not in (None, "-"):
        check_output(output)
    console = Console(quiet=options["quiet"], verbose=options["verbose"])
    task = read_task(model, options, console)
    planned = make_training_plan(task, options, console)

    def json_text() -> str:
        return plan_json(planned)

    deliver(
        output,
        json_text,
        lambda: json_text() if output_format == "json" else training_plan_text(planned, output_format),
    )
    if planned.no_plan is not None:
        console.complain(f"{task.source.display}: {no_plan_text(planned.no_plan)}")
        ctx.exit(1)
    if planned.plan is not None and planned.plan.stopped == "interrupted":
        ctx.exit(INTERRUPTED)
