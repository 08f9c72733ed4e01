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
    from mtpp.training.simulation import Simulation, StageTimes
    from mtpp.training.stage_graph import StageGraph

_CHARTS = (".txt", ".svg", ".html")
_TEXT_WIDTH = 160
"""Columns of a chart in a text file."""


def simulate(
    pipeline: str | os.PathLike[str] | bytes | Mapping[str, Any] | StageGraph, *, observer: Observer | None = None
) -> SimulatedPipeline:
    """Simulate one iteration of a training pipeline: every pass starts as soon as it can.

    A stage runs its passes one after the other, in its order. Forward pass j waits for the forward passes of the stages
    before that have samples of its micro-batch, its backward pass for the backward passes of the stages behind. Each
    transfer has a channel of its own in each direction, beside computing: first come, first served. After its last pass
    a stage synchronises gradients.

    Parameters
    ----------
    pipeline
        A stage graph, ``mtpp-stage-graph`` in ``docs/formats.md``: the path of its file, its content as bytes or as
        parsed JSON, or a :class:`mtpp.training.stage_graph.StageGraph`.
    observer
        Is told if inner loops have to be compiled first.

    Raises
    ------
    InputError
        If the stage graph is broken: the message names the place.
    Deadlock
        An InputError too: passes wait for each other, so that the iteration never ends; the text names them.

    Notes
    -----
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

    graph, source = _stage_graph(pipeline)
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


def _stage_graph(value: Any) -> tuple[StageGraph, str]:
    """Return the stage graph of a call, and what messages call its file."""
    from mtpp.api.inputs.reading import source_of
    from mtpp.formats.training.stage_graph import EXPECTED, stage_graph_from_source
    from mtpp.training.stage_graph import StageGraph

    if isinstance(value, StageGraph):
        return value, "<stage graph>"
    if not isinstance(value, str | bytes | bytearray | memoryview | os.PathLike | Mapping) or not value:
        expected = "give a path, bytes, a document or a StageGraph"
        raise InputError(f"{shortened(value)} is no stage graph", parameter="pipeline", remedy=expected)
    source = source_of(value, None, "pipeline", expected=EXPECTED)
    return stage_graph_from_source(source), source.display
