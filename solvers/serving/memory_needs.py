"""Memory that every range of consecutive layers needs, at any context and number of sequences."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.errors import InputError
from mtpp.language_models.layer_memory import LayerMemory
from mtpp.solvers.layer_chains.interval_sums import summed

_LARGEST = 2**62


class RangeMemory:
    """Memory of ranges [start, stop) of a chain of n layers; arrays are int64, of shape (n + 1, n + 1).

    The memory of a range is no less than that of any range inside it.
    """

    def __init__(self, memory: LayerMemory) -> None:
        self._memory = memory
        self._n = len(memory.weights)
        self._peaks: tuple[tuple[int, ...], Int64Array] | None = None

    @cached_property
    def weights(self) -> Int64Array:
        """Bytes of weights, those that several layers read once."""
        total = summed(np.array(self._memory.weights, dtype=np.int64))
        stop = np.arange(self._n + 1)
        for size, readers in self._memory.shared:
            total = total + size * (_next(readers, self._n)[:, None] < stop)
        return total

    def caches(self, context: int, sequences: int) -> Int64Array:
        """Return the bytes of caches and states of all sequences.

        Raises
        ------
        InputError
            If they reach 2^62 bytes.
        """
        sizes = [sequences * size for size in self._memory.cache_bytes(context)]
        if sum(sizes) + int(self.weights[0, -1]) >= _LARGEST:
            raise InputError("caches are too large: their total reaches 2^62 bytes", parameter="memory")
        return summed(np.array(sizes, dtype=np.int64))

    def peaks(self, context: int, batch: int) -> Int64Array:
        """Return the most bytes that are live at once while layers run in order.

        A tensor between neighbours, and one inside a layer, is live where it is touched, whatever the range. Others are
        live from their first layer in the range to the last, or to the end of the range where it makes them and they
        are needed behind it.

        Notes
        -----
        O(n²), and for each tensor that skips a layer O(n³).
        """
        sizes = tuple(self._memory.passing_bytes(context, batch))
        if self._peaks is None or self._peaks[0] != sizes:
            self._peaks = sizes, self._of_sizes(sizes)
        return self._peaks[1]

    def _of_sizes(self, sizes: Iterable[int]) -> Int64Array:
        n, steady = self._n, np.zeros(self._n, dtype=np.int64)
        spans = []
        for size, (*_, maker, readers) in zip(sizes, self._memory.passing, strict=True):
            touched = readers if maker < 0 else (maker, *readers)
            if touched[-1] - touched[0] <= 1:
                steady[list(touched)] += size
            elif size:
                spans.append((size, maker, touched[-1], _next(touched, n), _last(touched, n)))
        found = np.zeros((n + 1, n + 1), dtype=np.int64)
        if not spans:
            found[:n, 1:] = np.maximum.accumulate(np.triu(np.broadcast_to(steady, (n, n))), axis=1)
            return found
        place, stop = np.arange(n)[None, :], np.arange(n + 1)[:, None]
        for start in range(n):
            live = np.broadcast_to(steady, (n + 1, n)).copy()
            for size, maker, end, following, before in spans:
                until = before[:, None]
                if maker >= start:
                    until = np.where((stop > maker) & (stop <= end), stop - 1, until)
                live += size * ((place >= following[start]) & (place <= until))
            found[start] = np.where((place >= start) & (place < stop), live, 0).max(axis=1)
        return found


def _next(places: Iterable[int], n: int) -> Int64Array:
    """Return the first of some places at or after each from 0 to n, n + 1 where there is none."""
    found = np.full(n + 1, n + 1, dtype=np.int64)
    found[list(places)] = list(places)
    return np.minimum.accumulate(found[::-1])[::-1]


def _last(places: Iterable[int], n: int) -> Int64Array:
    """Return the last of some places before each from 0 to n, -1 where there is none."""
    found = np.full(n + 1, -1, dtype=np.int64)
    found[[place + 1 for place in places]] = list(places)
    return np.maximum.accumulate(found)
