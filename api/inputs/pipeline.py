"""Pipelines to be simulated: stage graphs, and training plans with the models that they are for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult
from mtpp.api.parameters import shortened
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.formats.io.source import Source
    from mtpp.training.model import TrainingModel
    from mtpp.training.pfeife.timed_schedule import TimedSchedule
    from mtpp.training.stage_graph import StageGraph

_PLANNED = "give the model that the plan is for"

_SAYS_ITSELF = ("batch_size", "micro_batch_size", "time_unit")


@dataclass(frozen=True)
class ReadPipeline:
    """A pipeline, what messages call its file, and the files that it was read from.

    Attributes
    ----------
    due
        Ticks that a plan says an iteration takes, None where nothing says that.
    files
        SHA-256 and path of the ``pipeline`` and of its ``model``, where they are files.
    """

    pipeline: StageGraph | TimedSchedule
    display: str
    inputs: Mapping[str, Path | None] = field(default_factory=dict)
    due: int | None = None
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def read_pipeline(value: Any, given: Mapping[str, Any], observer: Observer) -> ReadPipeline:
    """Read the pipeline of a call; *given* is said of a training plan."""
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.training.plan_results import GraphPlanResult, TrainingPlanResult
    from mtpp.checker.training.versions import is_split_plan
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.results.verifiable import is_training_plan
    from mtpp.formats.training.stage_graph import EXPECTED, stage_graph_from_source
    from mtpp.training.stage_graph import StageGraph

    if isinstance(value, StageGraph):
        _refuse_idle(given)
        return ReadPipeline(value, "<stage graph>")
    if isinstance(value, TrainingPlanResult | GraphPlanResult):
        given = {"model": value.plan.problem.model, **given}
        return _of_document(value.document(), given, observer, "<plan>")
    if isinstance(value, SavedResult):
        document = value.document()
        if is_split_plan(document):
            return _of_document(document, given, observer, "<plan>")
    if not isinstance(value, str | bytes | bytearray | memoryview | os.PathLike | Mapping) or not value:
        expected = "give a path, bytes, a document, a StageGraph or a training plan"
        raise InputError(f"{shortened(value)} is no pipeline", parameter="pipeline", remedy=expected)
    source = source_of(value, None, "pipeline", expected=EXPECTED)
    content = Content(source)
    if content.is_json and is_training_plan(content.document):
        return _of_document(content.document, given, observer, source.display, source)
    graph = stage_graph_from_source(source)
    _refuse_idle(given)
    return ReadPipeline(graph, source.display, {"the pipeline": source.path}, files=_files(source, None))


def _of_document(
    document: Any, given: Mapping[str, Any], observer: Observer, display: str, source: Source | None = None
) -> ReadPipeline:
    """Read the pipeline of a training plan's document, which may come from a file."""
    from mtpp.checker.training.versions import is_split_plan
    from mtpp.formats.io.json_shape import attributed

    path = None if source is None else source.path
    with attributed(display):
        if is_split_plan(document):
            timed, due = planned_schedule(document, given)
            return ReadPipeline(timed, display, {"the pipeline": path}, due, _files(source, None))
        graph, model = _of_plan(document, _with_recorded(document, given, path), observer)
    inputs = {"the pipeline": path, "its model": None if model is None else model.path}
    return ReadPipeline(graph, display, inputs, files=_files(source, model))


def _files(pipeline: Source | None, model: Source | None) -> dict[str, dict[str, str]]:
    """Return what a simulation records of the files that it was made of."""
    found = {"pipeline": pipeline, "model": model}
    stated = {name: one.identity for name, one in found.items() if one is not None}
    return {name: one for name, one in stated.items() if "path" in one}


def _with_recorded(document: Any, given: Mapping[str, Any], path: Path | None) -> Mapping[str, Any]:
    """Return what is given with the model that a plan records, where none is."""
    from mtpp.api.inputs.model import MAX_INPUT_BYTES
    from mtpp.api.inputs.recorded_model import NamedFiles, recorded_model

    stated = document.get("model")
    if "model" in given or not isinstance(stated, Mapping):
        return given
    found = recorded_model(stated, path, NamedFiles(MAX_INPUT_BYTES))
    return given if found.path is None else {**given, "model": found.path}


def _refuse_idle(given: Mapping[str, Any]) -> None:
    for name in given:
        raise InputError("has no effect on a stage graph", parameter=name, remedy="leave it out")


def _of_plan(document: Any, given: Mapping[str, Any], observer: Observer) -> tuple[StageGraph, Source | None]:
    """Return the stage graph of a training plan, and the file of its model; warn if that is another one."""
    from mtpp.api.inputs.planned_pipeline import planned_graph, planned_pipeline
    from mtpp.checker.training.versions import check_any_training_plan
    from mtpp.formats.io.json_shape import check_header
    from mtpp.training.graph_plan import VERSION as GRAPH_VERSION
    from mtpp.training.plan import FORMAT, VERSION

    check_header(document, FORMAT, VERSION, GRAPH_VERSION)
    graph = document["version"] == GRAPH_VERSION
    check_any_training_plan(document, ())
    if graph:
        for name in ("batch_size", "micro_batch_size"):
            if name in given:
                raise InputError("the plan states it itself", parameter=name, remedy="leave it out")
        if "model" not in given:
            raise InputError("must be given with a training plan", parameter="model", remedy=_PLANNED)
        model, source = _checked_model(document, given, observer)
        return planned_graph(document, model), source
    given = _sizes_of_plan(document) | dict(given)
    for name, remedy in (
        ("model", _PLANNED),
        ("batch_size", "give the samples of an iteration"),
        ("micro_batch_size", "give the samples that a device takes at once"),
    ):
        if name not in given:
            raise InputError("must be given with a training plan", parameter=name, remedy=remedy)
    model, source = _checked_model(document, given, observer)
    return planned_pipeline(document, model, given["batch_size"], given["micro_batch_size"]), source


def _sizes_of_plan(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes that a plan of version 1 says of its batch, if it does."""
    batch = document.get("batch")
    return {} if batch is None else {"batch_size": batch["samples"], "micro_batch_size": batch["micro_batch_size"]}


def _checked_model(document: Any, given: Mapping[str, Any], observer: Observer) -> tuple[TrainingModel, Source | None]:
    model, source = _model(given["model"], document["time_unit"], given.get("time_unit"))
    if source is not None and source.sha256 != document["model"]["sha256"]:
        observer.warn(f"{source.display}: not the file that the plan was made for; its costs are taken")
    return model, source


def _model(value: Any, plan_unit: str, unit: str | None) -> tuple[TrainingModel, Source | None]:
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.training.task import model_of_plan, model_parameter
    from mtpp.formats.training.models import EXPECTED
    from mtpp.training.model import TrainingModel

    supplied = model_parameter(value)
    if isinstance(supplied, TrainingModel):
        return supplied, None
    source = source_of(supplied, None, "model", expected=EXPECTED)
    return model_of_plan(source, plan_unit, unit), source


def planned_schedule(plan: dict[str, Any], given: Mapping[str, Any]) -> tuple[TimedSchedule, int]:
    """Return the schedule of a plan, and the ticks that the plan says an iteration takes.

    Parameters
    ----------
    plan
        The document.
    given
        What the caller says besides.
    """
    from mtpp.checker.training.versions import check_any_training_plan
    from mtpp.formats.results.planned_schedule import timed_schedule

    check_any_training_plan(plan, ())
    for name in _SAYS_ITSELF:
        if name in given:
            raise InputError("the plan states it itself", parameter=name, remedy="leave it out")
    if "model" in given:
        raise InputError("has no effect: the plan says all times", parameter="model", remedy="leave it out")
    return timed_schedule(plan), plan["iteration_ticks"]
