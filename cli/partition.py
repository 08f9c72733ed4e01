"""``mtpp partition``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from mtpp.api.options.emitting import Emitting
from mtpp.api.options.kinds import Flag, Ratio
from mtpp.api.options.option import Options, option
from mtpp.api.options.reading import Reading
from mtpp.api.options.search import Partitions
from mtpp.api.options.verifying import Verifying
from mtpp.cli.options.file_types import MODEL
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import EMBED, output_option, output_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.cli.terminal.page import Paged
from mtpp.host.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.inputs.model import Model
    from mtpp.cli.terminal.console import Console
    from mtpp.host.deadline import Deadline


class Required(Options):
    """Proofs without which the exit code is 1."""

    require_ratio: Fraction | None = option(None, Ratio(), "Exit 1 if no ratio ≤ R is proven.", "R")
    require_optimal: bool = option(False, Flag(), "Exit 1 unless the plan is proven optimal.")


class Written(Options):
    """Files that are written."""

    output: str | None = output_option("Write the plan as JSON, whole or not at all.")
    embed: bool = EMBED


@click.command("partition")
@click.argument("model", type=MODEL)
@options(Partitions, Emitting, Required, Written, Paged, Reading)
@output_options("table", "json", "csv", "markdown")
@warm_up_behind_option("partition")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    partitions: Partitions,
    emitting: Emitting,
    required: Required,
    written: Written,
    paged: Paged,
    reading: Reading,
    output_format: str,
    console: Console,
) -> None:
    """Cut MODEL into k pipeline stages and prove how good the cut is; into each of several numbers, such as -k 1-16.

    MODEL is an ONNX file, a JSON graph with costs (see `mtpp convert`), the folder, configuration or checkpoint of a
    language model, or - for standard input. --emit prints the plan for an engine in place of the table; where that
    cannot express it, the exit code is 2, and -o is written all the same.
    """
    from mtpp.api.emit import check_forms, emit_plan
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inputs.reading_in_time import reading as being_read
    from mtpp.api.inputs.reading_in_time import refuse_too_late
    from mtpp.api.partitioning.single import find_partition, prepare
    from mtpp.cli.options.overheads import ProcessOverheads, searching_s
    from mtpp.cli.terminal.delivery import check_output, deliver_plan, unmet_requirements
    from mtpp.cli.terminal.next_command import tell_next
    from mtpp.host.deadline import deadline_from_start, process_age_s
    from mtpp.host.stop_reason import StopReason

    asked, output = partitions, written.output
    limit_s = asked.time_limit_s
    if asked.lacks_stages(on_machine=reading.machine is not None):
        alone = asked.counts_latency or asked.of_capacity
        raise click.UsageError("give -k" if alone else "give either -k or --max-bottleneck", ctx)
    check_output(output)
    check_forms(emitting.form)
    paged.check()
    if written.embed and output is None and output_format != "json":
        raise click.UsageError("--embed goes into JSON: give -o FILE or --format json as well", ctx)
    several, count = len(asked.counts) > 1, next(iter(asked.counts), None)
    if several:
        _refuse_beside_several(asked, emitting)
    with being_read(model, deadline_from_start(limit_s)):
        read = read_model(model, reading, console.warn, stages=count)
        prepared = None if several else prepare(read, asked.single(count))
    refuse_too_late(read.source.display, limit_s, process_age_s(), read.graph, ProcessOverheads())
    deadline = deadline_from_start(searching_s(limit_s, read.graph.op_count))
    if prepared is None:
        ctx.exit(_several(read, asked, deadline, console, required, written, paged, output_format))
    plan = find_partition(prepared, deadline, console)
    emitted = (lambda: emit_plan(plan, read, emitting, console)) if emitting.form else None
    deliver_plan(plan, console, output, output_format, embed=written.embed, emitted=emitted)
    tell_next([plan], limit_s, console)
    if paged.report is not None:
        shallow = limit_s is not None or plan.stopped == StopReason.INTERRUPTED
        paged.deliver(plan, read, console, Verifying(shallow=shallow))
    if plan.stopped == StopReason.INTERRUPTED:
        ctx.exit(INTERRUPTED)
    unmet = unmet_requirements(plan, required.require_ratio, optimal=required.require_optimal)
    if unmet:
        click.echo(f"unmet: {unmet}", err=True)
        ctx.exit(1)


def _refuse_beside_several(asked: Partitions, emitting: Emitting) -> None:
    """Refuse what is of one plan beside several numbers of stages."""
    from mtpp.errors import InputError

    asked.refuse_beside_several()
    if emitting.form:
        problem = "is of one plan, and there are several numbers of stages"
        raise InputError(problem, parameter="emit", remedy="give one ‹k›")


def _several(
    read: Model,
    asked: Partitions,
    deadline: Deadline,
    console: Console,
    required: Required,
    written: Written,
    paged: Paged,
    output_format: str,
) -> int:
    """Search for a plan for each number of stages, deliver all of them and return the exit code."""
    from mtpp.api.partitioning.range_search import find_range
    from mtpp.cli.terminal.delivery import deliver_texts, unmet_requirements
    from mtpp.cli.terminal.next_command import tell_next
    from mtpp.host.stop_reason import StopReason

    found = find_range(read, asked, deadline, console)
    as_json = partial(found.json_text, embed=written.embed)
    deliver_texts(written.output, as_json, as_json if output_format == "json" else partial(found.text, output_format))
    interrupted = found.stopped == StopReason.INTERRUPTED
    if not interrupted:
        tell_next(found.plans, asked.time_limit_s, console)
    if paged.report is not None:
        shallow = asked.time_limit_s is not None or interrupted
        paged.deliver(found, read, console, Verifying(shallow=shallow))
    if interrupted:
        return INTERRUPTED
    ratio, optimal = required.require_ratio, required.require_optimal
    unmet = {plan.k: unmet_requirements(plan, ratio, optimal=optimal) for plan in found}
    if optimal or ratio is not None:
        unmet |= dict.fromkeys(found.missing, "no plan")
    lines = [f"k = {k}: {why}" for k, why in sorted(unmet.items()) if why]
    for line in lines:
        click.echo(f"unmet: {line}", err=True)
    return 1 if lines else 0
