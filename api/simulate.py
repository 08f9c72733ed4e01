"""Simulation of training pipelines: when each pass and each transfer begins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.output import SavedResult, check_output, write_text_atomically
from mtpp.api.parameters import path_text, shortened
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.plan_training import TrainingPlanResult
    from mtpp.training.model import TrainingModel
    from mtpp.training.simulation import Simulation, StageTimes
    from mtpp.training.stage_graph import StageGraph

_CHARTS = (".txt", ".svg", ".html")
_TEXT_WIDTH = 160
"""Columns of a chart in a text file."""


def simulate(
    pipeline: str | os.PathLike[str] | bytes | Mapping[str, Any] | StageGraph | TrainingPlanResult,
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
        Of a training plan: samples of an iteration, and those that a device takes at once; d replicas make
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
    Stages of a plan run in a line, each waiting for the one before, while tensors go straight to their readers. Costs
    of sizes that the model does not list are in proportion, its backward passes twice its forward passes.

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

    given = {"model": model, "batch_size": batch_size, "micro_batch_size": micro_batch_size, "time_unit": time_unit}
    graph, source = _stage_graph(pipeline, {name: value for name, value in given.items() if value is not None})
    if not compiled_simulation():
        listener(observer).say("compiling (once) …")
    with attributed(source):
        return SimulatedPipeline(simulated(graph))


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedPipeline(SavedResult):
    """One simulated iteration; shown as the table and the chart that ``mtpp simulate`` prints."""

    record: Simulation

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
            If it ends in something else, or cannot be written.
        """
        target = path_text(path, "path")
        check_gantt(target, "path")
        write_text_atomically(target, self.gantt_text(target))

    def gantt_text(self, path: str) -> str:
        """Return the text of such a file."""
        from mtpp.views.training.gantt import gantt_text
        from mtpp.views.training.gantt_svg import gantt_html, gantt_svg
        from mtpp.views.training.simulation import simulation_text

        if path.endswith(".svg"):
            return gantt_svg(self.record)
        if path.endswith(".html"):
            return gantt_html(self.record, simulation_text(self.record, "html"))
        return gantt_text(self.record, _TEXT_WIDTH)

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for ``chrome://tracing`` and Perfetto, over what may be there.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        write_text_atomically(path_text(path, "path"), self.trace_text())

    def trace_text(self) -> str:
        """Return the text of such a file."""
        from mtpp.formats.results.pass_trace import write_trace

        return write_trace(self.record)

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

        return gantt_svg(self.record) + simulation_text(self.record, "html")


def check_gantt(path: str, parameter: str = "gantt") -> None:
    """Check that a chart can be written to *path*, before the work.

    Raises
    ------
    InputError
        If the ending is none of ``.txt``, ``.svg`` and ``.html``, or the folder is not writable.
    """
    if not path.endswith(_CHARTS):
        problem = f"{shortened(path)} has none of the endings {', '.join(_CHARTS)}"
        raise InputError(problem, parameter=parameter, remedy="name the file like gantt.svg")
    check_output(path)


def _stage_graph(value: Any, given: Mapping[str, Any]) -> tuple[StageGraph, str]:
    """Return the stage graph of a call, and what messages call its file; *given* is said of a training plan."""
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.plan_training import TrainingPlanResult
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.results.verifiable import is_training_plan
    from mtpp.formats.training.stage_graph import EXPECTED, stage_graph_from_source
    from mtpp.training.stage_graph import StageGraph

    if isinstance(value, StageGraph):
        _refuse_idle(given)
        return value, "<stage graph>"
    if isinstance(value, TrainingPlanResult):
        given = {"model": value.plan.problem.model, **given}
        return _of_plan(value.document(), given), "<plan>"
    if not isinstance(value, str | bytes | bytearray | memoryview | os.PathLike | Mapping) or not value:
        expected = "give a path, bytes, a document, a StageGraph or a training plan"
        raise InputError(f"{shortened(value)} is no pipeline", parameter="pipeline", remedy=expected)
    source = source_of(value, None, "pipeline", expected=EXPECTED)
    content = Content(source)
    if content.is_json and is_training_plan(content.document):
        with attributed(source.display):
            return _of_plan(content.document, given), source.display
    _refuse_idle(given)
    return stage_graph_from_source(source), source.display


def _refuse_idle(given: Mapping[str, Any]) -> None:
    for name in given:
        raise InputError("has no effect on a stage graph", parameter=name, remedy="leave it out")


def _of_plan(document: Any, given: Mapping[str, Any]) -> StageGraph:
    """Return the stage graph of a training plan."""
    from mtpp.api.inputs.planned_pipeline import planned_pipeline
    from mtpp.api.parameters import time_unit_or_none, whole
    from mtpp.checker.training.document import check_training_plan
    from mtpp.formats.io.json_shape import check_header
    from mtpp.training.plan import FORMAT, VERSION

    check_header(document, FORMAT, VERSION)
    check_training_plan(document, ())
    for name, remedy in (
        ("model", "give the model that the plan is for"),
        ("batch_size", "give the samples of an iteration"),
        ("micro_batch_size", "give the samples that a device takes at once"),
    ):
        if name not in given:
            raise InputError("must be given with a training plan", parameter=name, remedy=remedy)
    sizes = [whole(given[name], name) for name in ("batch_size", "micro_batch_size")]
    unit = time_unit_or_none(given.get("time_unit"))
    return planned_pipeline(document, _model(given["model"], document["time_unit"], unit), *sizes)


def _model(value: Any, plan_unit: str, unit: str | None) -> TrainingModel:
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.training.plan_model import model_of_plan
    from mtpp.api.training.task import model_parameter
    from mtpp.formats.training.models import EXPECTED
    from mtpp.training.model import TrainingModel

    supplied = model_parameter(value)
    if isinstance(supplied, TrainingModel):
        return supplied
    return model_of_plan(source_of(supplied, None, "model", expected=EXPECTED), plan_unit, unit)
