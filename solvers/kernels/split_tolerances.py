"""How many micro-batches in flight splits of sets of layers over the devices inside one device can stand.

A split of ``D \\ D'`` (downsets, the paper's) consists of parts, each one of several kinds: kind i uses ``uses[i]``
devices, adds ``adds[i]`` to the sum of degrees, and a part ``D \\ M`` of kind i stands ``most[pair(D, M), i]``
micro-batches in flight from it on, 0 if it takes too long whatever they are. The sum of degrees of a whole split, its
devices and what it stands decide everything around it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtpp.graph import Int32Array, Int64Array
from mtpp.solvers.kernels.jit import kernel


@kernel
def split_table(
    inner: int,
    pair_of: Int32Array,
    uses: Int64Array,
    adds: Int64Array,
    most: Int32Array,
    devices: int,
    degrees: int,
    cap: int,
) -> NDArray[np.int32]:
    """Return what splits of ``D \\ inner`` stand, for every D that holds *inner*.

    Parameters
    ----------
    pair_of
        Row of *most* for the downsets (outer, inner), -1 where one does not hold the other; shape (D, D). Downsets are
        sorted by size.
    devices, degrees
        K of the level, and the largest sum of degrees that matters.
    cap
        More micro-batches in flight than this never occur.

    Returns
    -------
    Shape (D, devices + 1, degrees + 1): the largest s with which *k* devices in use, sum of degrees *x*, are enough; 0
    if none.
    """
    count = len(pair_of)
    table = np.zeros((count, devices + 1, degrees + 1), dtype=np.int32)
    table[inner, 0, 0] = cap
    for outer in range(inner + 1, count):
        if pair_of[outer, inner] < 0:
            continue
        for middle in range(inner, outer):
            if (middle != inner and pair_of[middle, inner] < 0) or pair_of[outer, middle] < 0:
                continue
            pair = pair_of[outer, middle]
            for i in range(len(uses)):
                stands = most[pair, i]
                if stands == 0:
                    continue
                for k in range(devices - uses[i] + 1):
                    for x in range(min(degrees - adds[i], stands - adds[i]) + 1):
                        rest = table[middle, k, x]
                        if rest == 0:
                            continue
                        here = min(stands, rest + adds[i])
                        if here > table[outer, k + uses[i], x + adds[i]]:
                            table[outer, k + uses[i], x + adds[i]] = here
    return table


@kernel
def split_tolerances(
    pair_of: Int32Array,
    pairs: int,
    uses: Int64Array,
    adds: Int64Array,
    most: Int32Array,
    devices: int,
    degrees: int,
    cap: int,
) -> NDArray[np.int32]:
    """Return what splits of every pair of downsets over at most *devices* stand, by sum of degrees.

    Returns
    -------
    Shape (pairs, degrees + 1).

    Notes
    -----
    O(triples of nested downsets · kinds · devices · degrees).
    """
    count = len(pair_of)
    best = np.zeros((pairs, degrees + 1), dtype=np.int32)
    for inner in range(count):
        table = split_table(inner, pair_of, uses, adds, most, devices, degrees, cap)
        for outer in range(inner + 1, count):
            pair = pair_of[outer, inner]
            if pair < 0:
                continue
            for k in range(devices + 1):
                for x in range(degrees + 1):
                    if table[outer, k, x] > best[pair, x]:
                        best[pair, x] = table[outer, k, x]
    return best


@kernel
def fewest_devices(
    pair_of: Int32Array,
    uses: Int64Array,
    adds: Int64Array,
    most: Int32Array,
    devices: int,
    degrees: int,
    exactly: bool,
) -> NDArray[np.int32]:
    """Return the fewest devices of the outermost level that the layers of each downset need, by sum of degrees.

    There the sum of degrees is what is in flight. Unless it has to be *exactly* *degrees* in the end, entries that a
    smaller sum with as few devices beats are left out.

    Returns
    -------
    Shape (D, degrees + 1); *devices* + 1 where they do not suffice.
    """
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
            for i in range(len(uses)):
                stands = min(int(most[pair, i]), degrees)
                if stands == 0:
                    continue
                for p in range(lengths[middle]):
                    x = points[middle, p]
                    if x + adds[i] > stands:
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
