"""Downsets with their labels where tensors pass from neighbour to neighbour, enumerated one after the other."""

from __future__ import annotations

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.solvers.stage_cost.cost_arrays import GroundArrays
from mtpp.solvers.unequal.enumeration import UnequalProblem, UnequalSearch, unequal_problem
from mtpp.solvers.unequal.kernels.neighbours import search_neighbours
from mtpp.solvers.unequal.neighbour_arrays import BoundaryArrays, NeighbourPool, boundary_arrays, neighbour_pool
from mtpp.solvers.unequal.unequal_arrays import ClassArrays, Rates

RELAYS = "relays"
"""Rule: devices may stand between stages without ops, and pass on what crosses there."""


class NeighbourProblem(UnequalProblem):
    """An instance with transport by neighbours, made ready for searches."""

    @property
    def rules(self) -> list[str]:
        """The rule that leaves labels out: an op that leaves a stage may pass boundaries at another one's cost."""
        return ["fit"]

    def search(self, limit: int, memory_bytes: int) -> UnequalSearch:
        """Return a search for a partition with every stage cost at most *limit* ticks, at its beginning."""
        return NeighbourSearch(self, limit, memory_bytes)


class RelayProblem(NeighbourProblem):
    """The same with relays: a lower bound for all instances that lead to this one by moves of ops.

    A stage that such a move leaves without ops still stands between its neighbours, which may have no other link as
    fast. The partitions that its searches find are without relays, and may cost more than the limit.
    """

    @property
    def rules(self) -> list[str]:
        """The rules of :class:`NeighbourProblem`, and that there may be relays."""
        return ["fit", RELAYS]


class NeighbourSearch(UnequalSearch):
    """The search for a partition with every stage cost at most *limit* ticks, tensors from neighbour to neighbour."""

    _pool: NeighbourPool
    _boundary: BoundaryArrays

    def _make_pool(self, capacity: int) -> NeighbourPool:
        self._boundary = boundary_arrays(self._instance, len(self._store.keys))
        return neighbour_pool(capacity)

    def _numbers(self, at: int) -> list[int]:
        """Return the numbers of a label: of devices, then the last one's class, from 1, and classes barred."""
        return [*super()._numbers(at), int(self._pool.class_of[at]) + 1, int(self._pool.barred[at])]

    def _call_kernel(self, last_step: int) -> int:
        assert self._rules is not None
        if len(self._boundary.cross) < len(self._store.keys):
            self._boundary = self._boundary.grown(len(self._store.keys))
        return search_neighbours(
            self._arrays,
            self._boundary,
            self._problem.ground,
            self._rules,
            self._store,
            self._pool,
            self._scratch,
            self._registers,
            self._stage_limit,
            last_step,
            RELAYS in self._problem.rules,
        )


def exhaustive_problem(instance: Instance) -> UnequalProblem:
    """Make an instance on devices that differ ready for searches, by its transport."""
    problem = unequal_problem(instance)
    return problem if instance.cost.boundary is None else NeighbourProblem(*_without_givers(problem))


def relaxed_problem(instance: Instance) -> UnequalProblem:
    """Make an instance whose stages may have lost all of their ops ready for searches, by its transport."""
    boundary = instance.cost.boundary
    if boundary is None or boundary.one_link:
        return exhaustive_problem(instance)
    return RelayProblem(*_without_givers(unequal_problem(instance)))


def _without_givers(problem: UnequalProblem) -> tuple[Instance, ClassArrays, Rates, GroundArrays]:
    shared = problem.arrays.shared
    none = shared._replace(giver=np.zeros_like(shared.giver))
    return problem.instance, problem.arrays._replace(shared=none), problem.rates, problem.ground
