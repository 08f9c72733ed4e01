"""Exhaustive searches in which the latency of plans counts: as the objective, or up to a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.downsets.downset_arrays import ordered_ground
from mtpp.solvers.downsets.kernels.downset_layout import ENDED, FOUND, LAST
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER
from mtpp.solvers.unequal.enumeration import UnequalProblem, UnequalSearch
from mtpp.solvers.unequal.kernels.register_layout import BEST, SCALE, SPENT, THOROUGH
from mtpp.solvers.unequal.latency_prices import Prices, prices_for
from mtpp.solvers.unequal.neighbours import NeighbourSearch
from mtpp.solvers.unequal.unequal_arrays import class_arrays, stretch_of

_HALF = 2**31
"""Ticks of a latency are written as two numbers, each below this."""


@dataclass(frozen=True, eq=False)
class LatencyProblem(UnequalProblem):
    """An instance and a goal, made ready for searches; make one with :func:`latency_problem`."""

    goal: Goal
    prices: Prices

    @property
    def rules(self) -> list[str]:
        """The rules that leave downsets out: an op that is moved to another device may take longer there."""
        return ["fit"]

    @property
    def most_ticks(self) -> int:
        """No partition's objective is above this."""
        return min(NEVER, self.instance.most_ticks * (self.instance.most_used if self.goal.of_latency else 1))

    def search(self, limit: int, memory_bytes: int) -> LatencySearch:
        """Return a search for a partition with an objective of at most *limit* ticks, at its beginning."""
        direct = self.instance.cost.boundary is None
        return (LatencySearch if direct else NeighbourLatencySearch)(self, limit, memory_bytes)

    def bottleneck(self, partition: Partition) -> int:
        """Return the objective of a partition that a search has found, in ticks."""
        assert isinstance(partition, PlacedPartition)
        return self.goal.value(stage_costs(self.instance.on(partition.devices), partition))


def latency_problem(instance: Instance, goal: Goal) -> LatencyProblem:
    """Make *instance* ready, as :func:`~mtpp.solvers.unequal.enumeration.unequal_problem` does."""
    arrays, rates = class_arrays(instance)
    shared = arrays.shared._replace(giver=np.zeros_like(arrays.shared.giver))  # the rule 'maximal' is left out
    prices = prices_for(instance, goal, arrays)
    priced = prices.of_ops(arrays)
    stretch = np.array([arrays.stretch[0], [stretch_of(row, priced / prices.scale) for row in arrays.work]])
    arrays = arrays._replace(shared=shared, priced=priced, stretch=stretch)
    return LatencyProblem(instance, arrays, rates, ordered_ground(instance), goal, prices)


class LatencySearch(UnequalSearch):
    """The search for a partition whose objective is at most *limit* ticks, and the other figure within the goal's.

    Where the latency is the objective, the partition found has the least.
    """

    def __init__(self, problem: LatencyProblem, limit: int, memory_bytes: int) -> None:
        self._goal = problem.goal
        self._problem_scale = problem.prices.scale
        self.finds_best = problem.goal.of_latency
        most_of_stage, self._latency_limit = problem.goal.within(limit)
        super().__init__(problem, limit, memory_bytes, stage_limit=min(most_of_stage, problem.instance.most_ticks))
        self._prices = problem.prices
        if self._rules is not None:
            saved = np.array([self._prices.saved], dtype=np.int64)
            class_of, k = problem.instance.cost.class_of(problem.instance.k), problem.instance.k
            leading = np.zeros((1, k + 1), dtype=np.int64)
            leading[0, :-1] = np.cumsum(saved[0, class_of[::-1]])[::-1]
            self._rules = self._rules._replace(
                room=np.concatenate([self._rules.room, saved]),
                leading_room=np.concatenate([self._rules.leading_room, leading]),
            )
        if self._latency_limit < int(problem.arrays.least_work.sum()):
            self.state = "ended"

    def _begin(self) -> None:
        super()._begin()
        self._registers[SPENT] = self._latency_limit
        self._registers[THOROUGH] = self.finds_best
        self._registers[SCALE] = self._problem_scale

    def proof(self, reduced: ReducedInstance) -> dict[str, Any]:
        """Return the proof, with the goal that it is of."""
        goal = {"objective": self._goal.objective, "limit": self._goal.limit}
        return goal | self._prices.record() | super().proof(reduced)

    def _numbers(self, at: int) -> list[int]:
        spent = int(self._pool.spent[at])
        return [*super()._numbers(at), spent // _HALF, spent % _HALF]

    def _call_kernel(self, last_step: int) -> int:
        code = super()._call_kernel(last_step)
        if code == ENDED and self._registers[BEST]:
            self._registers[LAST] = self._registers[BEST]
            return FOUND
        return code

    def _holds(self) -> bool:
        found = self.partition()
        assert isinstance(found, PlacedPartition)
        costs = stage_costs(self._instance.on(found.devices), found)
        within = self._goal.value(costs) <= self.limit and self._goal.keeps(costs)
        return within and keeps_stage_memory(self._instance.on(found.devices), costs)


class NeighbourLatencySearch(LatencySearch, NeighbourSearch):
    """The same search, with tensors from neighbour to neighbour."""
