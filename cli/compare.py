"""``mtpp compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.kinds import Names, Repeated
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.api.options.reading import Reading
from mtpp.api.options.search import Comparing
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import output_options, output_path
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import LAYOUT_RULES

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


class Ruled(Options):
    """Rules of engines in place of algorithms."""

    layouts: tuple[str, ...] | None = option(
        None, Names(("all", *LAYOUT_RULES)),
        "Compare the layouts of language models that these engines make by themselves, or all of them.", "ENGINE,…",
    )  # fmt: skip
    machines: tuple[str, ...] | None = option(
        None, Repeated(InputPath("a machine")), "A machine that ‹layouts› are compared on; may be repeated.", "FILE"
    )


@click.command("compare")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="PATH...")
@options(Comparing, Ruled)
@output_path("Write all runs and their means as JSON, whole or not at all.")
@options(Reading)
@output_options("table", "json", "csv", "markdown")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str | None,
    reading: Reading,
    output_format: str,
    console: Console,
    comparing: Comparing,
    ruled: Ruled,
) -> None:
    """Measure algorithms against each other on models, as Table 2 of the paper does, or layouts of inference engines.

    PATH is a model or a folder of models. Each cell is the geometric mean over the graphs of objective / simple lower
    bound, so 1 is optimal and lower is better. Ctrl-C ends the run with the table of what is done. With --layouts each
    cell is the mean over language models of bottleneck / proven lower bound.
    """
    from mtpp.api.compare import Comparison, compare_algorithms, warn_of_gaps
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.terminal.delivery import check_output, deliver
    from mtpp.host.deadline import process_age_s

    check_output(output)
    if ruled.layouts is not None:
        _compare_layouts(ctx, paths, comparing, ruled, reading, output, output_format, console)
        return
    if ruled.machines:
        raise click.UsageError("--machines goes with --layouts", ctx)
    comparison = compare_algorithms(paths, comparing, reading, console, ProcessOverheads())
    warn_of_gaps(comparison, console)
    deliver(output, Comparison(comparison, process_age_s()), output_format)
    if comparison.interrupted:
        ctx.exit(INTERRUPTED)
    if not any(mean.models for mean in comparison.means()):
        ctx.exit(1)


def _compare_layouts(
    ctx: click.Context,
    paths: tuple[str, ...],
    comparing: Comparing,
    ruled: Ruled,
    reading: Reading,
    output: str | None,
    output_format: str,
    console: Console,
) -> None:
    """Compare rules of engines."""
    from mtpp.api.language_models.compare_layouts import compare_rules, language_models_at
    from mtpp.api.options.layouts import Ruling
    from mtpp.cli.terminal.delivery import deliver

    if comparing.algorithms is not None:
        raise click.UsageError("--algorithms does not go with --layouts", ctx)
    if ruled.machines and reading.machine is not None:
        raise click.UsageError("give either --machine or --machines", ctx)
    asked = Ruling(layouts=ruled.layouts, machines=ruled.machines, k=comparing.k, time_limit_s=comparing.time_limit_s)
    comparison = compare_rules(language_models_at(paths), asked, reading, console)
    deliver(output, comparison, output_format)
    if not any(row["ratio"] is not None for row in comparison):
        ctx.exit(1)
