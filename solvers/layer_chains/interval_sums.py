"""Sums over all intervals of a chain: what each touches, what it holds whole, and its working memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.live_tensors import NO_PRODUCER
from mtpp.machine.device import Device


class Pins:
    """Positions in a chain of the ops that touch each of some things, and the intervals that they fall into.

    Parameters
    ----------
    offsets, places
        Positions of each thing, CSR, in any order.
    op_count
        Length of the chain.
    """

    def __init__(self, offsets: Int64Array, places: Int64Array, op_count: int) -> None:
        thing = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
        by_place = np.lexsort((places, thing))
        self.thing, self.place = thing[by_place], places[by_place]
        self._op_count = op_count
        begins = np.ones(len(thing), dtype=bool)
        begins[1:] = self.thing[1:] != self.thing[:-1]
        self.before = np.where(begins, -1, np.concatenate([[-1], self.place[:-1]])[: len(thing)])
        """Position before each one of the same thing, -1 for its first."""
        self._first, self._last = self.place[begins], self.place[np.roll(begins, -1)] if len(thing) else self.place

    def touched(self, sizes: Int64Array) -> Int64Array:
        """Return for each interval the sum of the things that an op of it touches, int64, shape (n + 1, n + 1).

        O(pins + n²): an interval counts a thing at the first of its positions inside.
        """
        return self._over(self.before + 1, self.place + 1, self.place + 1, sizes[self.thing])

    def inside(self, sizes: Int64Array) -> Int64Array:
        """Return for each interval the sum of the things that no op outside of it touches; O(things + n²)."""
        return self._over(np.zeros_like(self._first), self._first + 1, self._last + 1, sizes)

    def _over(self, low: Int64Array, high: Int64Array, stop: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return the sums over intervals that begin from *low* to before *high*, and end at *stop* or later."""
        n = self._op_count
        change = np.zeros((n + 2, n + 1), dtype=np.int64)
        np.add.at(change, (low, stop), sizes)
        np.add.at(change, (high, stop), -sizes)
        sums: Int64Array = np.cumsum(np.cumsum(change, axis=0), axis=1)[: n + 1]
        return sums


def summed(values: Int64Array) -> Int64Array:
    """Return the sum of each interval's values, int64, shape (n + 1, n + 1)."""
    total = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])
    sums: Int64Array = total[np.newaxis, :] - total[:, np.newaxis]
    return sums


def cuts_between(groups: Iterable[Sequence[int]], count: int) -> BoolArray:
    """Return for each place from 0 to *count* whether an interval may end there without a cut through a group."""
    cuts = np.ones(count + 1, dtype=np.bool_)
    for group in groups:
        cuts[min(group) + 1 : max(group) + 1] = False
    return cuts


def streamed(device: Device, held: Int64Array) -> Int64Array:
    """Return the ticks to stream what the fast memory does not hold, of any shape; exact, each size once."""
    sizes, place = np.unique(held, return_inverse=True)
    ticks = np.array([device.overflow_ps(size) for size in sizes.tolist()], dtype=np.int64)
    return ticks[place].reshape(held.shape)


def peaks_of_intervals(instance: Instance, position: Int64Array) -> Int64Array:
    """Return peak(S) of each interval run in the chain's order, int64, shape (n + 1, n + 1); 0 where it is empty.

    Parameters
    ----------
    position
        Of each op in the chain.

    Notes
    -----
    O(n³ + pins · n²) in array operations. A tensor made in the interval lives from there to its last use anywhere, or
    to the end if it is a result, whatever the interval's end. One from outside lives from its first use inside to its
    last: with each further use, wherever the interval begins before, it lives at all positions since the one before.
    """
    n, live = instance.op_count, instance.live
    sizes, place = live.sizes.tolist(), position[live.pins]
    bounds = np.searchsorted(live.tensor_of_pin, np.arange(len(sizes) + 1))
    result = np.zeros(len(sizes), dtype=bool)
    result[live.results] = True
    at = np.zeros((n + 1, n), dtype=np.int64)  # bytes live at a position, by the interval's begin
    uses: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]
    for t, size in enumerate(sizes):
        places = np.sort(place[bounds[t] : bounds[t + 1]]).tolist()
        maker = -1
        if live.producer[t] != NO_PRODUCER:
            maker = int(position[live.producer[t]])
            at[: maker + 1, maker : n if result[t] else places[-1] + 1] += size
            places = [p for p in places if p > maker]
        previous = maker
        for p in places:
            uses[p].append((maker, previous, size))
            previous = p
    peaks = np.zeros((n + 1, n + 1), dtype=np.int64)
    for y in range(n):
        for maker, previous, size in uses[y]:
            at[previous + 1 : y + 1, y] += size
            if previous > maker:
                at[maker + 1 : previous + 1, previous + 1 : y + 1] += size
        peaks[: y + 1, y + 1] = at[: y + 1, : y + 1].max(axis=1)
    return peaks
