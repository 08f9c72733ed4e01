"""``mtpp simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.simulating import Simulating
from mtpp.cli.options.file_types import MODEL, OUTPUT, PIPELINE
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options, output_path

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("simulate")
@click.argument("pipeline", type=PIPELINE, metavar="FILE")
@click.option(
    "--model",
    type=MODEL,
    metavar="FILE",
    help="Model that a training plan was made for; plans of pfeife need none.",
)
@options(Simulating)
@click.option("--gantt", type=OUTPUT, metavar="FILE.svg|html|txt", help="Draw the passes over time.")
@click.option("--trace", type=OUTPUT, metavar="FILE.json", help="Write the passes for chrome://tracing and Perfetto.")
@output_path("Write the figures as JSON, whole or not at all.")
@output_options("table", "json", "csv", "markdown")
def command(
    pipeline: str,
    model: str | None,
    simulating: Simulating,
    gantt: str | None,
    trace: str | None,
    output: str | None,
    output_format: str,
    console: Console,
) -> None:
    """Simulate one iteration of a training pipeline: when each pass and each transfer begins.

    FILE holds stages with their times and orders of passes (see docs/formats.md), or is a plan of `mtpp plan`: stages
    of the planners graphpipe and pfeife run as planned, those of others in a line. - is standard input. Every pass
    starts as soon as its device is free and what it needs has arrived. Exit code 1: passes wait for each other.
    """
    from mtpp.api.output import check_output
    from mtpp.api.simulate import check_gantt, check_trace, simulate
    from mtpp.cli.terminal.delivery import deliver

    if gantt is not None:
        check_gantt(gantt)
    if trace is not None:
        check_trace(trace)
    if output not in (None, "-"):
        check_output(output)
    simulated = simulate(pipeline, model=model, **simulating.values(), observer=console)
    if gantt is not None:
        simulated.gantt(gantt)
        console.say(f"{gantt}: chart of {simulated.size_text}")
    if trace is not None:
        simulated.trace(trace)
        console.say(f"{trace}: trace of {len(simulated.record.start):,} passes")
    deliver(output, simulated, output_format)
