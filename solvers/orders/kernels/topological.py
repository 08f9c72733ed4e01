"""Kahn's algorithm with node priorities (Archer et al. 2024, Algorithm 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array
from mtpp.solvers.jit import kernel, subroutine

if TYPE_CHECKING:
    from mtpp.solvers.arrays import OrderArrays


@kernel
def kahn_order(ordering: OrderArrays, priority: NDArray[np.float64]) -> Int32Array:
    """Return the topological order that always takes the ready op of highest priority.

    Equal priorities: the op first in the file. Any topological order results from some priorities (Theorem 4.3).

    Parameters
    ----------
    ordering
        The edges, :func:`mtpp.solvers.arrays.order_arrays`; not changed.
    priority
        float64, shape (n,).

    Returns
    -------
    Order, int32, shape (n,).

    Notes
    -----
    O(n log n + m) time, a binary heap of ops.
    """
    offsets, successors = ordering.successor_offsets, ordering.successors
    n = len(ordering.indegree)
    order = np.empty(n, dtype=np.int32)
    waiting = ordering.indegree.copy()
    heap = np.empty(n, dtype=np.int32)
    size = 0
    for v in range(n):
        if waiting[v] == 0:
            size = _push(heap, size, v, priority)
    for i in range(n):
        u = heap[0]
        order[i] = u
        size -= 1
        if size > 0:
            _sink(heap, size, heap[size], priority)
        for e in range(offsets[u], offsets[u + 1]):
            v = successors[e]
            waiting[v] -= 1
            if waiting[v] == 0:
                size = _push(heap, size, v, priority)
    return order


@subroutine
def _before(a: int, b: int, priority: NDArray[np.float64]) -> bool:
    return priority[a] > priority[b] or (priority[a] == priority[b] and a < b)


@subroutine
def _push(heap: Int32Array, size: int, op: int, priority: NDArray[np.float64]) -> int:
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if not _before(op, heap[parent], priority):
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = op
    return size + 1


@subroutine
def _sink(heap: Int32Array, size: int, op: int, priority: NDArray[np.float64]) -> None:
    hole = 0
    child = 1
    while child < size:
        if child + 1 < size and _before(heap[child + 1], heap[child], priority):
            child += 1
        if not _before(heap[child], op, priority):
            break
        heap[hole] = heap[child]
        hole = child
        child = 2 * hole + 1
    heap[hole] = op
