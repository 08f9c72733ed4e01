"""``mtpp report``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mtpp.api.options.kinds import Flag, Repeated
from mtpp.api.options.machine import OnMachine, System
from mtpp.api.options.option import REQUIRED
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Titled, Verifying
from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import MODEL, RESULT
from mtpp.cli.options.made import options, single
from mtpp.cli.options.shared import noise_options, output_path
from mtpp.cli.options.verify_terms import MODELS, verifying_options

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

FALSE = 1
"""Exit code."""


@click.command("report")
@click.argument("result", type=RESULT, metavar="FILE")
@output_path("HTML file to write, whole or not at all.", "PAGE", default=REQUIRED)
@single("open_page", Flag(), "Show the page in a browser.")
@single("model", Repeated(MODEL.kind), f"{MODELS} The pipeline of a simulation, and its model.", "PATH")
@options(Titled)
@verifying_options()
@noise_options()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    result: str,
    output: str,
    open_page: bool,
    model: tuple[str, ...],
    titled: Titled,
    verifying: Verifying,
    system: System,
    onmachine: OnMachine,
    formats: Formats,
    console: Console,
) -> None:
    """Make a page to look at of FILE: a plan, a table of certificates, a training plan or a simulation.

    The page is one HTML file that opens offline: what `mtpp verify` says of each claim, the stages against the
    bottleneck and the bound, the graph in the colours of its stages, the same assignment under other bandwidths, the
    cells and bounds of a table, schedules over time. What is unchecked says so.

    Exit codes: 0 the page was written; 1 it was written, and says first that something is false; 2 bad usage or a
    malformed FILE.
    """
    from mtpp.api.output import write_text_atomically
    from mtpp.api.reporting.browser import open_in_browser
    from mtpp.api.reporting.made import command_text
    from mtpp.api.reporting.report import check_report, result_page
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.host.deadline import deadline_from_start

    if [result, verifying.costs, *model].count("-") > 1:
        raise click.UsageError("only one of result, model and costs can be standard input", ctx)
    if output == "-" and open_page:
        raise click.UsageError("--open shows a page in a file: name it report.html", ctx)
    check_report(None if output == "-" else output, "output")
    deadline = deadline_from_start(verifying.time_limit_s)
    made = result_page(
        VerifyRequest(result, model, verifying, system, formats, onmachine, deadline=deadline),
        console,
        named=flag_of,
        title=titled.title,
        command=command_text(sys.argv[1:]),
    )
    if output == "-":
        write_stdout(made.html)
    else:
        write_text_atomically(output, made.html)
        console.say(f"{output}: {made.said}")
    if open_page:
        open_in_browser(output, console)
    if made.false:
        ctx.exit(FALSE)
