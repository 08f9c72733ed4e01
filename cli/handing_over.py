"""``mtpp split --emit``: a plan in the form that another program takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.split_plan import PlannedModel
    from mtpp.cli.terminal.console import Console
    from mtpp.formats.exporters.request import Request


def check_forms(names: Sequence[str]) -> None:
    """Check that every form asked for exists, before the work.

    Raises
    ------
    InputError
        If one does not.
    """
    from mtpp.formats.exporters.registry import NAMES

    for name in names:
        if name not in NAMES:
            raise InputError(f"unknown form {name!r}", source="--emit", remedy=f"use one of {', '.join(NAMES)}")


def read_request(model: str, plan: str, options: Mapping[str, Any], console: Console) -> Request:
    """Read a model or graph in any format, and the stages of its ops.

    Raises
    ------
    InputError, InvalidPartition
        If one of them is broken, or they do not belong together.
    """
    from mtpp.api.model import Model
    from mtpp.cli.given import given_plan, labels_of_assignment
    from mtpp.cli.options.shared import input_limit, parse_dims
    from mtpp.cli.split_plan import read_planned_model
    from mtpp.formats.exporters.request import Request
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.formats.io.source import read_source
    from mtpp.formats.onnx import looks_like_onnx
    from mtpp.inference.system import load_system

    limit = input_limit(options["max_input_size"])
    source = read_source(model, max_bytes=limit)
    if looks_like_onnx(source.data):
        return request_of(read_planned_model(model, plan, options, console, source))
    graph = read_graph(source, dims=parse_dims(options["dims"]), warn=console.warn)
    labels = labels_of_assignment(graph, plan, read_source(plan, max_bytes=limit))
    given = given_plan(Model(source, graph, load_system(), {}), labels, None)
    if given.partition.assignment.tolist() != labels:
        console.warn("the stages were numbered anew, in the order of the data flow")
    return Request(graph, given.partition.assignment, given.partition.k)


def request_of(model: PlannedModel) -> Request:
    """Return what a hand-over is made of, the modules that ops came from included."""
    import numpy as np

    from mtpp.formats.exporters.request import Request
    from mtpp.formats.onnx.module_names import module_names

    return Request(
        graph=model.reading.graph,
        assignment=np.array(model.plan.labels, dtype=np.int32),
        k=model.plan.k,
        modules=module_names(model.reading),
    )


def handover_text(request: Request, names: Sequence[str]) -> str:
    """Return the plan in each of the forms asked for, one after the other.

    Raises
    ------
    InputError
        If the stages cannot be said in one of them.
    """
    from mtpp.formats.exporters.registry import emit

    return "".join(emit(name, request) for name in dict.fromkeys(names))
