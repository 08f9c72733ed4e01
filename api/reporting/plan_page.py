"""Reports on plans, for inference with the modules of ops and for training with its iteration, and verifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.checker.report import Report
    from mtpp.formats.io.source import Source
    from mtpp.inference.graph import CostGraph
    from mtpp.training.model import TrainingModel
    from mtpp.training.timeline import Timeline
    from mtpp.views.report.context_section import ContextCurve
    from mtpp.views.report.page import Page
    from mtpp.views.report.training.stage_flows import StageFlow

Modules = Mapping[str, str]
"""Path of the module of each op, by name."""


def refuse_missing_graph(document: Mapping[str, Any], request: VerifyRequest) -> None:
    """Raise InputError if a plan has neither a model nor a graph of its own."""
    if not request.models and "graph" not in document:
        request.refuse_missing(request.display)
        raise InputError(
            "the plan embeds no graph", source=request.display, where="/graph", remedy="give the model with ‹model›"
        )


def refuse_missing_graphs(document: Mapping[str, Any], request: VerifyRequest) -> None:
    """Do the same for a range of plans, which is not looked at otherwise."""
    plans = document.get("plans")
    if isinstance(plans, list) and plans and isinstance(plans[0], dict):
        refuse_missing_graph(plans[0], request)


def plan_report_page(document: Mapping[str, Any], report: Report, request: VerifyRequest) -> Page:
    """Return the page of a plan that has been verified."""
    from mtpp.api.inputs.serving import is_load
    from mtpp.api.reporting.context_figures import context_figures, graphs_of_degrees, is_served
    from mtpp.views.report.plan_report import plan_page

    source = _source(request)
    graph, modules = _graph(document, request, source)
    contexts: ContextCurve | str | None = None
    shares: Mapping[int, CostGraph] = {}
    if source is not None and is_served(document, source):
        contexts = context_figures(document, source)
        shares = graphs_of_degrees(document, source)
    elif source is None and is_load(document["model"]["dims"]):
        contexts = "the plan's own graph is of its context alone; pages made with the model's folder have others"
    return plan_page(document, report, graph, modules, contexts, shares)


def _source(request: VerifyRequest) -> Source | None:
    """Return the content of the model that a plan was verified with; None where it is in memory alone."""
    from mtpp.api.inputs.model_source import model_source

    supplied = next(iter(request.models), None)
    path = supplied if supplied is None or isinstance(supplied, str) else supplied.again
    if not isinstance(path, str):
        return path
    return model_source(path, request.max_model_bytes, adapters=request.asked.adapters)


def _graph(
    document: Mapping[str, Any], request: VerifyRequest, source: Source | None
) -> tuple[CostGraph, Modules | None]:
    """Return the graph that a plan was verified with, with the costs that it was made with."""
    from mtpp.api.verification.plan_document import costs_for
    from mtpp.formats.graphs.native import graph_from_document
    from mtpp.formats.measured.measured_costs import with_costs
    from mtpp.formats.modelled.node_names import named_as

    if not request.models:
        return graph_from_document(document["graph"], request.display), None
    supplied = request.models[0]
    costs = costs_for(request)
    if not isinstance(supplied, str):
        costs = costs or supplied.costs
    if source is not None:
        graph, modules = _read(source, document, request)
    else:
        assert not isinstance(supplied, str)
        assert supplied.graph is not None
        graph, modules = supplied.graph, None
        costs = None if costs is supplied.costs else costs
    graph = graph if costs is None else with_costs(graph, costs)
    found = named_as(graph, document["assignment"])
    if modules is not None and found is not graph:
        new = dict(zip(graph.op_names, found.op_names, strict=True))
        modules = {new[name]: path for name, path in modules.items()}
    return found, modules


def _read(source: Source, document: Mapping[str, Any], request: VerifyRequest) -> tuple[CostGraph, Modules | None]:
    """Read a model for the sizes and the system of a plan, with its modules where its format has them."""
    from mtpp.api.inputs.module_paths import graph_with_modules
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.machine.device import Device

    dims, system = document["model"]["dims"], Device.from_document(document["system"])
    if request.read_as.from_format in (None, "onnx", "torch-export"):
        found = graph_with_modules(source, dims, system)
        if found is not None:
            return found.graph, found.paths
    return read_graph(source, dims=dims, system=system, **request.read_as.values()), None


def training_report_page(document: dict[str, Any], report: Report, request: VerifyRequest, observer: Observer) -> Page:
    """Return the page of a training plan that has been verified."""
    from mtpp.views.report.training_report import training_page

    timeline, said, flows = None, "there is no plan", None
    if document["feasible"]:
        flows = _flows(document, request)
        try:
            timeline, said = _simulated(document, request, observer)
        except InputError as error:
            said = error.problem
    return training_page(document, report, timeline, said, flows)


def _flows(document: dict[str, Any], request: VerifyRequest) -> Sequence[StageFlow] | None:
    """Return what flows between the stages of a plan; None where its layers are not those of the model."""
    from mtpp.api.reporting.stage_flows import graph_flows, line_flows, split_flows
    from mtpp.checker.training.versions import is_split_plan, is_version_2

    try:
        if is_split_plan(document):
            return split_flows(document, request.models[0], request)
        model = _model(document, request)
        if is_version_2(document):
            return graph_flows(document, model)
        return line_flows(document, model, _sizes(document, model)[1])
    except (InputError, KeyError):
        return None


def _simulated(document: dict[str, Any], request: VerifyRequest, observer: Observer) -> tuple[Timeline, str]:
    """Return the timeline of a plan's iteration, and what it rests on that the plan does not say."""
    from mtpp.api.reporting.drawn_timeline import device_memory, drawn_timeline, stage_memory
    from mtpp.api.simulate import simulate
    from mtpp.checker.training.versions import is_split_plan, is_version_2

    if is_split_plan(document):
        memory = device_memory(document, request.models[0], request)
        return drawn_timeline(simulate(document, observer=observer).record, memory), ""
    model = _model(document, request)
    if is_version_2(document):
        simulated = simulate(document, model=model, observer=observer)
        return drawn_timeline(simulated.record, stage_memory(document, model)), ""
    batch, own, said = _sizes(document, model)
    simulated = simulate(document, model=model, batch_size=batch, micro_batch_size=own, observer=observer)
    return drawn_timeline(simulated.record, stage_memory(document, model, batch, own)), said


def _model(document: Mapping[str, Any], request: VerifyRequest) -> TrainingModel:
    """Return the model that a plan was verified with."""
    from mtpp.api.training.task import model_of_plan
    from mtpp.formats.io.source import read_source
    from mtpp.formats.training.models import EXPECTED

    supplied = request.models[0]
    if not isinstance(supplied, str):
        if supplied.training is not None:
            return supplied.training
        assert supplied.again is not None
        source = supplied.again
        if isinstance(source, str):
            source = read_source(source, max_bytes=request.max_model_bytes, expected=EXPECTED)
    else:
        source = read_source(supplied, max_bytes=request.max_model_bytes, expected=EXPECTED)
    return model_of_plan(source, document["time_unit"], request.read_as.time_unit)


def _sizes(document: Mapping[str, Any], model: TrainingModel) -> tuple[int, int, str]:
    """Return samples of an iteration and those that a device takes at once, and a sentence on both.

    They are those of the batch that the plan is for. Where it records none, a device takes what the model's costs are
    of, and there are as many micro-batches as the plan allows. Replicas of a stage share them evenly: the samples are
    the next number with which those of all stages do.
    """
    stated = document.get("batch")
    own = stated["micro_batch_size"] if stated else model.micro_batch_size or 1
    asked = stated["samples"] if stated else document["system"]["max_micro_batches"] * own
    shared = lcm(*(row["data_parallel"] for row in document["stages"])) * own
    batch = -(-asked // shared) * shared
    said = f"{counted(batch, 'sample')}, each device taking {own:,} at once"
    if stated is None:
        return batch, own, f"Simulated with {said}: the plan records no batch."
    if batch != asked:
        said += f": the replicas of all stages share a multiple of {shared:,}, the plan is for {asked:,}"
    return batch, own, f"Simulated with {said}."
