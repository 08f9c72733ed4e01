"""``sweep``: every cell is what the planner finds for it alone; cells that a limit left open are told apart."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from training_models import random_problem

from mtpp.planning_problem import PlanningProblem
from mtpp.solvers.planners import piper
from mtpp.solvers.planners.planning import NoPlan, PlanLimits
from mtpp.solvers.planners.sweep import sweep


def _problem(seed: int) -> PlanningProblem:
    """Return a problem in which sums of degrees change nothing but what is allowed."""
    return replace(random_problem(seed), convention="paper", exact_micro_batches=False)


def _best(problem: PlanningProblem, devices: int, degrees_sum: int) -> Fraction | None:
    """Return the time of the planner's plan, None if it proves that there is none."""
    allowed = [t for t in problem.degrees if t <= devices]
    choices = [by_layer for t, by_layer in zip(problem.degrees, problem.choices, strict=True) if t <= devices]
    if any(not any(by_layer[v] for by_layer in choices) for v in range(len(problem.model.layers))):
        return None
    alone = replace(problem, devices=devices, micro_batches=degrees_sum, degrees=allowed, choices=choices)
    plan = piper.plan(alone, PlanLimits())
    if isinstance(plan, NoPlan):
        assert plan.proven
        return None
    assert plan.optimal
    return plan.time_per_sample


def _axes(problem: PlanningProblem) -> tuple[range, range]:
    return range(1, problem.devices + 1), range(1, problem.micro_batches + 1)


@pytest.mark.parametrize("seed", range(24))
def test_cells_are_what_the_planner_finds(seed: int) -> None:
    """Times are the same fractions, all are proven, and no plan is there where the planner finds none."""
    problem = _problem(seed)
    devices, sums = _axes(problem)
    cells = sweep(problem, devices, sums, PlanLimits())
    assert {place: cell.time for place, cell in cells.items()} == {
        (k, s): _best(problem, k, s) for k in devices for s in sums
    }
    assert all(cell.time is None or cell.lower == cell.time for cell in cells.values())


@pytest.mark.parametrize("looks", [1, 3, 8, 20])
@pytest.mark.parametrize("seed", range(4))
def test_ended_runs_claim_no_more_than_they_know(seed: int, looks: int) -> None:
    """Cells that were not reached are missing; the others hold true bounds, or rightly say that there is no plan."""
    problem = _problem(seed)
    devices, sums = _axes(problem)
    left = [looks]

    def interrupted() -> bool:
        left[0] -= 1
        return left[0] < 0

    for (k, s), cell in sweep(problem, devices, sums, PlanLimits(interrupted=interrupted)).items():
        best = _best(problem, k, s)
        assert (cell.time is None) == (best is None)
        if best is not None and cell.time is not None:
            assert cell.lower <= best <= cell.time
