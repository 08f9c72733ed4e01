"""Sets of devices that suffice for each range of a chain within a limit, and chains of ranges at prices of devices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.unequal.chains.device_sets import DeviceSet, Shares, cheapest_set, sets_within
from mtpp.solvers.unequal.chains.range_costs import NEVER, RangeCosts

NONE = 2**60
"""Price of ranges that no devices suffice for."""

Stages: TypeAlias = list[list[tuple[int, int]]]


class StageChoices(ABC):
    """For each range of a chain the sets of devices that suffice for it within a limit, no device too many.

    Ranges fall into groups, for which the same sets suffice.

    Attributes
    ----------
    group_of
        By position and number of ops less one, int64, shape (n, longest); −1: no devices suffice.
    """

    group_of: Int64Array

    @abstractmethod
    def cheapest_sets(self, prices: Sequence[int]) -> list[tuple[int, DeviceSet]]:
        """Return the price of the cheapest set of each group, and that set: devices of each class."""

    @abstractmethod
    def sets_within(self, group: int, prices: Sequence[int], most: int) -> list[DeviceSet]:
        """Return the sets of a group that cost at most so much."""

    @abstractmethod
    def following(self, class_of: Sequence[int], lead: int, group: int, *, limited: bool) -> list[tuple[int, ...]]:
        """Return sets of devices, by number and ascending, that suffice for a group, of those after the first *lead*.

        No other set does with its last device before theirs; if *limited*, nor with fewer devices and the same last.
        """

    @property
    def op_count(self) -> int:
        """Ops of the chain, n."""
        return len(self.group_of)

    @cached_property
    def stages(self) -> Stages:
        """By position: number of ops and group of each stage that may begin there."""
        found: Stages = [[] for _ in range(self.op_count)]
        begins, sizes = np.nonzero(self.group_of >= 0)
        for p, size, group in zip(begins.tolist(), sizes.tolist(), self.group_of[begins, sizes].tolist(), strict=True):
            found[p].append((size + 1, group))
        return found

    def cheapest(self, prices: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the price of the cheapest chain of stages from each position on, and what it uses from the first.

        :data:`NONE` where there is none. O(n · longest) beside the sets.

        Parameters
        ----------
        prices
            Of a device of each class.

        Returns
        -------
        n + 1 prices, and the devices of each class; none where there is no chain at all.
        """
        n, longest = self.group_of.shape
        best = self.cheapest_sets(prices)
        of_group = np.array([price for price, _ in best] + [NONE], dtype=np.int64)
        of_stage = of_group[self.group_of]  # −1 is the last, which is no group
        rest = np.full(n + longest + 1, NONE, dtype=np.int64)
        rest[n] = 0
        next_size = np.zeros(n, dtype=np.int64)
        for p in range(n - 1, -1, -1):
            sums = of_stage[p] + rest[p + 1 : p + 1 + longest]
            next_size[p] = sums.argmin()
            rest[p] = min(NONE, int(sums[next_size[p]]))
        used = [0] * len(prices)
        p = 0
        while rest[0] < NONE and p < n:
            devices = best[int(self.group_of[p, next_size[p]])][1]
            used = [a + b for a, b in zip(used, devices, strict=True)]
            p += int(next_size[p]) + 1
        return rest[: n + 1].tolist(), used


class SingleDevices(StageChoices):
    """The choices for stages of at most *limit* ticks, each on one device."""

    def __init__(self, costs: RangeCosts, limit: int) -> None:
        classes = len(costs.ticks)
        allowed = costs.ticks <= min(limit, NEVER - 1)
        pattern = np.tensordot(1 << np.arange(classes, dtype=np.int64), allowed.astype(np.int64), axes=1)
        found, groups = np.unique(pattern, return_inverse=True)
        self._classes = classes
        self._able = [[c for c in range(classes) if code >> c & 1] for code in found.tolist()]
        self.group_of = np.where(pattern == 0, -1, groups.reshape(pattern.shape)).astype(np.int64)

    def cheapest_sets(self, prices: Sequence[int]) -> list[tuple[int, DeviceSet]]:
        """Return the cheapest device of each group."""
        return [min(((prices[c], self._one(c)) for c in able), default=(NONE, ())) for able in self._able]

    def sets_within(self, group: int, prices: Sequence[int], most: int) -> list[DeviceSet]:
        """Return the devices of a group that cost at most so much."""
        return [self._one(c) for c in self._able[group] if prices[c] <= most]

    def following(self, class_of: Sequence[int], lead: int, group: int, *, limited: bool) -> list[tuple[int, ...]]:
        """Return the first device that suffices, if there is one."""
        able = self._able[group]
        first = next((j for j in range(lead, len(class_of)) if class_of[j] in able), None)
        return [] if first is None else [(first,)]

    def _one(self, c: int) -> DeviceSet:
        return tuple(int(c == d) for d in range(self._classes))


class SharingDevices(StageChoices):
    """The choices for stages of at most *limit* ticks, each on devices that take turns at its requests.

    Parameters
    ----------
    counts
        Devices of each class.
    """

    def __init__(self, costs: RangeCosts, limit: int, counts: Sequence[int]) -> None:
        vectors, row_of = costs.vectors
        figures = [[None if ticks >= NEVER else ticks for ticks in row] for row in vectors.tolist()]
        self._shares = [Shares.of(row, limit, counts) for row in figures]
        enough = np.array([shares.reach for shares in self._shares] + [False])
        self.group_of = np.where(enough[row_of], row_of, -1)

    def cheapest_sets(self, prices: Sequence[int]) -> list[tuple[int, DeviceSet]]:
        """Return the cheapest devices that take turns, of each group."""
        return [cheapest_set(shares, prices) if shares.reach else (NONE, ()) for shares in self._shares]

    def sets_within(self, group: int, prices: Sequence[int], most: int) -> list[DeviceSet]:
        """Return the sets of a group without a device too many that cost at most so much."""
        return sets_within(self._shares[group], prices, most)

    def following(self, class_of: Sequence[int], lead: int, group: int, *, limited: bool) -> list[tuple[int, ...]]:
        """Return all devices that hold the range up to the first that makes them suffice; if *limited*, the best."""
        shares, found = self._shares[group], []
        able: list[int] = []
        for j in range(lead, len(class_of)):
            if shares.of_device[class_of[j]] == 0:
                continue
            able.append(j)
            if sum(shares.of_device[class_of[i]] for i in able) < shares.whole:
                continue
            if not limited:
                return [tuple(able)]
            best = sorted(able, key=lambda i: -shares.of_device[class_of[i]])
            count, done = 0, 0
            while done < shares.whole:
                done += shares.of_device[class_of[best[count]]]
                count += 1
            found.append(tuple(sorted(best[:count])))
        return found
