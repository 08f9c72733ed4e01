"""Runs of layers in a given order whose times are as equal as can be."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel


@inlined
def _fill(times: Int64Array, order: Int64Array, most: int, run: Int64Array) -> int:
    """Put layers into runs of at most so many ticks, in order; return the number of runs."""
    number, filled = 0, 0
    for layer in order:
        filled += times[layer]
        if filled > most:
            number, filled = number + 1, times[layer]
        run[layer] = number
    return number + 1


@kernel
def equal_runs(times: Int64Array, order: Int64Array, runs: int) -> Int64Array:
    """Cut an order of the layers into at most so many runs, the longest as short as can be; return each layer's run.

    Parameters
    ----------
    times, order
        Ticks of each layer, and layers in the order, int64.

    Notes
    -----
    O(layers · log ticks).
    """
    run = np.zeros(len(order), dtype=np.int64)
    low, high = int(times.max()), int(times.sum())
    while low < high:
        middle = low + (high - low) // 2
        if _fill(times, order, middle, run) <= runs:
            high = middle
        else:
            low = middle + 1
    _fill(times, order, low, run)
    return run
