"""Limits that the last fronts of all stages rule out."""

from __future__ import annotations

import random

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.bounds.frontier.kernels.fronts import EXACT, NONE
from mtpp.solvers.bounds.frontier.kernels.marginals import Swept
from mtpp.solvers.bounds.position_weights.sweeps import _highest_below


class Ticks:
    """Costs of a stage that are its ticks."""

    def room(self, limit: int) -> int:
        """Return the costs that a stage within a limit may have."""
        return limit

    def ticks(self, costs: Int64Array) -> Int64Array:
        """Return the limits from which on costs are within."""
        return costs


def swept(entries: list[tuple[int, int]], least: int) -> Swept:
    """Return a pass that has come to a front."""
    cost, worth = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    nothing = np.zeros(0, dtype=np.int64)
    return Swept(EXACT, nothing, nothing, cost, worth, least, 0)


def most(entries: list[tuple[int, int]], least: int, limit: int) -> int | None:
    """Return the most that labellings within a limit may be worth; None if there is none."""
    known = [worth for cost, worth in entries if cost <= limit]
    return max(known, default=None if least == NONE else least - 1)


def test_what_was_left_out_may_still_be_worth_much() -> None:
    """Below the cheapest labelling of two fronts each stage may be worth 94, together more than 150."""
    last = [swept([(10, 100)], 95), swept([(10, 100)], 95)]
    assert _highest_below(last, [Ticks(), Ticks()], 150, 12) == -1  # type: ignore[list-item]
    assert _highest_below(last, [Ticks(), Ticks()], 189, 12) == 9  # type: ignore[list-item]
    assert _highest_below(last, [Ticks(), Ticks()], 201, 12) == 12  # type: ignore[list-item]


def test_the_highest_limit_that_fronts_rule_out() -> None:
    """It is the highest one at which all that stages may be worth is less than what partitions are."""
    found = 0
    for seed in range(500):
        pick = random.Random(seed)
        fronts = []
        for _ in range(pick.randint(1, 3)):
            costs = sorted(pick.sample(range(1, 12), pick.randint(1, 4)))
            worths = sorted(pick.sample(range(20), len(costs)))
            fronts.append((list(zip(costs, worths, strict=True)), pick.choice((NONE, worths[0] - pick.randint(0, 3)))))
        limit, credit = 12, pick.randint(-5, 50)
        last = [swept(*front) for front in fronts]
        limits = []
        for at in range(limit + 1):
            worths_at = [most(*front, at) for front in fronts]
            if None in worths_at or sum(worth for worth in worths_at if worth is not None) < credit:
                limits.append(at)
        got = _highest_below(last, [Ticks()] * len(last), credit, limit)  # type: ignore[list-item]
        assert got == max(limits, default=-1)
        found += 0 <= got < limit
    assert found > 100
