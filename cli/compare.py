"""``mtpp compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from mtpp.api.options.reading import Reading
from mtpp.cli.options.completing import list_completion
from mtpp.cli.options.file_types import MODEL, OUTPUT
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import SearchOptions, output_options, search_options
from mtpp.cli.options.stage_counts import StageCounts
from mtpp.host.interrupts import INTERRUPTED
from mtpp.names import ALGORITHMS

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


class CompareOptions(SearchOptions):
    """Values of the options of ``mtpp compare``."""

    stage_counts: tuple[int, ...]
    algorithms: str | None


@click.command("compare")
@click.argument("paths", type=MODEL, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-k", "--stages", "stage_counts", type=StageCounts(), required=True, metavar="K,K,…",
    help="Numbers of stages, a column each, such as 2,4,8.",
)  # fmt: skip
@click.option(
    "--algorithms", metavar="NAME,NAME,…", shell_complete=list_completion(ALGORITHMS),
    help="Rows, such as auto,brkga-10000,random-100: -T is for T evaluations [default: those of the paper, then ours].",
)  # fmt: skip
@search_options(time_limit="For each run: one algorithm on one graph for one k.")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE", help="Write all runs and their means as JSON, whole or not at all."
)
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
    **asked: Unpack[CompareOptions],
) -> None:
    """Measure algorithms against each other on models, as Table 2 of the paper does.

    PATH is a model or a folder of models. Each cell is the geometric mean over the graphs of bottleneck / simple lower
    bound, so 1 is optimal and lower is better. Ctrl-C ends the run with the table of what is done.
    """
    from mtpp.api.compare import CompareRequest, Comparison, RunLimits, compare_algorithms, variants_of, warn_of_gaps
    from mtpp.cli.options.cells import listed
    from mtpp.cli.options.limits import search_memory
    from mtpp.cli.options.overheads import ProcessOverheads
    from mtpp.cli.options.table_outputs import check_table_outputs
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.host.cores import available_cores
    from mtpp.host.process_age import process_age_s

    check_table_outputs(output=output)
    request = CompareRequest(
        models=paths,
        stage_counts=asked["stage_counts"],
        variants=variants_of(listed(asked["algorithms"])),
        reading=reading,
        limits=RunLimits(
            time_limit_s=asked["time_limit"],
            work_limit=asked["work_limit"],
            seed=asked["seed"],
            jobs=asked["jobs"] or available_cores(),
            memory_bytes=search_memory(asked["memory_limit"]),
        ),
        overheads=ProcessOverheads(),
    )
    comparison = compare_algorithms(request, console)
    warn_of_gaps(comparison, console)
    deliver(output, Comparison(comparison, process_age_s()), output_format)
    if comparison.interrupted:
        ctx.exit(INTERRUPTED)
    if not any(mean.models for mean in comparison.means()):
        ctx.exit(1)
