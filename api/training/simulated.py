"""Simulated pipelines for Python: figures, charts and traces."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mtpp.api.inputs.file_contents import refuse_inputs
from mtpp.api.output import SavedResult, check_output, write_text_atomically
from mtpp.api.parameters import path_text, shortened
from mtpp.errors import InputError
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.training.pfeife.schedule_run import DeviceTimes, ScheduleRun
    from mtpp.training.simulation import Simulation, StageTimes
    from mtpp.views.terminal import Medium

_CHARTS = (".txt", ".svg", ".html")
_IN_PYTHON = "mtpp.simulate in Python"
_TEXT_WIDTH = 160
"""Columns of a chart in a text file."""

R = TypeVar("R", "Simulation", "ScheduleRun")


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedIteration(SavedResult, Generic[R]):
    """One simulated iteration; shown as the table and the chart that ``mtpp simulate`` prints."""

    record: R
    _inputs: Mapping[str, Path | None] = field(default_factory=dict)
    _files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def iteration_ticks(self) -> int:
        """Ticks until all stages or devices are done: picoseconds, but where times have no unit."""
        return self.record.iteration

    @property
    def bubble_share(self) -> float:
        """Part of the iteration that stages or devices wait, on average over them."""
        return self.record.bubble_share

    @property
    @abstractmethod
    def size_text(self) -> str:
        """What a chart of it has rows for: ``4 stages``, ``4 devices``."""

    def gantt(self, path: str | os.PathLike[str], *, command: str = _IN_PYTHON) -> None:
        """Draw a Gantt chart into a file that ends in ``.txt``, ``.svg`` or ``.html``, over what may be there.

        Parameters
        ----------
        path
            Of the file. A page, ``.html``, is that of :func:`mtpp.report`, whose libraries it needs.
        command
            That a page says it was made by.
        """
        target = path_text(path, "path")
        check_gantt(target, "path")
        refuse_inputs(target, self._inputs)
        write_text_atomically(target, self.gantt_text(target, command))

    def gantt_text(self, path: str, command: str = _IN_PYTHON) -> str:
        """Return the text of such a file."""
        from mtpp.views.training.gantt import gantt_text
        from mtpp.views.training.gantt_svg import gantt_svg

        timeline = self.record.timeline
        if path.lower().endswith(".svg"):
            return gantt_svg(timeline)
        if path.lower().endswith(".html"):
            return self._page(command)
        return gantt_text(timeline, _TEXT_WIDTH)

    def _page(self, command: str) -> str:
        """Return the page with the chart, which is that of reports."""
        from mtpp.api.reporting.made import made_by
        from mtpp.api.reporting.simulated_page import simulated_page
        from mtpp.views.report.page import page_html

        return page_html(simulated_page(self.document(), self.record)[0], made_by(command))

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for ``chrome://tracing`` and Perfetto, over what may be there."""
        target = path_text(path, "path")
        check_trace(target, "path")
        refuse_inputs(target, self._inputs)
        write_text_atomically(target, self.trace_text())

    def trace_text(self) -> str:
        """Return the text of such a file."""
        from mtpp.formats.results.pass_trace import write_trace

        return write_trace(self.record.timeline)

    def _repr_html_(self) -> str:
        from mtpp.views.training.gantt_svg import gantt_svg

        return gantt_svg(self.record.timeline) + super()._repr_html_()


class SimulatedPipeline(SimulatedIteration["Simulation"]):
    """One simulated iteration of a stage graph."""

    @property
    def iteration_s(self) -> float:
        """Seconds until all stages have synchronised their gradients."""
        return self.iteration_ticks / 10**12

    @property
    def size_text(self) -> str:
        """What a chart of it has rows for: ``4 stages``."""
        return counted(len(self.stages), "stage")

    @property
    def stages(self) -> Sequence[StageTimes]:
        """Figures of each stage, in picoseconds."""
        return self.record.stages

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.simulation import simulation_document

        return {**simulation_document(self.record), **self._files}

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.simulation import simulation_text

        return simulation_text(self.record, medium)


class SimulatedSchedule(SimulatedIteration["ScheduleRun"]):
    """One simulated iteration of a schedule of devices, which may have several stages each."""

    @property
    def iteration_s(self) -> float | None:
        """Seconds until the last pass ends; None where times have no unit."""
        return self.iteration_ticks / 10**12 if self.record.timed.timed else None

    @property
    def size_text(self) -> str:
        """What a chart of it has rows for: ``4 devices``."""
        return counted(len(self.devices), "device")

    @property
    def devices(self) -> Sequence[DeviceTimes]:
        """Figures of each device, in ticks."""
        return self.record.devices

    @property
    def starts(self) -> Mapping[str, int]:
        """When each pass begins, in ticks, by its name: ``0F0``, ``0B0``."""
        return self.record.starts

    @property
    def critical_path(self) -> Sequence[str]:
        """Passes and hand-overs without a gap between them, from the first pass to the end: ``0F0``, ``0F0→1``, …."""
        return [part.name for part in self.record.critical_path]

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.simulation import schedule_simulation_document

        return {**schedule_simulation_document(self.record), **self._files}

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.simulation import schedule_simulation_text

        return schedule_simulation_text(self.record, medium)


def check_gantt(path: str, parameter: str = "gantt") -> None:
    """Check that a chart can be written to *path*, before the work.

    Raises
    ------
    InputError
        If the ending is none of ``.txt``, ``.svg`` and ``.html``, the folder is not writable, or a page needs libraries
        of the extra ``report`` that are missing.
    """
    if not path.lower().endswith(_CHARTS):
        problem = f"{shortened(path)} has none of the endings {', '.join(_CHARTS)}"
        raise InputError(problem, parameter=parameter, remedy="name the file like gantt.svg")
    if path.lower().endswith(".html"):
        from mtpp.views.report.page import require_libraries

        require_libraries()
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
