"""The work of each op and all its ancestors, exactly."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel


@kernel
def ancestor_work(work: Int64Array, predecessor_offsets: Int64Array, predecessors: Int32Array) -> Int64Array:
    """Return the summed work of each op and all its ancestors, int64, shape (n,).

    Parameters
    ----------
    work
        Of ops that are numbered along a topological order, int64, shape (n,).
    predecessor_offsets, predecessors
        CSR, int64, shape (n + 1,), and int32.

    Notes
    -----
    64 ancestors at a time, as bits of a word: O(n · edges / 64) time and what the pairs of ancestor and op amount to,
    O(n) memory.
    """
    n = len(work)
    total = np.zeros(n, dtype=np.int64)
    word = np.zeros(n, dtype=np.uint64)
    for begin in range(0, n, 64):
        for v in range(begin, n):
            mask = np.uint64(0)
            for e in range(predecessor_offsets[v], predecessor_offsets[v + 1]):
                if predecessors[e] >= begin:
                    mask |= word[predecessors[e]]
            if v < begin + 64:
                mask |= np.uint64(1) << np.uint64(v - begin)
            word[v] = mask
            u = begin
            while mask != np.uint64(0):
                if mask & np.uint64(0xFF) == np.uint64(0):
                    mask >>= np.uint64(8)
                    u += 8
                    continue
                if mask & np.uint64(1):
                    total[v] += work[u]
                mask >>= np.uint64(1)
                u += 1
    return total
