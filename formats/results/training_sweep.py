"""Best times per sample by devices and sums of degrees, ``mtpp-training-sweep`` version 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from mtpp.checker.document import time_unit
from mtpp.checker.training.document import fraction as exact_time
from mtpp.document_shape import Path, Rule, array, choice, flag, nullable, number, record, refuse, text, whatever, whole
from mtpp.formats.results.training_plan import TrainingTask, fraction, header, in_units, per_second
from mtpp.host.stop_reason import StopReason
from mtpp.training.plan import SweepCell, time_ratio
from mtpp.training.problem import PlanningProblem

FORMAT = "mtpp-training-sweep"
VERSION = 1


@dataclass(frozen=True)
class Swept:
    """A task with the best times for numbers of devices and sums of degrees.

    Attributes
    ----------
    cells
        By (devices, sum of degrees); those that were not reached are missing.
    stopped
        Why planning ended.
    elapsed_s
        Seconds of planning.
    """

    task: TrainingTask
    devices: Sequence[int]
    sums: Sequence[int]
    cells: Mapping[tuple[int, int], SweepCell]
    stopped: StopReason
    elapsed_s: float

    @property
    def feasible(self) -> bool:
        """Whether there is a plan at all."""
        return any(cell.time is not None for cell in self.cells.values())

    @property
    def open(self) -> int:
        """Number of cells that were not reached: nothing is known of them."""
        return len(self.devices) * len(self.sums) - len(self.cells)

    @property
    def problem(self) -> str | None:
        """Fault of a sweep without any plan; None where there is a plan."""
        if self.feasible:
            return None
        if self.open:
            return "no plan was found before the search ended"
        return "no plan fits on any of these numbers of devices"

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per cell, as JSON and CSV have them."""
        rows = []
        for place in product(self.devices, self.sums):
            cell = self.cells.get(place)
            known = () if cell is None else (cell.time, cell.lower, cell.stages)
            rows.append(sweep_row(self.task.flat, *place, *known))
        return rows

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-sweep`` document, version 1."""
        return sweep_document(
            self.task.flat,
            self.rows(),
            planner=self.task.planner,
            file=self.task.source.identity,
            stopped=self.stopped,
            elapsed_s=self.elapsed_s,
        )


def sweep_document(
    problem: PlanningProblem,
    rows: Sequence[Mapping[str, Any]],
    *,
    planner: str,
    file: Mapping[str, str],
    stopped: StopReason,
    elapsed_s: float,
) -> dict[str, Any]:
    """Return a table as JSON takes it; *rows* are of :func:`sweep_row`."""
    return {
        **header(FORMAT, VERSION, problem, planner, file),
        "devices": _distinct(row["devices"] for row in rows),
        "degrees_sums": _distinct(row["degrees_sum"] for row in rows),
        "rows": list(rows),
        "stopped": str(stopped),
        "elapsed_s": round(elapsed_s, 6),
    }


def sweep_row(
    problem: PlanningProblem,
    devices: int,
    degrees_sum: int,
    time: Fraction | None = None,
    lower: Fraction | None = None,
    stages: int | None = None,
) -> dict[str, Any]:
    """Return the row of the plans on at most *devices* devices whose degrees add up to at most *degrees_sum*.

    Without a *lower* bound nothing is known of it, for the search had to end before. Without a *time* otherwise, no
    plan fits.
    """
    return {
        "devices": devices,
        "degrees_sum": degrees_sum,
        "feasible": None if lower is None else time is not None,
        "time_per_sample": None if time is None else in_units(time, problem),
        "time_per_sample_ticks": None if time is None else fraction(time),
        "throughput_per_s": None if time is None else per_second(time),
        "lower_bound_ticks": None if time is None or lower is None else fraction(lower),
        "ratio": None if time is None or lower is None else time_ratio(time, lower),
        "optimal": time is not None and time == lower,
        "stages": stages,
    }


_ROW: dict[str, Rule] = {
    "devices": whole(1),
    "degrees_sum": whole(1),
    "feasible": nullable(flag),
    "time_per_sample": nullable(number),
    "time_per_sample_ticks": nullable(exact_time),
    "throughput_per_s": nullable(number),
    "lower_bound_ticks": nullable(exact_time),
    "ratio": nullable(number),
    "optimal": flag,
    "stages": nullable(whole()),
}

_sweep = record(
    {
        "format": choice(FORMAT),
        "version": whole(1, VERSION + 1),
        "planner": text,
        "model": record({"name": text}, closed=False),
        "time_unit": time_unit,
        "ticks_per_unit": whole(1),
        "system": record({"devices": whole(1)}, closed=False),
        "devices": whatever,
        "degrees_sums": whatever,
        "rows": array(record(_ROW)),
        "stopped": text,
        "elapsed_s": number,
    }
)


def check_sweep(value: Any, path: Path) -> None:
    """Take a table of best times.

    Raises
    ------
    InputError
        If it is malformed, or of a version that this program does not know.
    """
    _sweep(value, path)
    if not value["rows"]:
        refuse("there are no rows", (*path, "rows"))
    for i, row in enumerate(value["rows"]):
        if (row["time_per_sample_ticks"] is not None) != (row["feasible"] is True):
            refuse("rows with a plan have a time, and no others", (*path, "rows", i, "time_per_sample_ticks"))


def _distinct(values: Iterable[int]) -> list[int]:
    return sorted(set(values))
