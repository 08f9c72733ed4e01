"""Families of downsets hold what they are for."""

from __future__ import annotations

import pytest
from training_models import random_problem
from training_oracles import best_plan

from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.piper.downset_families import neighbours, useful_downsets
from mtpp.solvers.planners.piper.layer_downsets import every_downset, layer_bits


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
