"""Report on a training plan: its verification, and its iteration simulated where the plan says enough."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.checker.report import Report
    from mtpp.training.model import TrainingModel
    from mtpp.training.timeline import Timeline
    from mtpp.views.report.page import Page


def training_report_page(document: dict[str, Any], report: Report, request: VerifyRequest, observer: Observer) -> Page:
    """Return the page of a training plan that has been verified."""
    from mtpp.views.report.training_report import training_page

    timeline, said = None, "there is no plan"
    if document["feasible"]:
        try:
            timeline, said = _simulated(document, request, observer)
        except InputError as error:
            said = f"it cannot be simulated: {error.problem}"
    return training_page(document, report, timeline, said)


def _simulated(document: dict[str, Any], request: VerifyRequest, observer: Observer) -> tuple[Timeline, str]:
    """Return the timeline of a plan's iteration, and what it rests on that the plan does not say."""
    from mtpp.api.reporting.drawn_timeline import device_memory, drawn_timeline, stage_memory
    from mtpp.api.simulate import simulate
    from mtpp.checker.training.versions import is_split_plan, is_version_2

    if is_split_plan(document):
        memory = device_memory(document, request.models[0], request)
        return drawn_timeline(simulate(document, observer=observer), memory), ""
    model = _model(document, request)
    if is_version_2(document):
        simulated = simulate(document, model=model, observer=observer)
        return drawn_timeline(simulated, stage_memory(document, model)), ""
    batch, own = _sizes(document, model)
    simulated = simulate(document, model=model, batch_size=batch, micro_batch_size=own, observer=observer)
    said = f"Simulated with {batch:,} samples, each device taking {own:,} at once: the plan does not say these sizes."
    return drawn_timeline(simulated, stage_memory(document, model, batch, own)), said


def _model(document: Mapping[str, Any], request: VerifyRequest) -> TrainingModel:
    """Return the model that a plan was verified with."""
    from mtpp.api.training.plan_model import model_of_plan
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


def _sizes(document: Mapping[str, Any], model: TrainingModel) -> tuple[int, int]:
    """Return samples of an iteration and those that a device takes at once, for a plan that says neither.

    A device takes what the model's costs are of; there are as many micro-batches as the plan allows, or the next number
    that the replicas of all stages share evenly.
    """
    own = model.micro_batch_size or 1
    shared = lcm(*(row["data_parallel"] for row in document["stages"]))
    most = document["system"]["max_micro_batches"]
    return -(-most // shared) * shared * own, own
