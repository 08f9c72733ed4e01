"""Maximum in-flight micro-batches of each nested split of a layer set.

A split of the layers between two downsets consists of parts, each one of several kinds: kind i uses ``uses[i]``
devices, adds ``adds[i]`` to the sum of degrees, and as a part of this kind the layers between downsets *outer* and
*inner* tolerate ``most[pair, i]`` micro-batches in flight from it on, 0 if it takes too long whatever they are. The
devices in use, the sum of degrees and what it tolerates are all that has to be known of a split: where another one is
as good in all three, it is left out. Kinds are sorted by ``uses``, then ``adds``.

Where the degrees of the whole plan have to sum up to an exact number (*exactly*), a smaller sum is no better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel


@kernel
def useful_kinds(adds: Int64Array, most: Int32Array, degrees: int, exactly: bool) -> tuple[Int64Array, Int32Array]:
    """Return, for each pair, the kinds that no other one beats in devices, degrees and micro-batches, as CSR.

    O(pairs · kinds) and O(*degrees*) for each that is kept; *degrees* is the largest sum that matters.
    """
    pairs, kinds = most.shape
    starts = np.zeros(pairs + 1, dtype=np.int64)
    capacity = 4 * pairs + 16
    items = np.empty(capacity, dtype=np.int32)
    best = np.zeros(degrees + 1, dtype=np.int32)
    total = 0
    for pair in range(pairs):
        for x in range(degrees + 1):
            best[x] = 0
        for i in range(kinds):
            tolerated_in_flight = most[pair, i]
            if adds[i] > degrees or tolerated_in_flight < adds[i] or tolerated_in_flight <= best[adds[i]]:
                continue
            for x in range(adds[i], adds[i] + 1 if exactly else degrees + 1):
                if best[x] >= tolerated_in_flight:
                    break
                best[x] = tolerated_in_flight
            if total == capacity:
                larger = np.empty(2 * capacity, dtype=np.int32)
                for place in range(capacity):
                    larger[place] = items[place]
                items = larger
                capacity *= 2
            items[total] = i
            total += 1
        starts[pair + 1] = total
    return starts, items[:total].copy()


class Kinds(NamedTuple):
    """Kinds of parts of a split, and what each pair of downsets tolerates as one.

    *starts* and *items* are the kinds of each pair that no other one beats, as CSR.
    """

    uses: Int64Array
    adds: Int64Array
    most: Int32Array
    starts: Int64Array
    items: Int32Array

    @classmethod
    def of(cls, uses: Int64Array, adds: Int64Array, most: Int32Array, degrees: int, *, exactly: bool) -> Kinds:
        """Sort kinds, and leave out those that no pair of downsets can be."""
        some = np.nonzero(most.any(axis=0))[0]
        some = some[np.lexsort((adds[some], uses[some]))]
        uses, adds, most = uses[some], adds[some], np.ascontiguousarray(most[:, some])
        return cls(uses, adds, most, *useful_kinds(adds, most, degrees, exactly))


@kernel
def split_table(
    inner: int,
    pair_of: Int32Array,
    kinds: Kinds,
    devices: int,
    degrees: int,
    cap: int,
    exactly: bool,
) -> NDArray[np.int32]:
    """Return what splits of the layers between *inner* and every downset that holds it tolerate.

    Parameters
    ----------
    pair_of
        Row of ``kinds.most`` for the downsets (outer, inner), -1 where one does not hold the other; shape (D, D).
        Downsets are sorted by size.
    devices, degrees
        K of the level, and the largest sum of degrees that matters.
    cap
        More micro-batches in flight than this never occur.

    Returns
    -------
    Shape (D, devices + 1, degrees + 1): the largest s with which *k* devices in use, sum of degrees *x*, are enough; 0
    if none, or if others are as good.
    """
    uses, adds, most, starts, items = kinds
    count = len(pair_of)
    table = np.zeros((count, devices + 1, degrees + 1), dtype=np.int32)
    table[inner, 0, 0] = cap
    width = (devices + 1) * (degrees + 1)
    state_k = np.empty((count, width), dtype=np.int32)
    state_x = np.empty((count, width), dtype=np.int32)
    states = np.zeros(count, dtype=np.int64)
    state_k[inner, 0] = 0
    state_x[inner, 0] = 0
    states[inner] = 1
    best = np.zeros(degrees + 1, dtype=np.int32)
    for outer in range(inner + 1, count):
        if pair_of[outer, inner] < 0:
            continue
        for middle in range(inner, outer):
            pair = pair_of[outer, middle]
            if pair < 0 or states[middle] == 0:
                continue
            for place in range(starts[pair], starts[pair + 1]):
                i = items[place]
                tolerated_in_flight = most[pair, i]
                for p in range(states[middle]):
                    k, x = state_k[middle, p] + uses[i], state_x[middle, p] + adds[i]
                    if k > devices:
                        break
                    if x > degrees or x > tolerated_in_flight:
                        continue
                    here = min(tolerated_in_flight, table[middle, state_k[middle, p], state_x[middle, p]] + adds[i])
                    if here > table[outer, k, x]:
                        table[outer, k, x] = here
        for x in range(degrees + 1):
            best[x] = 0
        for k in range(devices + 1):
            above = 0
            for x in range(degrees + 1):
                above = best[x] if exactly else max(above, best[x])
                if table[outer, k, x] <= above:
                    table[outer, k, x] = 0
                    continue
                above = table[outer, k, x]
                best[x] = above
                state_k[outer, states[outer]] = k
                state_x[outer, states[outer]] = x
                states[outer] += 1
    return table


@kernel
def split_tolerances(
    first: int,
    last: int,
    pair_of: Int32Array,
    kinds: Kinds,
    devices: int,
    degrees: int,
    cap: int,
    exactly: bool,
    stood: Int32Array,
) -> None:
    """Write what splits of pairs of downsets over at most *devices* tolerate, by sum of degrees.

    Parameters
    ----------
    first, last
        Inner downsets that are looked at, *last* not included.
    stood
        Result, shape (pairs, degrees + 1).

    Notes
    -----
    O(triples of nested downsets · kinds and splits that none beats).
    """
    for inner in range(first, last):
        table = split_table(inner, pair_of, kinds, devices, degrees, cap, exactly)
        for outer in range(inner + 1, len(pair_of)):
            pair = pair_of[outer, inner]
            if pair < 0:
                continue
            for k in range(devices + 1):
                for x in range(degrees + 1):
                    if table[outer, k, x] > stood[pair, x]:
                        stood[pair, x] = table[outer, k, x]


@kernel
def fewest_devices(
    pair_of: Int32Array,
    kinds: Kinds,
    devices: int,
    degrees: int,
    exactly: bool,
) -> NDArray[np.int32]:
    """Return the fewest devices of the outermost level that the layers of each downset need, by sum of degrees.

    There the sum of degrees is what is in flight. Entries that others beat are left out.

    Returns
    -------
    Shape (D, degrees + 1); *devices* + 1 where they do not suffice.
    """
    uses, adds, most, starts, items = kinds
    count = len(pair_of)
    need = np.full((count, degrees + 1), devices + 1, dtype=np.int32)
    need[0, 0] = 0
    points = np.zeros((count, degrees + 1), dtype=np.int32)
    lengths = np.zeros(count, dtype=np.int64)
    lengths[0] = 1
    for outer in range(1, count):
        for middle in range(outer):
            pair = pair_of[outer, middle]
            if pair < 0:
                continue
            for place in range(starts[pair], starts[pair + 1]):
                i = items[place]
                room = min(int(most[pair, i]), degrees) - adds[i]
                for p in range(lengths[middle]):
                    x = points[middle, p]
                    if x > room:
                        break
                    used = need[middle, x] + uses[i]
                    if used < need[outer, x + adds[i]]:
                        need[outer, x + adds[i]] = used
        least = devices + 1
        for x in range(degrees + 1):
            if need[outer, x] < least or (exactly and need[outer, x] <= devices):
                least = min(least, need[outer, x])
                points[outer, lengths[outer]] = x
                lengths[outer] += 1
            else:
                need[outer, x] = devices + 1
    return need
