"""Algorithms 1, 4 and 5 of Archer et al. (2024) as written there: the baseline for our slicing.

The whole table of segment costs by a two-dimensional Fenwick tree with range updates (Lemma 4.1), then the dynamic
programme over all segments (Lemma 4.2): O(n² k + m log² n) time and O(n²) memory, in the language of our kernels and
compiled with the same settings. Where the paper leaves a choice, the faster one is taken: the loops of the dynamic
programme run along the rows of the table. No overflow (M = ∞).
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_from(tree: Int64Array, row: int, column: int, amount: int) -> None:
    """Add *amount* to every entry [i][j] with i >= row and j >= column; one-based, O(log² n)."""
    size = len(tree)
    i = row
    while i < size:
        j = column
        while j < size:
            tree[i, j] += amount
            j += j & -j
        i += i & -i


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_rectangle(tree: Int64Array, top: int, left: int, bottom: int, right: int, amount: int) -> None:
    """Add *amount* to all entries in [top, bottom] × [left, right]; nothing if the rectangle is empty."""
    if top > bottom or left > right:
        return
    _add_from(tree, top, left, amount)
    _add_from(tree, top, right + 1, -amount)
    _add_from(tree, bottom + 1, left, -amount)
    _add_from(tree, bottom + 1, right + 1, amount)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def segment_costs(
    order: Int32Array, work: Int64Array, transfer: Int64Array, pin_offsets: Int64Array, pins: Int32Array
) -> Int64Array:
    """Return f of every segment of *order* (Algorithms 4 and 5).

    Parameters
    ----------
    order
        Topological order, int32, shape (n,).
    work
        Ticks per op, int64, shape (n,).
    transfer
        Ticks per tensor, int64, shape (m,).
    pin_offsets, pins
        Producer, then consumers, of each tensor: CSR, int64 shape (m + 1,) and int32.

    Returns
    -------
    int64, shape (n + 2, n + 2); entry [l, r] is the cost of the l-th to the r-th op, one-based, for l <= r.

    Notes
    -----
    O(n² + pins · log² n) time, O(n²) memory.
    """
    n = len(order)
    position = np.empty(n, dtype=np.int64)
    prefix = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        position[order[i]] = i + 1
        prefix[i + 1] = prefix[i] + work[order[i]]
    tree = np.zeros((n + 2, n + 2), dtype=np.int64)
    for t in range(len(transfer)):
        if pin_offsets[t + 1] - pin_offsets[t] < 2:
            continue
        paid = transfer[t]
        places = np.sort(position[pins[pin_offsets[t] : pin_offsets[t + 1]]])
        first, last = places[0], places[-1]
        _add_rectangle(tree, 1, 1, n, n, paid)
        # The segments that hold no pin at all, and those that hold every one, do not pay.
        _add_rectangle(tree, 1, 1, first - 1, first - 1, -paid)
        for i in range(len(places) - 1):
            _add_rectangle(tree, places[i] + 1, places[i] + 1, places[i + 1] - 1, places[i + 1] - 1, -paid)
        _add_rectangle(tree, last + 1, last + 1, n, n, -paid)
        _add_rectangle(tree, 1, last, first, n, -paid)
    # Turn the tree into the entries that it stands for, each from one that is done: O(n²) for all of them.
    for i in range(1, n + 2):
        below = i - (i & -i)
        for j in range(1, n + 2):
            tree[i, j] += tree[i, j - (j & -j)]
        if below:
            # Row i of the tree sums the rows below + 1 … i; the rows up to below are summed already.
            for j in range(1, n + 2):
                tree[i, j] += tree[below, j]
    for i in range(1, n + 1):
        for j in range(i, n + 1):
            tree[i, j] += prefix[j] - prefix[i - 1]
    return tree


@numba.njit(cache=True, nogil=True, error_model="numpy")
def textbook_slice(
    order: Int32Array,
    stage_count: int,
    work: Int64Array,
    transfer: Int64Array,
    pin_offsets: Int64Array,
    pins: Int32Array,
) -> int:
    """Return the least bottleneck, in ticks, of any cut of *order* into at most *stage_count* segments (Algorithm 1).

    Notes
    -----
    O(n² k + pins · log² n) time, O(n²) memory.
    """
    n = len(order)
    cost = segment_costs(order, work, transfer, pin_offsets, pins)
    best = np.zeros(n + 1, dtype=np.int64)
    best[1:] = cost[1, 1 : n + 1]
    for _ in range(1, stage_count):
        longer = best.copy()
        for left in range(n):
            reached = best[left]
            for right in range(left + 1, n + 1):
                longer[right] = min(longer[right], max(reached, cost[left + 1, right]))
        best = longer
    return best[n]
