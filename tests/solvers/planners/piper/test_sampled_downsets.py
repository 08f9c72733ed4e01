"""Planning models with too many downsets, tried on small ones, where all plans are known."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from observers import Heard
from training_models import random_problem
from training_oracles import best_plan

from mtpp.datasets.multi_branch_training import candle_uno, multi_modal_transformer
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.bounds.work import work_bound
from mtpp.solvers.planners.piper import planner as piper
from mtpp.solvers.planners.piper import sampled_downsets as wide
from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.layer_downsets import Sets, every_downset, layer_bits
from mtpp.solvers.planners.piper.sampled_downsets import neighbours, useful_downsets
from mtpp.solvers.planners.piper.threshold import PipelineSearch
from mtpp.solvers.threads import Threads
from mtpp.training.plan import NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem


def _plan_sampled(problem: PlanningProblem) -> TrainingPlan | NoPlan:
    limits, arrays = PlanLimits(), choice_arrays(problem)
    with Threads(1) as threads:

        def search(sets: Sets) -> PipelineSearch:
            return PipelineSearch(problem, arrays, sets, limits, threads)

        return wide.plan_sampled(problem, limits, work_bound(problem), search)


@pytest.mark.parametrize("most", [8, 30_000])
@pytest.mark.parametrize("seed", range(16))
def test_the_optimum_lies_between_bound_and_plan(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few downsets may be searched; if all may, both are the optimum."""
    monkeypatch.setattr(wide, "MOST_USEFUL", most)
    problem = random_problem(seed)
    result, expected = _plan_sampled(problem), best_plan(problem)
    if isinstance(result, NoPlan):
        assert expected is None or not result.proven
        return
    assert expected is not None
    assert result.lower.value <= expected[0] <= result.time_per_sample
    assert most == 8 or result.optimal


def test_branches_out_of_reach_of_the_published_algorithm() -> None:
    """Fourteen branches of four layers, 6 · 10⁹ downsets: a plan with a proven ratio."""
    problem = PlanningProblem(
        candle_uno(14, 4),
        machine=Machine.of_devices(8, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=25 * 10**9),
        micro_batches=256,
    )
    result = piper.plan(problem, PlanLimits(jobs=2))
    assert isinstance(result, TrainingPlan)
    assert result.ratio is not None
    assert 1 <= result.ratio < 1.4


def test_four_long_branches_are_planned_optimally() -> None:
    """A small multi-modal transformer is small enough to be proven."""
    problem = PlanningProblem(
        multi_modal_transformer(3, 4),
        machine=Machine.of_devices(8, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=25 * 10**9),
        micro_batches=64,
    )
    result = piper.plan(problem, PlanLimits())
    assert isinstance(result, TrainingPlan)
    assert result.optimal
    assert result.time_per_sample >= Fraction(work_bound(problem).value)  # type: ignore[union-attr]


@pytest.mark.parametrize(("branches", "proven"), [(3, True), (8, False)])
def test_what_holds_along_some_orders_is_not_told_as_a_bound(branches: int, proven: bool) -> None:
    """Bounds that are heard of on the way are bounds on all plans, and plans that are not proven say why."""
    problem = PlanningProblem(
        multi_modal_transformer(branches, 4),
        machine=Machine.of_devices(8, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=25 * 10**9),
        micro_batches=64,
    )
    heard = Heard()
    result = piper.plan(problem, PlanLimits(observer=heard))
    assert isinstance(result, TrainingPlan)
    assert heard.bounds
    assert max(heard.bounds) <= math.ceil(result.lower.value)
    assert result.optimal == proven
    assert bool(result.notes) != proven


@pytest.mark.parametrize("seed", range(30))
def test_useful_downsets_hold_those_of_the_best_plan(seed: int) -> None:
    """At the time of the best plan, what is behind each of its stages is among them."""
    problem = random_problem(seed)
    best = best_plan(problem)
    if best is None:
        return
    sets = useful_downsets(problem, best[0], 10**6, PlanLimits())
    assert sets is not None
    kept = {row.tobytes() for row in sets}
    behind: set[int] = set()
    for stage in reversed(best[1]):
        assert layer_bits(behind, len(problem.model.layers)).tobytes() in kept
        behind |= set(stage.layers)
    assert layer_bits(behind, len(problem.model.layers)).tobytes() in kept


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_are_the_nearest(seed: int) -> None:
    """With space for all, every downset is reached; with little, the start and those one layer away come first."""
    problem = random_problem(seed)
    sets = every_downset(problem, 10**6)
    assert sets is not None
    assert {row.tobytes() for row in neighbours(problem, [], 10**6)} == {row.tobytes() for row in sets}
    assert sorted(int(row[0]).bit_count() for row in neighbours(problem, [], 2)) == [0, 1]
