"""Plans for goals in which latency counts, and frontiers, against brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest
from random_devices import NEVER, RandomCase, random_case
from seeds import sampled

from mtpp.errors import Infeasible
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.placed_partition import as_placed
from mtpp.names import BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE
from mtpp.solvers.latency.best import best_for, plain_limits
from mtpp.solvers.latency.frontier import FrontierWalk
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners.auto import partition

SEEDS = sampled(range(10_000), 200)


@dataclass(frozen=True)
class Cell:
    """A graph on devices in one of the two orders, of which some may be used, and what plans there are."""

    case: RandomCase
    free: bool
    most: int

    def instance(self) -> Instance:
        """Return the instance in ticks."""
        return self.case.instance(self.most, free=self.free)

    def frontier(self) -> list[tuple[int, int]]:
        """Return all pairs of bottleneck and latency that no other one beats, by brute force."""
        return self.case.frontier(self.most, free=self.free)


def random_cell(seed: int) -> Cell:
    """Return a random graph without shared weights on random devices."""
    chance, case = Random(seed), replace(random_case(seed), weights=())
    k = len(case.devices)
    return Cell(case, chance.random() < 0.5, chance.randint(1, k) if chance.random() < 0.3 else k)


def solve(cell: Cell, goal: Goal) -> SearchResult | None:
    """Return what the search finds; None where it proves that there is no plan."""
    try:
        return best_for(cell.instance(), goal, SearchLimits(evaluations=2_000), partition)
    except Infeasible as error:
        if "proven infeasible" in str(error):
            return None
        raise


def best_by_brute_force(pairs: list[tuple[int, int]], goal: Goal) -> int | None:
    """Return the best objective of all plans within a goal's limit, None if there is none."""
    own, other = (1, 0) if goal.of_latency else (0, 1)
    return min((pair[own] for pair in pairs if goal.limit is None or pair[other] <= goal.limit), default=None)


def check(seed: int) -> None:
    """Hold the plans of one cell for goals with every kind of limit, and its frontier, against brute force."""
    cell, chance = random_cell(seed), Random(-seed)
    pairs = cell.frontier()
    instance = cell.instance()
    assert (pairs[0][0] if pairs else NEVER) == cell.case.optimum(cell.most, free=cell.free)
    tops, sums = [top for top, _ in pairs] or [7], [both for _, both in pairs] or [7]
    goals = [Goal(LATENCY_OBJECTIVE)]
    for objective, others in ((LATENCY_OBJECTIVE, tops), (BOTTLENECK_OBJECTIVE, sums)):
        goals.append(Goal(objective, chance.choice(others)))
        goals.append(
            Goal(
                objective,
                chance.choice(others) + chance.randint(-3, 3)
                if chance.random() < 0.5
                else chance.randint(0, 2 * max(others)),
            )
        )
    for goal in goals:
        if goal.limit is not None and goal.limit < 0:
            continue
        due, found = best_by_brute_force(pairs, goal), solve(cell, goal)
        if found is None:
            assert due is None, goal
            continue
        assert found.bottleneck == due, goal
        assert found.stopped == "optimal", goal
        assert found.lower is not None
        assert found.lower.value <= due
        plan = found.partition
        costs = stage_costs(as_placed(instance, plan), plan)
        assert goal.value(costs) == due
        assert goal.keeps(costs)
        assert plan.k - len(plan.empty_stages) <= cell.most
    if pairs:
        limits = SearchLimits(evaluations=100_000)
        walk = FrontierWalk(instance, partition(instance, limits), limits)
        walk.run()
        points = walk.frontier()
        assert [(one.bottleneck, one.latency) for one in points] == pairs
        assert all(one.lower.value == one.latency for one in points)


@pytest.mark.parametrize("seed", SEEDS)
def test_as_by_brute_force(seed: int) -> None:
    """The least latency, also within a bottleneck; the least bottleneck within a latency; the frontier."""
    check(seed)


def test_first_points_have_all_evaluations() -> None:
    """The search for the first point of a frontier has as many evaluations as one without a frontier, others less."""
    limits = SearchLimits(evaluations=1_000)
    assert plain_limits(limits, 0, frontier=True).evaluations == 1_000
    assert plain_limits(limits, 0).evaluations < 1_000
