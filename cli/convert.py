"""``mtpp convert``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mtpp.api.options.graphs import Converting
from mtpp.api.options.reading import ModelReading
from mtpp.cli.options.file_types import ASSIGNMENT, MODEL, OUTPUT
from mtpp.cli.options.made import fields, options, single
from mtpp.cli.options.shared import memory_limit_option, noise_options

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.command("convert")
@click.argument("model", type=MODEL)
@click.argument("output", type=OUTPUT)
@fields(Converting, "to")
@single("assignment", ASSIGNMENT.kind, 'Stages to show: a plan, JSON {"op": stage, …}, or such a CSV.', "FILE")
@fields(Converting, "modules")
@memory_limit_option()
@options(ModelReading)
@noise_options()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    output: str,
    to: str | None,
    assignment: str | None,
    modules: int | None,
    modelreading: ModelReading,
    console: Console,
) -> None:
    """Write MODEL as a graph with costs to OUTPUT (a name ending in .gz is compressed; - is standard output).

    The work of ONNX ops is modelled on the system chosen here and becomes part of the graph. With --assignment,
    GraphML and node-link nodes have a stage and a colour, DOT has a cluster for each stage, CSV a row for each op, and
    JSON is node data for Model Explorer.
    """
    from mtpp.api.convert import check_drawing, converted_text, writer_of
    from mtpp.api.inputs.model import read_model
    from mtpp.api.output import check_output, write_text_atomically
    from mtpp.cli.terminal.output import write_stdout

    if assignment == "-" and model == "-":
        raise click.UsageError("model and assignment cannot both be standard input", ctx)
    writer = writer_of(output, to, stages=assignment is not None, parameter="assignment")
    if modules is not None:
        check_drawing(writer)
    if output != "-":
        check_output(output)
    read = read_model(model, modelreading, console.warn, assignment=assignment)
    text = converted_text(read, writer, assignment, console, modules=modules)
    if output == "-":
        write_stdout(text)
    else:
        write_text_atomically(output, text)
        console.note(f"{output}: {read.graph.op_count} ops, {read.graph.tensor_count} tensors, {writer.name}")
