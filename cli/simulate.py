"""``mtpp simulate``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mtpp.api.options.path_kinds import OutputPath
from mtpp.api.options.simulating import Simulating
from mtpp.cli.options.file_types import MODEL, PIPELINE
from mtpp.cli.options.made import options, single
from mtpp.cli.options.shared import output_options, output_path

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("simulate")
@click.argument("pipeline", type=PIPELINE, metavar="FILE")
@single("model", MODEL.kind, "Model that a training plan was made for; plans of pfeife need none.", "FILE")
@options(Simulating)
@single("gantt", OutputPath(), "Draw the passes over time.", "FILE.svg|html|txt")
@single("trace", OutputPath(), "Write the passes for chrome://tracing and Perfetto.", "FILE.json")
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
    from mtpp.api.reporting.made import command_text
    from mtpp.api.simulate import check_gantt, check_trace, simulate
    from mtpp.cli.terminal.delivery import check_output, deliver

    if gantt is not None:
        check_gantt(gantt)
    if trace is not None:
        check_trace(trace)
    check_output(output)
    simulated = simulate(pipeline, model=model, **simulating.values(), observer=console)
    if gantt is not None:
        simulated.gantt(gantt, command=command_text(sys.argv[1:]))
        console.say(f"{gantt}: chart of {simulated.size_text}")
    if trace is not None:
        simulated.trace(trace)
        console.say(f"{trace}: trace of {len(simulated.record.start):,} passes")
    deliver(output, simulated, output_format)
