"""Blocks on any devices, for limits that no map with consecutive blocks keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from mtpp.array_types import Array
from mtpp.solvers.device_maps.least_fullest import Undecided, least_fullest

_MOST_COUNTS = 2**15
"""Numbers of blocks of each size but the most frequent, as combinations."""
_MOST_STEPS = 300_000
"""Of the search for models with blocks of too many sizes."""


def least_fullest_anywhere(sizes: Sequence[int], limits: Sequence[int]) -> tuple[list[int], bool] | None:
    """Search among all maps of whole blocks.

    Parameters
    ----------
    sizes
        Bytes of each block; their sum is below 2**62.
    limits
        Bytes of each device, above zero.

    Returns
    -------
    A map and whether it is proven best; None if no map at all keeps the limits. Of blocks of one size, the first are on
    the first devices.

    Raises
    ------
    Undecided
        If blocks are of too many sizes for a decision.

    Notes
    -----
    Blocks of one size are alike. For each number of blocks of the other sizes on the first devices, the most blocks of
    the most frequent size beside them are all that counts: O(devices · combinations · fills) for each
    decision, a fill being what a device holds without room for more.
    """
    packing = _Packing(sizes)
    return least_fullest(packing.decide, sizes, limits)


class _Packing:
    """Decisions for one list of blocks."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        frequent = Counter(size for size in sizes if size).most_common()
        self.main, self.most = max(frequent, key=lambda pair: (pair[1], pair[0]), default=(1, 0))
        self.others = sorted((pair for pair in frequent if pair[0] != self.main), reverse=True)
        self.shape = tuple(count + 1 for _, count in self.others)

    def decide(self, caps: Sequence[int]) -> list[int] | None:
        """Return a map with at most so many bytes on each device, None if there is none."""
        if sum(caps) < sum(self.sizes) or max(caps) < max(self.sizes, default=0):
            return None
        if prod(self.shape) > _MOST_COUNTS:
            return self._by_size(caps)
        tables = self._tables(caps)
        if tables[-1][tuple(count for _, count in self.others)] < self.most:
            return None
        return self._placed(self._counts(tables, caps))

    def _fills(self, cap: int) -> list[tuple[tuple[int, ...], int]]:
        """Numbers of blocks of other sizes, and of the most frequent one beside them, to which none can be added."""
        counts = np.indices(self.shape, dtype=np.int64).reshape(len(self.shape), prod(self.shape))
        left = min(cap, sum(self.sizes)) - sum(
            (row * size for row, (size, _) in zip(counts, self.others, strict=True)), 0
        )
        left = np.broadcast_to(left, counts.shape[1:])
        beside = np.minimum(left // self.main, self.most)
        full = left >= 0
        for row, (size, most) in zip(counts, self.others, strict=True):
            full = full & ((row == most) | (left - beside * self.main < size))
        return [(tuple(counts[:, at].tolist()), int(beside[at])) for at in full.nonzero()[0].tolist()]

    def _tables(self, caps: Sequence[int]) -> list[Array]:
        """Most blocks of the most frequent size on the first devices beside at least so many others; -1: impossible."""
        fills = {cap: self._fills(cap) for cap in set(caps)}
        tables = [np.full(self.shape, -1, dtype=np.int64)]
        tables[0][(0,) * len(self.shape)] = 0
        for cap in caps:
            before, after = tables[-1], np.full(self.shape, -1, dtype=np.int64)
            for counts, beside in fills[cap]:
                less = [np.maximum(np.arange(n) - count, 0) for n, count in zip(self.shape, counts, strict=True)]
                there = before[np.ix_(*less)] if less else before
                after = np.maximum(after, np.where(there < 0, -1, there + beside))
            tables.append(after)
        return tables

    def _counts(self, tables: Sequence[Array], caps: Sequence[int]) -> list[dict[int, int]]:
        """Numbers of blocks of each size on each device."""
        left, most = [count for _, count in self.others], self.most
        found = []
        for device in reversed(range(len(caps))):
            for counts, beside in self._fills(caps[device]):
                rest = [max(0, have - count) for have, count in zip(left, counts, strict=True)]
                if tables[device][tuple(rest)] >= max(0, most - beside):
                    break
            here = max(0, most - int(tables[device][tuple(rest)]))
            placed = {size: have - after for (size, _), have, after in zip(self.others, left, rest, strict=True)}
            found.append(placed | {self.main: here})
            left, most = rest, most - here
        return found[::-1]

    def _placed(self, counts: Sequence[dict[int, int]]) -> list[int]:
        """Give blocks in order to devices in order; one of no bytes goes with the block before it."""
        placed: list[int] = []
        left = [dict(of_device) for of_device in counts]
        for size in self.sizes:
            if not size:
                placed.append(placed[-1] if placed else 0)
                continue
            device = next(device for device, of_device in enumerate(left) if of_device.get(size))
            left[device][size] -= 1
            placed.append(device)
        return placed

    def _by_size(self, caps: Sequence[int]) -> list[int] | None:
        """Place the largest blocks first; devices with equal room are alike, and rooms seen before are left out."""
        order = sorted((i for i, size in enumerate(self.sizes) if size), key=lambda i: -self.sizes[i])
        left = [0] * (len(order) + 1)
        for position in reversed(range(len(order))):
            left[position] = left[position + 1] + self.sizes[order[position]]
        seen: set[tuple[int, ...]] = set()
        chosen: list[int] = []
        rooms, tried = list(caps), [iter(self._with_room(caps, self.sizes[order[0]]))]
        for _ in range(_MOST_STEPS):
            device = next(tried[-1], None)
            if device is None:
                tried.pop()
                if not tried:
                    return None
                rooms[chosen[-1]] += self.sizes[order[len(chosen) - 1]]
                chosen.pop()
                continue
            rooms[device] -= self.sizes[order[len(chosen)]]
            chosen.append(device)
            if len(chosen) == len(order):
                return self._from_chosen(order, chosen)
            smallest = self.sizes[order[-1]]
            key = (len(chosen), *sorted(room for room in rooms if room >= smallest))
            if key in seen or sum(key[1:]) < left[len(chosen)]:
                rooms[device] += self.sizes[order[len(chosen) - 1]]
                chosen.pop()
                continue
            seen.add(key)
            tried.append(iter(self._with_room(rooms, self.sizes[order[len(chosen)]])))
        raise Undecided

    @staticmethod
    def _with_room(rooms: Sequence[int], size: int) -> list[int]:
        """Devices that hold a block, one of each room, the least room first."""
        found = {room: device for device, room in reversed(list(enumerate(rooms))) if room >= size}
        return [found[room] for room in sorted(found)]

    def _from_chosen(self, order: Sequence[int], chosen: Sequence[int]) -> list[int]:
        of_block = dict(zip(order, chosen, strict=True))
        placed: list[int] = []
        for block in range(len(self.sizes)):
            placed.append(of_block.get(block, placed[-1] if placed else 0))
        return placed
