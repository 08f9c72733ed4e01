"""A model written in another format, with the stages of a plan where they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.model import Model
    from mtpp.cli.terminal.console import Console
    from mtpp.formats.graphs.graph_format import GraphFormat


def writer_of(output: str, to_format: str | None, assignment: str | None) -> GraphFormat:
    """Return the format to write in.

    Raises
    ------
    InputError
        If it has no place for stages and there are some, or the other way round; and as
        :func:`mtpp.formats.graphs.recognise.writer_for`.
    """
    from mtpp.formats.graphs.recognise import writer_for
    from mtpp.formats.graphs.registry import FORMATS

    writer = writer_for(output, to_format)
    if assignment is not None and writer.write_stages is None:
        others = " or ".join(candidate.name for candidate in FORMATS if candidate.write_stages)
        raise InputError(
            f"{writer.name} files have no place for stages", source="--assignment", remedy=f"choose --to {others}"
        )
    if assignment is None and writer.write is None:
        raise InputError(
            f"{writer.name} files list stages, and none were given",
            source=output,
            remedy="add --assignment plan.json (`mtpp partition -o plan.json` makes one)",
        )
    return writer


def converted_text(model: Model, writer: GraphFormat, assignment: str | None, console: Console) -> str:
    """Return the text of the file.

    Raises
    ------
    InputError, InvalidPartition
        If the assignment cannot be read, or is no partition of the model.
    """
    if assignment is None:
        assert writer.write is not None
        return writer.write(model.graph)
    from mtpp.cli.given import given_plan, labels_of_assignment

    assert writer.write_stages is not None
    labels = labels_of_assignment(model.graph, assignment)
    plan = given_plan(model, labels, None)
    if plan.partition.assignment.tolist() != labels:
        console.warn("the stages were numbered anew, in the order of the data flow")
    return writer.write_stages(plan)
