"""Simulation of training pipelines: when each pass and each transfer begins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.own_files import refuse_inputs
from mtpp.api.observer import Observer, listener
from mtpp.api.output import SavedResult, check_output, write_text_atomically
from mtpp.api.parameters import path_text, shortened
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.training.graph_result import GraphPlanResult
    from mtpp.api.training.line_result import TrainingPlanResult
    from mtpp.formats.io.source import Source
    from mtpp.training.model import TrainingModel
    from mtpp.training.simulation import Simulation, StageTimes
    from mtpp.training.stage_graph import StageGraph

_CHARTS = (".txt", ".svg", ".html")
_PLANNED = "give the model that the plan is for"
_TEXT_WIDTH = 160
"""Columns of a chart in a text file."""


def simulate(
    pipeline: str | os.PathLike[str] | bytes | Mapping[str, Any] | StageGraph | TrainingPlanResult | GraphPlanResult,
    *,
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel | None = None,
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    time_unit: str | None = None,
    observer: Observer | None = None,
) -> SimulatedPipeline:
    """Simulate one iteration of a training pipeline: every pass starts as soon as it can.

    A stage runs its passes one after the other, in its order. Forward pass j waits for the forward passes of the stages
    before that have samples of its micro-batch, its backward pass for the backward passes of the stages behind. Each
    transfer has a channel of its own in each direction, beside computing: first come, first served. After its last pass
    a stage synchronises gradients.

    Parameters
    ----------
    pipeline
        A stage graph, ``mtpp-stage-graph`` in ``docs/formats.md``, or a training plan: the path of its file, its
        content as bytes or as parsed JSON; or a :class:`mtpp.training.stage_graph.StageGraph`, or what
        :func:`mtpp.plan_training` returned.
    model
        That a training plan is for, as :func:`mtpp.plan_training` takes it; one in memory brings its own.
    batch_size, micro_batch_size
        Of a training plan of version 1: samples of an iteration, and those that a device takes at once; d replicas make
        micro-batches of d times as many.
    time_unit
        Of times in a model that names none, by default that of the plan.
    observer
        Is told if inner loops have to be compiled first.

    Raises
    ------
    InputError
        If the pipeline or the model is broken, they do not go together, or a size is missing or divides nothing: the
        message names the place.
    Deadlock
        An InputError too: passes wait for each other, so that the iteration never ends; the text names them.

    Notes
    -----
    Stages of a plan of version 2 run as planned. Those of version 1 run in a line, each waiting for the one before,
    while tensors go straight to their readers. Costs of sizes that the model does not list are in proportion, its
    backward passes twice its forward passes.

    O(passes · transfers of their stage); 32 stages with 512 micro-batches take milliseconds.

    Examples
    --------
    >>> stage = {"micro_batch": 1, "forward": 1, "backward": 2}
    >>> pipeline = {
    ...     "format": "mtpp-stage-graph", "version": 1, "name": "four in a line", "time_unit": "ms", "mini_batch": 8,
    ...     "stages": [{**stage, "in_flight": 4 - s} for s in range(4)],
    ...     "transfers": [{"source": s, "target": s + 1, "forward": 0, "backward": 0} for s in range(3)],
    ... }
    >>> simulated = simulate(pipeline)
    >>> simulated.iteration_s
    0.033
    >>> [stage.peak_in_flight for stage in simulated.stages]
    [4, 3, 2, 1]
    """
    from mtpp.formats.io.json_shape import attributed
    from mtpp.solvers.planners.compiling import compiled_simulation
    from mtpp.solvers.planners.simulation.simulate import simulate as simulated

    heard = listener(observer)
    given = {"model": model, "batch_size": batch_size, "micro_batch_size": micro_batch_size, "time_unit": time_unit}
    read = _read(pipeline, {name: value for name, value in given.items() if value is not None}, heard)
    if not compiled_simulation():
        heard.say("compiling (once) …")
    with attributed(read.display):
        return SimulatedPipeline(simulated(read.graph), read.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedPipeline(SavedResult):
    """One simulated iteration; shown as the table and the chart that ``mtpp simulate`` prints."""

    record: Simulation
    _inputs: Mapping[str, Path | None] = field(default_factory=dict)

    @property
    def iteration_s(self) -> float:
        """Seconds until all stages have synchronised their gradients."""
        return self.iteration_ticks / 10**12

    @property
    def iteration_ticks(self) -> int:
        """The same in picoseconds, exactly."""
        return self.record.iteration

    @property
    def stages(self) -> Sequence[StageTimes]:
        """Figures of each stage, in picoseconds."""
        return self.record.stages

    @property
    def bubble_share(self) -> float:
        """Part of the iteration that stages wait, on average over stages."""
        return self.record.bubble_share

    def gantt(self, path: str | os.PathLike[str]) -> None:
        """Draw a Gantt chart into a file that ends in ``.txt``, ``.svg`` or ``.html``, over what may be there.

        Raises
        ------
        InputError
            If it ends in something else, cannot be written, or is what the pipeline was read from.
        """
        target = path_text(path, "path")
        check_gantt(target, "path")
        refuse_inputs(target, self._inputs)
        write_text_atomically(target, self.gantt_text(target))

    def gantt_text(self, path: str) -> str:
        """Return the text of such a file."""
        from mtpp.views.training.gantt import gantt_text
        from mtpp.views.training.gantt_svg import gantt_html, gantt_svg
        from mtpp.views.training.simulation import simulation_text

        if path.lower().endswith(".svg"):
            return gantt_svg(self.record.timeline)
        if path.lower().endswith(".html"):
            return gantt_html(self.record.timeline, simulation_text(self.record, "html"))
        return gantt_text(self.record.timeline, _TEXT_WIDTH)

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for ``chrome://tracing`` and Perfetto, over what may be there.

        Raises
        ------
        InputError
            If it cannot be written, or is what the pipeline was read from.
        """
        target = path_text(path, "path")
        check_trace(target, "path")
        refuse_inputs(target, self._inputs)
        write_text_atomically(target, self.trace_text())

    def trace_text(self) -> str:
        """Return the text of such a file."""
        from mtpp.formats.results.pass_trace import write_trace

        return write_trace(self.record.timeline)

    def to_json(self) -> str:
        """Return the text of the ``mtpp-simulation`` document."""
        from mtpp.formats.results.simulation import write_simulation

        return write_simulation(self.record)

    def __repr__(self) -> str:
        from mtpp.views.tables import plain_terminal
        from mtpp.views.training.simulation import simulation_text

        return simulation_text(self.record, "table", plain_terminal()).removesuffix("\n")

    def _repr_html_(self) -> str:
        from mtpp.views.training.gantt_svg import gantt_svg
        from mtpp.views.training.simulation import simulation_text

        return gantt_svg(self.record.timeline) + simulation_text(self.record, "html")


def check_gantt(path: str, parameter: str = "gantt") -> None:
    """Check that a chart can be written to *path*, before the work.

    Raises
    ------
    InputError
        If the ending is none of ``.txt``, ``.svg`` and ``.html``, or the folder is not writable.
    """
    if not path.lower().endswith(_CHARTS):
        problem = f"{shortened(path)} has none of the endings {', '.join(_CHARTS)}"
        raise InputError(problem, parameter=parameter, remedy="name the file like gantt.svg")
    check_output(path)


def check_trace(path: str, parameter: str = "trace") -> None:
    """Check that a trace can be written to *path*, before the work.

    Raises
    ------
    InputError
        If it is standard output, or the folder is not writable.
    """
    if path == "-":
        raise InputError("goes to a file, not to standard output", parameter=parameter, remedy="name it trace.json")
    check_output(path)


@dataclass(frozen=True)
class _Read:
    """A stage graph, what messages call its file, and the files that it was read from."""

    graph: StageGraph
    display: str
    inputs: Mapping[str, Path | None] = field(default_factory=dict)


def _read(value: Any, given: Mapping[str, Any], observer: Observer) -> _Read:
    """Read the pipeline of a call; *given* is said of a training plan."""
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.training.graph_result import GraphPlanResult
    from mtpp.api.training.line_result import TrainingPlanResult
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.results.verifiable import is_training_plan
    from mtpp.formats.training.stage_graph import EXPECTED, stage_graph_from_source
    from mtpp.training.stage_graph import StageGraph

    if isinstance(value, StageGraph):
        _refuse_idle(given)
        again = StageGraph.build(value.name, value.time_unit, value.mini_batch, value.stages, value.transfers)
        return _Read(again, "<stage graph>")
    if isinstance(value, TrainingPlanResult | GraphPlanResult):
        given = {"model": value.plan.problem.model, **given}
        return _Read(_of_plan(value.document(), given, observer)[0], "<plan>")
    if not isinstance(value, str | bytes | bytearray | memoryview | os.PathLike | Mapping) or not value:
        expected = "give a path, bytes, a document, a StageGraph or a training plan"
        raise InputError(f"{shortened(value)} is no pipeline", parameter="pipeline", remedy=expected)
    source = source_of(value, None, "pipeline", expected=EXPECTED)
    content = Content(source)
    if content.is_json and is_training_plan(content.document):
        with attributed(source.display):
            graph, model = _of_plan(content.document, given, observer)
        return _Read(graph, source.display, {"the pipeline": source.path, "its model": model})
    graph = stage_graph_from_source(source)
    _refuse_idle(given)
    return _Read(graph, source.display, {"the pipeline": source.path})


def _refuse_idle(given: Mapping[str, Any]) -> None:
    for name in given:
        raise InputError("has no effect on a stage graph", parameter=name, remedy="leave it out")


def _of_plan(document: Any, given: Mapping[str, Any], observer: Observer) -> tuple[StageGraph, Path | None]:
    """Return the stage graph of a training plan, and the file of its model; warn if that is another one."""
    from mtpp.api.inputs.planned_graph import planned_graph
    from mtpp.api.inputs.planned_pipeline import planned_pipeline
    from mtpp.api.parameters import time_unit_or_none, whole
    from mtpp.checker.training.versions import check_any_training_plan, is_split_plan
    from mtpp.formats.io.json_shape import check_header
    from mtpp.training.graph_plan import VERSION as GRAPH_VERSION
    from mtpp.training.plan import FORMAT, VERSION

    graph = document.get("version") == GRAPH_VERSION
    if is_split_plan(document):
        raise InputError(
            "a plan by pfeife, with several stages on a device, is not drawn",
            remedy="mtpp verify replays its iteration",
        )
    check_header(document, FORMAT, GRAPH_VERSION if graph else VERSION)
    check_any_training_plan(document, ())
    unit = time_unit_or_none(given.get("time_unit"))
    if graph:
        for name in ("batch_size", "micro_batch_size"):
            if name in given:
                raise InputError("the plan states it itself", parameter=name, remedy="leave it out")
        if "model" not in given:
            raise InputError("must be given with a training plan", parameter="model", remedy=_PLANNED)
        model, source = _checked_model(given["model"], document, unit, observer)
        return planned_graph(document, model), None if source is None else source.path
    for name, remedy in (
        ("model", _PLANNED),
        ("batch_size", "give the samples of an iteration"),
        ("micro_batch_size", "give the samples that a device takes at once"),
    ):
        if name not in given:
            raise InputError("must be given with a training plan", parameter=name, remedy=remedy)
    sizes = [whole(given[name], name) for name in ("batch_size", "micro_batch_size")]
    model, source = _checked_model(given["model"], document, unit, observer)
    return planned_pipeline(document, model, *sizes), None if source is None else source.path


def _checked_model(
    value: Any, document: Any, unit: str | None, observer: Observer
) -> tuple[TrainingModel, Source | None]:
    model, source = _model(value, document["time_unit"], unit)
    if source is not None and source.sha256 != document["model"]["sha256"]:
        observer.warn(f"{source.display}: not the file that the plan was made for; its costs are taken")
    return model, source


def _model(value: Any, plan_unit: str, unit: str | None) -> tuple[TrainingModel, Source | None]:
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.training.plan_model import model_of_plan
    from mtpp.api.training.task import model_parameter
    from mtpp.formats.training.models import EXPECTED
    from mtpp.training.model import TrainingModel

    supplied = model_parameter(value)
    if isinstance(supplied, TrainingModel):
        return supplied, None
    source = source_of(supplied, None, "model", expected=EXPECTED)
    return model_of_plan(source, plan_unit, unit), source
