"""Tables of best times: every cell is what brute force finds for its number of devices and sum of degrees."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from machines import on_other_devices
from observers import Heard
from training_models import random_problem
from training_oracles import best_plan

from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.piper import sweep as sweeping
from mtpp.solvers.planners.piper.sweep import sweep
from mtpp.training.problem import PlanningProblem


def _problem(seed: int) -> PlanningProblem:
    """Return a random problem by the paper's convention, whose costs do not depend on N."""
    drawn = random_problem(seed, most_layers=5)
    return PlanningProblem(
        drawn.model,
        machine=Machine.of_devices(
            drawn.devices, memory_bytes=drawn.memory_bytes, bandwidth_bytes_per_s=drawn.link.bandwidth_bytes_per_s
        ),
        micro_batches=drawn.micro_batches,
        schemes=drawn.schemes,
    )


def _expected(problem: PlanningProblem, devices: int, degrees_sum: int) -> Fraction | None:
    """Return the least time of all plans on that many devices at most, with degrees that sum up to so much at most."""
    try:
        smaller = on_other_devices(problem, devices=devices, micro_batches=degrees_sum)
    except InputError:  # a layer that has no configuration for so few devices
        return None
    best = best_plan(smaller)
    return None if best is None else best[0]


@pytest.mark.parametrize("seed", range(40))
def test_every_cell_is_the_optimum(seed: int) -> None:
    """Times are those of brute force with K and N of the cell, and proven; no time where there is no plan."""
    problem = _problem(seed)
    devices, sums = range(1, problem.devices + 1), range(1, problem.micro_batches + 1)
    cells = sweep(problem, devices, sums, PlanLimits())
    assert set(cells) == {(k, s) for k in devices for s in sums}
    for (k, s), cell in cells.items():
        assert cell.time == _expected(problem, k, s)
        if cell.time is not None:
            assert cell.lower == cell.time
            assert cell.stages is not None
            assert 1 <= cell.stages <= min(k, s)


@pytest.mark.parametrize("seed", [1730, 1976, 2028, 2335])
def test_bang_per_buck_proves_nothing_about_other_choices(seed: int) -> None:
    """Bounds hold for the plans that the heuristic misses as well."""
    problem = _problem(seed)
    devices, sums = [problem.devices], range(1, problem.micro_batches + 1)
    for (k, s), cell in sweep(problem, devices, sums, PlanLimits(knapsack="heuristic")).items():
        expected = _expected(problem, k, s)
        assert (cell.time is None) == (expected is None)
        if cell.time is not None and expected is not None:
            assert cell.lower <= expected <= cell.time


def test_some_of_these_are_infeasible_and_some_are_not() -> None:
    """The seeds above ask for both."""
    cells = [cell for seed in range(12) for cell in sweep(_problem(seed), [1, 2], [1], PlanLimits()).values()]
    assert {cell.time is None for cell in cells} == {False, True}


def test_cells_left_open_are_not_claimed() -> None:
    """When the time is up before the first question, nothing is said of any cell."""
    problem = next(one for one in map(_problem, range(40)) if sweep(one, [one.devices], [1], PlanLimits()))
    assert sweep(problem, [problem.devices], [1], PlanLimits(deadline=Deadline(1e-9))) == {}


def test_exact_sums_are_refused() -> None:
    """A sum is meant as "at most"."""
    with pytest.raises(InputError, match="up to a limit"):
        sweep(replace(_problem(0), exact_micro_batches=True), [1], [1], PlanLimits())


def test_too_many_downsets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep has to look at all of them."""
    monkeypatch.setattr(sweeping, "MOST_DOWNSETS", 1)
    with pytest.raises(InputError, match="downsets"):
        sweep(_problem(0), [1], [1], PlanLimits())


@pytest.mark.parametrize("looks", [1, 3, 8, 20])
@pytest.mark.parametrize("seed", range(4))
def test_ended_runs_claim_no_more_than_they_know(seed: int, looks: int) -> None:
    """Cells that were not reached are missing; the others hold true bounds, or rightly say that there is no plan."""
    problem = _problem(seed)
    left = [looks]

    def interrupted() -> bool:
        left[0] -= 1
        return left[0] < 0

    devices, sums = range(1, problem.devices + 1), range(1, problem.micro_batches + 1)
    for (k, s), cell in sweep(problem, devices, sums, PlanLimits(interrupted=interrupted)).items():
        best = _expected(problem, k, s)
        assert (cell.time is None) == (best is None)
        if best is not None and cell.time is not None:
            assert cell.lower <= best <= cell.time


def test_what_is_worked_at_is_told() -> None:
    """A run over many cells says where it is."""
    heard = Heard()
    sweep(_problem(0), [1, 2], [1], PlanLimits(observer=heard))
    assert heard.phases[:2] == ["downsets", "plans on 1 device"]
