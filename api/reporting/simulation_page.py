"""Report on a simulation: its figures, and its passes where the pipeline is given to be simulated again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.api.reporting.reading import STAGE_GRAPH
from mtpp.checker.report import Check, Report, Tier
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.training.simulated import SimulatedPipeline, SimulatedSchedule
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verify import Verification
    from mtpp.formats.io.source import Source
    from mtpp.training.model import TrainingModel
    from mtpp.training.timeline import Timeline
    from mtpp.views.report.page import Page

    Simulated = SimulatedPipeline | SimulatedSchedule

_RECORDED = ("format", "version", "name", "time_unit", "ticks_per_unit")
_NAMES = {
    "iteration": ("iteration_ticks", "iteration_time", "samples_per_s"),
    "phases": ("warm_up_ticks", "steady_ticks", "cool_down_ticks"),
    "bubbles": ("bubble_share",),
    "size": ("mini_batch", "depth", "micro_batches"),
    "rows": ("stages", "devices"),
    "channels": ("channels",),
    "critical path": ("critical_path",),
}
"""Claims of a simulation, and the keys that make them."""


def simulation_report_page(
    document: dict[str, Any],
    source: Source,
    request: VerifyRequest,
    observer: Observer,
    named: Callable[[str], str],
) -> tuple[Page, Verification]:
    """Return the page of a simulation or of a stage graph, which is simulated, and what holds of it.

    Parameters
    ----------
    named
        Names of parameters as the caller's front end has them.
    """
    from mtpp.api.reporting.simulated_page import simulated_page
    from mtpp.api.simulate import simulate
    from mtpp.api.verification.in_units import report_in_units
    from mtpp.api.verify import Verification
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.results.simulation import check_simulation
    from mtpp.views.report.simulation_report import simulation_page

    if document["format"] == STAGE_GRAPH:
        if request.models:
            raise InputError("has no effect on a stage graph", parameter="model", remedy="leave it out")
        simulated: Simulated = simulate(source.data, observer=observer)
        page, report = simulated_page(simulated.document(), simulated.record)
        return page, Verification(report)
    with attributed(source.display):
        check_simulation(document, ())
    request, missing = _with_recorded_files(document, source, request)
    if not request.models:
        why = f"{missing}; give it, and the model of a plan, with {named('model')}"
        report = _report([Check("figures", None, why)], "")
        return simulation_page(document, report, None, ""), Verification(report)
    simulated, timeline = _again(document, request, observer)
    report = report_in_units(_compared(document, simulated.document()), document)
    page = simulation_page(document, report, timeline, "Every figure holds, simulated again")
    return page, Verification(report)


def _with_recorded_files(
    document: Mapping[str, Any], source: Source, request: VerifyRequest
) -> tuple[VerifyRequest, str]:
    """Return a request with the files that a simulation records, where none are given, and why there are none."""
    from mtpp.api.inputs.recorded_model import NamedFiles, recorded_model

    if request.models:
        return request, ""
    stated = document.get("pipeline")
    if stated is None:
        return request, "no pipeline was given to simulate again"
    files = NamedFiles(request.max_model_bytes)
    pipeline = recorded_model(stated, source.path, files)
    if pipeline.path is None:
        return request, f"its pipeline {stated['path']} is not here any more, or has changed"
    model = recorded_model(document.get("model", {}), source.path, files)
    found = (pipeline.path,) if model.path is None else (pipeline.path, model.path)
    return replace(request, models=found), ""


def _again(document: Mapping[str, Any], request: VerifyRequest, observer: Observer) -> tuple[Simulated, Timeline]:
    """Simulate the pipeline that the caller gives, a plan with its model."""
    from mtpp.api.reporting.drawn_timeline import device_memory, drawn_timeline, stage_memory
    from mtpp.api.simulate import simulate
    from mtpp.checker.training.versions import is_split_plan, is_version_2
    from mtpp.formats.io.source import read_source
    from mtpp.formats.results.verifiable import is_training_plan

    given: list[Any] = []
    for one in request.models:
        found = one if isinstance(one, str) else one.again if one.again is not None else one.training
        given.append(read_source(found, max_bytes=request.max_model_bytes) if isinstance(found, str) else found)
    contents = [None if not hasattr(one, "data") else _parsed(one.data) for one in given]
    place = next((i for i, one in enumerate(contents) if is_training_plan(one)), 0)
    plan: Any = contents[place] if is_training_plan(contents[place]) else None
    if len(given) > (1 if plan is None else 2):
        remedy = "give the pipeline alone, or a plan and its model"
        raise InputError(f"{len(given)} files for one simulation", parameter="model", remedy=remedy)
    other = next((i for i in range(len(given)) if i != place), None)
    pipeline = _content(given[place])
    extra: dict[str, Any] = {} if request.read_as.time_unit is None else {"time_unit": request.read_as.time_unit}
    supplied = list(request.models)
    if plan is not None and other is None and (path := _recorded(plan, given[place], request)) is not None:
        supplied.append(path)
        given.append(read_source(path, max_bytes=request.max_model_bytes))
        other = len(given) - 1
    if plan is None or is_split_plan(plan):
        with _named_as(given[place]):
            again: Simulated = simulate(pipeline, observer=observer, **extra)
        memory = None if other is None else device_memory(plan, supplied[other], request)
        return again, drawn_timeline(again.record, memory)
    if other is None:
        raise InputError("the pipeline is a plan for a model", parameter="model", remedy="give its model as well")
    sizes: dict[str, int] = {}
    if not is_version_2(plan) and "mini_batch" in document:
        first = document["stages"][0]["micro_batch"] // max(1, plan["stages"][0]["data_parallel"])
        sizes = {"batch_size": document["mini_batch"], "micro_batch_size": max(1, first)}
    model = _content(given[other])
    again = simulate(pipeline, observer=observer, **(extra | sizes | {"model": model}))
    return again, drawn_timeline(
        again.record, stage_memory(plan, _training_model(given[other], plan, request), **sizes)
    )


def _recorded(plan: Mapping[str, Any], given: Any, request: VerifyRequest) -> str | None:
    """Return the path of the model that a plan records, None where it is not found."""
    from mtpp.api.inputs.recorded_model import NamedFiles, recorded_model

    return recorded_model(plan["model"], getattr(given, "path", None), NamedFiles(request.max_model_bytes)).path


def _content(given: Any) -> Any:
    """Return the bytes of what was read from a file; a model in memory is itself."""
    return getattr(given, "data", given)


@contextmanager
def _named_as(source: Any) -> Iterator[None]:
    """Name the file that a pipeline was read from in errors, which know its bytes alone."""
    try:
        yield
    except InputError as error:
        error.source = getattr(source, "display", error.source)
        raise


def _training_model(given: Any, plan: Mapping[str, Any], request: VerifyRequest) -> TrainingModel:
    from mtpp.api.training.task import model_of_plan

    if not hasattr(given, "data"):
        found: TrainingModel = given
        return found
    return model_of_plan(given, plan["time_unit"], request.read_as.time_unit)


def _parsed(data: bytes) -> Any:
    from mtpp.formats.io.json_text import parse_json

    return parse_json(data, "‹model›") if data.lstrip()[:1] == b"{" else None


def _compared(document: Mapping[str, Any], again: Mapping[str, Any]) -> Report:
    """Hold a simulation against the same pipeline simulated again."""
    if document["version"] != again["version"]:
        problem = f"version {document['version']}, the pipeline gives version {again['version']}"
        return _report([Check("pipeline", False, problem)], "")
    checks = [Check("pipeline", *_same(document, again, _RECORDED))]
    for name, keys in _NAMES.items():
        if present := [key for key in keys if key in again or key in document]:
            checks.append(Check(name, *_same(document, again, present)))
    return _report(checks, "every figure is what simulating the pipeline again gives")


def _same(document: Mapping[str, Any], again: Mapping[str, Any], keys: Any) -> tuple[bool, str]:
    for key in keys:
        stated, due = _plain(document.get(key)), _plain(again.get(key))
        if stated != due:
            if isinstance(due, list):
                return False, f"{key.replace('_', ' ')} are not those of the pipeline"
            return False, f"the file says {stated} of {key}, it is {due}"
    return True, "the same, simulated again"


def _plain(value: Any) -> Any:
    """Return a value with numbers as JSON gives them, so that exact decimals and floats compare."""
    return json.loads(json.dumps(value, default=float))


def _report(checks: list[Check], proven: str) -> Report:
    return Report(tuple(checks), Tier.NONE, None, False, proven)
