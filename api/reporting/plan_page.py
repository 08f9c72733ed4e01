"""Report on a plan for inference: its verification, and its graph with the modules of its ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.checker.report import Report
    from mtpp.formats.io.source import Source
    from mtpp.inference.graph import CostGraph
    from mtpp.views.report.page import Page

Modules = Mapping[str, str]
"""Path of the module of each op, by name."""


def refuse_missing_graph(document: Mapping[str, Any], request: VerifyRequest) -> None:
    """Raise InputError if a plan has neither a model nor a graph of its own."""
    if not request.models and "graph" not in document:
        raise InputError(
            "the plan embeds no graph", source=request.display, where="/graph", remedy="give the model with ‹model›"
        )


def plan_report_page(document: Mapping[str, Any], report: Report, request: VerifyRequest) -> Page:
    """Return the page of a plan that has been verified."""
    from mtpp.views.report.plan_report import plan_page

    graph, modules = _graph(document, request)
    return plan_page(document, report, graph, modules)


def _graph(document: Mapping[str, Any], request: VerifyRequest) -> tuple[CostGraph, Modules | None]:
    """Return the graph that a plan was verified with, with the costs that it was made with."""
    from mtpp.api.verification.plan_document import costs_for
    from mtpp.formats.graphs.native import graph_from_document
    from mtpp.formats.measured.measured_costs import with_costs

    if not request.models:
        return graph_from_document(document["graph"], request.display), None
    supplied = request.models[0]
    costs = costs_for(request)
    if isinstance(supplied, str):
        graph, modules = _read(supplied, document, request)
    else:
        costs = costs or supplied.costs
        if supplied.again is not None:
            graph, modules = _read(supplied.again, document, request)
        else:
            assert supplied.graph is not None
            graph, modules = supplied.graph, None
            costs = None if costs is supplied.costs else costs
    return graph if costs is None else with_costs(graph, costs), modules


def _read(model: str | Source, document: Mapping[str, Any], request: VerifyRequest) -> tuple[CostGraph, Modules | None]:
    """Read a model for the sizes and the system of a plan, with its modules where its format has them."""
    from mtpp.api.inputs.module_paths import graph_with_modules
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.formats.io.source import read_source
    from mtpp.inference.system import System

    source = read_source(model, max_bytes=request.max_model_bytes) if isinstance(model, str) else model
    dims, system = document["model"]["dims"], System.from_document(document["system"])
    if request.read_as.from_format in (None, "onnx", "torch-export"):
        found = graph_with_modules(source, dims, system)
        if found is not None:
            return found
    return read_graph(source, dims=dims, system=system, **request.read_as.values()), None
