"""Best times per sample by devices and sums of degrees, ``mtpp-training-sweep`` version 1, written only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.formats.results.training_plan import fraction, header, in_units, per_second
from mtpp.host.stop_reason import StopReason
from mtpp.training.plan import time_ratio
from mtpp.training.problem import PlanningProblem

FORMAT = "mtpp-training-sweep"
VERSION = 1


def sweep_document(
    problem: PlanningProblem,
    rows: Sequence[Mapping[str, Any]],
    *,
    planner: str,
    sha256: str,
    stopped: StopReason,
    elapsed_s: float,
) -> dict[str, Any]:
    """Return a table as JSON takes it; *rows* are of :func:`sweep_row`."""
    return {
        **header(FORMAT, VERSION, problem, planner, sha256),
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


def _distinct(values: Iterable[int]) -> list[int]:
    return sorted(set(values))
