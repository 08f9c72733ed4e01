"""Equal division is never slower than the published program's, which walks one topological order."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from mtpp.formats.training.models import read_training_model
from mtpp.solvers.planners.equal.equi import plan
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.training.plan import TrainingPlan
from mtpp.training.problem import PlanningProblem
from mtpp.units import PICOSECONDS


@pytest.mark.parametrize(("name", "micro_batches"), [("gnmt", 256), ("resnet", 7680)])
@pytest.mark.parametrize("convention", ["program", "paper"])
def test_published_rows(
    name: str, micro_batches: int, convention: str, shared_data: Path, shared_reference: Path
) -> None:
    """As fast as the published numbers up to their last digit, and infeasible in no row that has one."""
    text = (shared_reference / "piper.json").read_text(encoding="utf-8")
    model, _ = read_training_model(str(shared_data / "piper" / f"{name}.json"), "ms")
    rows = json.loads(text, parse_float=Decimal)[name][convention]
    for row in (row for row in rows if row["equi_tps"] is not None):
        problem = PlanningProblem(
            model,
            devices=row["devices"],
            memory_bytes=int(row["memory_gib"] * 2**30),
            bandwidth_bytes_per_s=25 * 2**30 * 1000,
            micro_batches=micro_batches,
            convention=convention,
        )
        found = plan(problem, PlanLimits())
        assert isinstance(found, TrainingPlan)
        half_a_digit = Fraction(10) ** row["equi_tps"].as_tuple().exponent / 2
        assert found.time_per_sample / PICOSECONDS["ms"] <= Fraction(row["equi_tps"]) + half_a_digit
