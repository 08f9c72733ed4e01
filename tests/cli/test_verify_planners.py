"""Every planner's documents, as they are written and read back, hold before the verifier and the search run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from training_models import random_problem
from training_plan_documents import training_claim

from mtpp.checker.training.model import training_model_in_ticks
from mtpp.checker.training.plan import verify_training_plan
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.training_plan import no_plan_document, training_plan_document
from mtpp.formats.training.models import read_training_model
from mtpp.machine.machine import Machine
from mtpp.names import CONVENTIONS
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.registry import PLANNERS
from mtpp.solvers.recheck.pipelines import Unwatched
from mtpp.solvers.recheck.training import recheck_bound, recheck_no_plan
from mtpp.training.plan import NoPlan
from mtpp.training.problem import PlanningProblem

SHA256 = "0" * 64


def document_of(problem: PlanningProblem, planner: str) -> Any:
    """Return what a planner comes to, after a trip through its file."""
    result = PLANNERS[planner].load()(problem, PlanLimits())
    if isinstance(result, NoPlan):
        document = no_plan_document(problem, result, file={"sha256": SHA256}, elapsed_s=0.1)
    else:
        document = training_plan_document(
            result, file={"sha256": SHA256}, knapsack="exact", heuristic_differs=[], elapsed_s=0.1
        )
    return parse_json(document_text(document).encode(), "plan")


@pytest.mark.parametrize("planner", list(PLANNERS))
def test_what_planners_say_is_true(planner: str) -> None:
    """Plans, bounds of all kinds, and that there is no plan and what memory would do."""
    feasible = 0
    for seed in range(40):
        problem = random_problem(seed, most_layers=6)
        document = document_of(problem, planner)
        report = verify_training_plan(document, problem.model, SHA256)
        assert report.passed, (seed, report)
        if not document["feasible"]:
            ticks = training_model_in_ticks(problem.model, problem.link.bandwidth_bytes_per_s)
            assert all(check.passed for check in recheck_no_plan(document, ticks, Unwatched())), seed
        elif report.tier == "enumerated":
            claim = training_claim(document, problem.model)
            assert recheck_bound(claim, document["lower_bound"]["method"], Unwatched()).passed, seed
        feasible += document["feasible"]
    assert 10 < feasible < 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "unit", "scale", "devices", "memory_gib", "micro_batches"),
    [
        ("bert32a100", "s", 1, 64, 2.0, 1920),
        ("resnet", "ms", 1000, 64, 4.0, 7680),
        ("gnmt", "ms", 1000, 8, 1.2, 256),
        ("resnet", "ms", 1000, 8, 2.0, 7680),  # there is none
    ],
)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_plans_of_published_models_are_optimal(
    name: str,
    unit: str,
    scale: int,
    devices: int,
    memory_gib: float,
    micro_batches: int,
    convention: str,
    shared_data: Path,
) -> None:
    """To the last fraction of a tick, by a search that shares nothing with the planner's."""
    model, _ = read_training_model(str(shared_data / "piper" / f"{name}.json"), unit)
    problem = PlanningProblem(
        model,
        machine=Machine.of_devices(
            devices, memory_bytes=int(memory_gib * 2**30), bandwidth_bytes_per_s=25 * 2**30 * scale
        ),
        micro_batches=micro_batches,
        convention=convention,
    )
    document = document_of(problem, "piper")
    report = verify_training_plan(document, model, SHA256)
    assert report.passed, report
    if document["feasible"]:
        assert document["optimal"]
        claim = training_claim(document, model)
        assert report.tier == "exact" or recheck_bound(claim, "downset", Unwatched()).passed
    else:
        ticks = training_model_in_ticks(model, problem.link.bandwidth_bytes_per_s)
        assert all(check.passed for check in recheck_no_plan(document, ticks, Unwatched()))
