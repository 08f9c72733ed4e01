"""Best times per sample by devices and sums of degrees, ``mtpp-training-sweep`` version 1, written only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.certificate import approximation_ratio
from mtpp.formats.json_text import dump_lines
from mtpp.formats.training_plan import fraction, in_units, model_document, per_second, system_document
from mtpp.planning_problem import PlanningProblem
from mtpp.units import PICOSECONDS

FORMAT = "mtpp-training-sweep"
VERSION = 1


def write_training_sweep(document: Mapping[str, Any]) -> str:
    """Return the text of a table: one line per key and per row."""
    return dump_lines(document, ("rows",)) + "\n"


def sweep_document(
    problem: PlanningProblem,
    rows: Sequence[Mapping[str, Any]],
    *,
    planner: str,
    sha256: str,
    stopped: str,
    elapsed_s: float,
) -> dict[str, Any]:
    """Return a table as JSON takes it; *rows* are of :func:`sweep_row`."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "planner": planner,
        "model": model_document(problem, sha256),
        "time_unit": problem.model.time_unit,
        "ticks_per_unit": PICOSECONDS[problem.model.time_unit],
        "system": system_document(problem),
        "devices": _distinct(row["devices"] for row in rows),
        "degrees_sums": _distinct(row["degrees_sum"] for row in rows),
        "rows": list(rows),
        "stopped": stopped,
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
    ratio = None
    if time is not None:
        quotient = time / lower if lower else None
        ratio = approximation_ratio(*(quotient.as_integer_ratio() if quotient else (time.numerator, 0)))
    return {
        "devices": devices,
        "degrees_sum": degrees_sum,
        "feasible": None if lower is None else time is not None,
        "time_per_sample": None if time is None else in_units(time, problem),
        "time_per_sample_ticks": None if time is None else fraction(time),
        "throughput_per_s": None if time is None else per_second(time),
        "lower_bound_ticks": None if time is None or lower is None else fraction(lower),
        "ratio": ratio,
        "optimal": time is not None and time == lower,
        "stages": stages,
    }


def _distinct(values: Iterable[int]) -> list[int]:
    return sorted(set(values))
