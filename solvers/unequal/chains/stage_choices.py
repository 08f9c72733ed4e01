"""Sets of devices that suffice for each range of a chain within a limit, and chains of ranges at prices of devices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.unequal.chains.range_costs import NEVER, RangeCosts

NONE = 2**60
"""Price of ranges that no devices suffice for."""


@dataclass(frozen=True, eq=False)
class StageChoices:
    """For each range of a chain the sets of devices that suffice for it within a limit, no device too many.

    Attributes
    ----------
    sets
        Devices of each class in a set, int64, shape (sets, classes); those of a group stand together.
    begins
        First set of each group of ranges, and the end of the last, int64, shape (groups + 1,).
    group_of
        By position and number of ops less one, int64, shape (n, longest); −1: no devices suffice.
    """

    sets: Int64Array
    begins: Int64Array
    group_of: Int64Array

    @classmethod
    def within(cls, costs: RangeCosts, limit: int) -> StageChoices:
        """Return the choices for stages of at most *limit* ticks, each on one device."""
        classes = len(costs.ticks)
        allowed = costs.ticks <= min(limit, NEVER - 1)
        pattern = np.tensordot(1 << np.arange(classes, dtype=np.int64), allowed.astype(np.int64), axes=1)
        found, groups = np.unique(pattern, return_inverse=True)
        rows = [[c for c in range(classes) if code >> c & 1] for code in found.tolist()]
        begins = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        group_of = np.where(pattern == 0, -1, groups.reshape(pattern.shape)).astype(np.int64)
        units = np.eye(classes, dtype=np.int64)
        return cls(units[[c for row in rows for c in row]].reshape(-1, classes), begins, group_of)

    @property
    def op_count(self) -> int:
        """Ops of the chain, n."""
        return len(self.group_of)

    @cached_property
    def stages(self) -> list[list[tuple[int, int]]]:
        """By position: number of ops and group of each stage that may begin there."""
        n = self.op_count
        found: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        begins, sizes = np.nonzero(self.group_of >= 0)
        for p, size, group in zip(begins.tolist(), sizes.tolist(), self.group_of[begins, sizes].tolist(), strict=True):
            found[p].append((size + 1, group))
        return found

    @cached_property
    def sets_of(self) -> list[list[tuple[int, ...]]]:
        """The sets of each group."""
        rows = [tuple(row) for row in self.sets.tolist()]
        return [rows[begin:end] for begin, end in pairwise(self.begins.tolist())]

    def cheapest(self, prices: Int64Array) -> tuple[list[int], list[int]]:
        """Return the price of the cheapest chain of stages from each position on, and what it uses from the first.

        :data:`NONE` where there is none. O(sets · classes + n · longest).

        Parameters
        ----------
        prices
            Of a device of each class, int64.

        Returns
        -------
        n + 1 prices, and the devices of each class; none where there is no chain at all.
        """
        n, longest = self.group_of.shape
        of_set = self.sets @ prices
        of_group = np.full(len(self.begins), NONE, dtype=np.int64)
        best_set = np.zeros(len(self.begins), dtype=np.int64)
        for g, (begin, end) in enumerate(pairwise(self.begins.tolist())):
            if begin < end:
                best_set[g] = begin + int(of_set[begin:end].argmin())
                of_group[g] = of_set[best_set[g]]
        of_stage = of_group[self.group_of]  # −1 is the last, which is no group
        rest = np.full(n + longest + 1, NONE, dtype=np.int64)
        rest[n] = 0
        next_size = np.zeros(n, dtype=np.int64)
        for p in range(n - 1, -1, -1):
            sums = of_stage[p] + rest[p + 1 : p + 1 + longest]
            next_size[p] = sums.argmin()
            rest[p] = min(NONE, int(sums[next_size[p]]))
        used = np.zeros(len(prices), dtype=np.int64)
        p = 0
        while rest[0] < NONE and p < n:
            used += self.sets[best_set[self.group_of[p, next_size[p]]]]
            p += int(next_size[p]) + 1
        return rest[: n + 1].tolist(), used.tolist()
