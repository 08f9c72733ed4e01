"""``mtpp simulate``."""

from __future__ import annotations

import click

from mtpp.cli.options.file_types import OUTPUT, PIPELINE
from mtpp.cli.options.shared import output_options


@click.command("simulate")
@click.argument("pipeline", type=PIPELINE, metavar="FILE")
@click.option("--gantt", type=OUTPUT, metavar="FILE.svg|html|txt", help="Draw the passes over time.")
@click.option("--trace", type=OUTPUT, metavar="FILE.json", help="Write the passes for chrome://tracing and Perfetto.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write the figures as JSON, whole or not at all.")
@output_options("table", "json", "csv", "markdown")
def command(
    pipeline: str,
    gantt: str | None,
    trace: str | None,
    output: str | None,
    output_format: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Simulate one iteration of a training pipeline: when each pass and each transfer begins.

    FILE holds stages with their times and orders of passes (see docs/formats.md), or is - for standard input. Every
    pass starts as soon as its stage is free and what it needs has arrived. Exit code 1: passes wait for each other.
    """
    from mtpp.api.output import check_output
    from mtpp.api.simulate import check_gantt, simulate
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.views.training.simulation import simulation_text

    if gantt is not None:
        check_gantt(gantt)
    for path in (trace, output):
        if path not in (None, "-"):
            check_output(path)
    console = Console(quiet=quiet, verbose=verbose)
    simulated = simulate(pipeline, observer=console)
    if gantt is not None:
        simulated.gantt(gantt)
        console.say(f"{gantt}: chart of {len(simulated.stages):,} stages")
    if trace is not None:
        simulated.trace(trace)
        console.say(f"{trace}: trace of {len(simulated.record.start):,} passes")

    def shown() -> str:
        return simulated.to_json() if output_format == "json" else simulation_text(simulated.record, output_format)

    deliver(output, simulated.to_json, shown)
