"""Blocks in the order of their definition, consecutive ones on each device; devices in any order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from mtpp.array_types import Array
from mtpp.solvers.device_maps.least_fullest import fullest_share, least_fullest

_MOST_SETS = 2**17
"""Sets of devices that are looked at; equal devices count by their number."""
_MOST_EVENED = 600
"""Blocks whose cuts are evened out."""


def least_fullest_in_order(sizes: Sequence[int], limits: Sequence[int]) -> tuple[list[int], bool] | None:
    """Search among maps with consecutive blocks on each device.

    Parameters
    ----------
    sizes
        Bytes of each block, in order; their sum is below 2**62.
    limits
        Bytes of each device, above zero.

    Returns
    -------
    A map and whether it is proven best; None if no such map keeps the limits. Devices stand in any order, in that of
    *limits* where it is as good, or where devices differ so much that there are too many orders: then the claim is of
    that order. Among the best maps of the order of devices, loads are as even as can be.

    Notes
    -----
    O(sets · classes) for each decision, a set being a number of devices of each class.
    """
    orders = _Orders(sizes, limits)
    found = least_fullest(orders.decide, sizes, limits)
    if found is None:
        return None
    placed, proven = found
    share = fullest_share(sizes, placed, limits)
    caps = [share.numerator * limit // share.denominator for limit in limits]
    placed = orders.as_given(caps) or placed
    return _evened(sizes, limits, caps, list(dict.fromkeys([*placed, *range(len(limits))])), placed), proven


class _Orders:
    """Decisions over all orders of devices, by classes of equal devices.

    The table has, for each set of devices, the lowest block from which on they hold all blocks to the end.
    """

    def __init__(self, sizes: Sequence[int], limits: Sequence[int]) -> None:
        self.prefix = [0, *accumulate(sizes)]
        self.limits = list(limits)
        self.classes = sorted(set(limits))
        self.class_of = [self.classes.index(limit) for limit in limits]
        counts = [self.class_of.count(c) for c in range(len(self.classes))]
        self.any_order = prod(count + 1 for count in counts) <= _MOST_SETS
        if self.any_order:
            self._list_sets(counts)

    def _list_sets(self, counts: Sequence[int]) -> None:
        """Give numbers to sets, and list all of each size that have a device of each class."""
        self.strides = [prod(count + 1 for count in counts[c + 1 :]) for c in range(len(counts))]
        shape = [count + 1 for count in counts]
        members = np.stack(np.unravel_index(np.arange(prod(shape)), shape), axis=1)
        order = np.argsort(members.sum(axis=1), kind="stable")
        total = members.sum(axis=1)[order]
        bounds = np.searchsorted(total, range(sum(counts) + 2))
        levels = [order[start:stop] for start, stop in pairwise(bounds.tolist())][1:]
        self.levels: list[list[tuple[int, Array]]] = [
            [(c, sets[members[sets, c] > 0]) for c in range(len(counts))] for sets in levels
        ]
        self.full = len(members) - 1

    def as_given(self, caps: Sequence[int]) -> list[int] | None:
        """Fill devices in the given order."""
        placed: list[int] = []
        for device, cap in enumerate(caps):
            stop = self._stop(len(placed), cap)
            placed += [device] * (stop - len(placed))
        return placed if len(placed) == len(self.prefix) - 1 else None

    def decide(self, caps: Sequence[int]) -> list[int] | None:
        """Return a map with at most so many bytes on each device, None if there is none."""
        placed = self.as_given(caps)
        if placed is not None or not self.any_order:
            return placed
        lowest = self._lowest(caps)
        if lowest[self.full] > 0:
            return None
        return self._traced(lowest, caps)

    def _lowest(self, caps: Sequence[int]) -> Array:
        prefix = np.array(self.prefix, dtype=np.int64)
        cap_of = [caps[self.class_of.index(c)] for c in range(len(self.classes))]
        first = [np.searchsorted(prefix, prefix - min(cap, self.prefix[-1])).astype(np.int32) for cap in cap_of]
        lowest = np.full(self.full + 1, len(self.prefix) - 1, dtype=np.int32)
        for level in self.levels:
            for c, sets in level:
                lowest[sets] = np.minimum(lowest[sets], first[c][lowest[sets - self.strides[c]]])
        return lowest

    def _traced(self, lowest: Array, caps: Sequence[int]) -> list[int]:
        """Take devices one by one, the first in the given order whose fellows hold all that it leaves."""
        placed: list[int] = []
        left, rest = self.full, list(range(len(caps)))
        while len(placed) < len(self.prefix) - 1:
            for device in rest:
                stop, fellows = self._stop(len(placed), caps[device]), left - self.strides[self.class_of[device]]
                if lowest[fellows] <= stop:
                    break
            placed += [device] * (stop - len(placed))
            left = fellows
            rest.remove(device)
        return placed

    def _stop(self, start: int, cap: int) -> int:
        """First block that a device with blocks from *start* on does not hold."""
        return bisect_right(self.prefix, self.prefix[start] + cap) - 1


def _evened(
    sizes: Sequence[int], limits: Sequence[int], caps: Sequence[int], order: Sequence[int], placed: list[int]
) -> list[int]:
    """Return cuts with the least sum of squares, each weighed by the limit, for devices in their order."""
    n = len(sizes)
    if n > _MOST_EVENED:
        return placed
    prefix = np.array([0, *accumulate(sizes)], dtype=np.int64)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    load = prefix[None, :] - prefix[:, None]
    starts: list[Array] = []
    for device in order:
        costs = np.where((load >= 0) & (load <= caps[device]), load.astype(float) ** 2 / limits[device], np.inf)
        costs[np.tril_indices(n + 1, -1)] = np.inf
        whole = best[:, None] + costs
        starts.append(np.argmin(whole, axis=0))
        best = np.min(whole, axis=0)
    evened: list[int] = []
    stop = n
    for device, start in zip(reversed(order), reversed(starts), strict=True):
        evened += [device] * (stop - int(start[stop]))
        stop = int(start[stop])
    return evened[::-1]
