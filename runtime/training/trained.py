"""Training runs beside what was planned, and what their own passes predict."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.formats.training.training_folder import TrainingFolder
from mtpp.runtime.training.training_run import TrainingRun
from mtpp.units import PICOSECONDS


@dataclass(frozen=True)
class Trained:
    """A run and what it is compared with.

    Attributes
    ----------
    predicted_s
        Of a step, simulated with what was measured.
    cores
        That the processes share.
    """

    folder: TrainingFolder
    run: TrainingRun
    predicted_s: float
    cores: int

    @property
    def step_s(self) -> float:
        """Median seconds of a step but the first one, where there are more."""
        return _median(self.run.step_s)

    @property
    def unsplit_s(self) -> float:
        """The same of the unsplit model."""
        return _median(self.run.unsplit_s)

    @property
    def tick_s(self) -> float | None:
        """Seconds of a tick of the plan, None where its costs have no unit of time."""
        unit = PICOSECONDS.get(self.folder.timed.time_unit)
        return None if unit is None else unit * 1e-12 / self.folder.timed.ticks_per_unit

    @property
    def planned_s(self) -> float | None:
        """Seconds of a step as planned."""
        return None if self.tick_s is None else self.folder.iteration_ticks * self.tick_s


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds[1:] or seconds)
