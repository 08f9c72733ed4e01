"""Problems of Piper's evaluation, planned and timed: what the tables of ``benchmarks.piper`` are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from mtpp.formats.training.models import read_training_model
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.registry import PLANNERS
from mtpp.training.model import TrainingModel
from mtpp.training.plan import NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes
from mtpp.units import PICOSECONDS

SHARED = Path(__file__).resolve().parent.parent.parent.parent / "shared"
MODELS = SHARED / "data" / "piper"
PUBLISHED = SHARED / "reference" / "piper.json"

GIB = 2**30
BANDWIDTH = 25 * GIB
"""Bytes per unit of time of the file, be that seconds or milliseconds, as the published program has it."""


@dataclass(frozen=True)
class Workload:
    """A model of the evaluation: unit of its times, and micro-batches in a batch."""

    name: str
    time_unit: str
    micro_batches: int

    @property
    def ticks(self) -> int:
        """Picoseconds in the unit."""
        return PICOSECONDS[self.time_unit]


BERT = Workload("bert32a100", "s", 1920)
WORKLOADS = {one.name: one for one in (Workload("gnmt", "ms", 256), Workload("resnet", "ms", 7680), BERT)}

VARIANTS: Mapping[str, tuple[str, Schemes]] = {
    "Piper": ("piper", Schemes()),
    "no DP": ("piper", Schemes(data_parallel=False)),
    "no TP": ("piper", Schemes(tensor_parallel=False)),
    "no AR": ("piper", Schemes(recompute=False)),
    "equi": ("equi", Schemes()),
    "equi-no TP": ("pipedream-2bw", Schemes()),
}
"""Piper and its baselines, section 5 of the paper: a planner, and the schemes that it may use."""


@dataclass(frozen=True)
class Run:
    """What a planner made of a problem, and how long it took."""

    result: TrainingPlan | NoPlan
    seconds: float

    @property
    def ticks(self) -> Fraction | None:
        """Time per sample of the plan; None if there is none."""
        return self.result.time_per_sample if isinstance(self.result, TrainingPlan) else None


@cache
def model_of(workload: Workload) -> TrainingModel:
    """Read a model of the evaluation."""
    return read_training_model(str(MODELS / f"{workload.name}.json"), workload.time_unit)[0]


def problem_of(
    workload: Workload,
    devices: int,
    memory_gib: Decimal | int,
    *,
    convention: str,
    micro_batches: int | None = None,
    schemes: Schemes | None = None,
    model: TrainingModel | None = None,
) -> PlanningProblem:
    """Return the problem of a row: devices, their memory in GiB, and the rest as the workload has it."""
    return PlanningProblem(
        model or model_of(workload),
        machine=Machine.of_devices(
            devices,
            memory_bytes=int(Fraction(memory_gib) * GIB),
            bandwidth_bytes_per_s=BANDWIDTH * (PICOSECONDS["s"] // workload.ticks),
        ),
        micro_batches=micro_batches or workload.micro_batches,
        convention=convention,
        schemes=schemes,
    )


def run(problem: PlanningProblem, planner: str, *, jobs: int = 2, knapsack: str = "exact") -> Run:
    """Plan and take the time."""
    plan = PLANNERS[planner].load()
    start = perf_counter()
    result = plan(problem, PlanLimits(jobs=jobs, knapsack=knapsack))
    return Run(result, perf_counter() - start)


def best_times(
    problems: Mapping[int, PlanningProblem], planner: str, *, jobs: int = 2
) -> Mapping[int, Fraction | None]:
    """Return the least time per sample by number of devices, in ticks, None where nothing fits.

    One run answers all where the planner can do that.

    Parameters
    ----------
    problems
        By number of devices; they differ in nothing else.
    """
    if not PLANNERS[planner].sweeps:
        return {k: run(problem, planner, jobs=jobs).ticks for k, problem in problems.items()}
    from mtpp.solvers.planners.piper.sweep import sweep

    largest = problems[max(problems)]
    cells = sweep(largest, sorted(problems), [largest.micro_batches], PlanLimits(jobs=jobs))
    return {k: cells[k, largest.micro_batches].time for k in problems}


def published() -> Any:
    """Return the numbers of the paper and of its published program, as they were printed."""
    return json.loads(PUBLISHED.read_text(encoding="utf-8"), parse_float=Decimal)


def half_a_digit(number: Decimal | int) -> Fraction:
    """Return half a unit of the last digit that was printed."""
    exponent = Decimal(number).as_tuple().exponent
    return Fraction(10) ** int(exponent) / 2


def shown(number: Fraction | Decimal | int | None, digits: int = 6, absent: str = "OOM") -> str:
    """Return a number for a table, *absent* for None."""
    return absent if number is None else f"{float(number):.{digits}g}"


def gib(count: int | None) -> str:
    """Return bytes in GiB, rounded up to three digits behind the point."""
    return "–" if count is None else f"{-(-count * 1000 // GIB) / 1000:.3f}"


def missing() -> Sequence[Path]:
    """Return the files that are not there."""
    return [path for path in (PUBLISHED, *(MODELS / f"{name}.json" for name in WORKLOADS)) if not path.is_file()]
