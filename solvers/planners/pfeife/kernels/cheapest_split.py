"""Cheapest split against a mixture of paths: split points are chosen one after the other."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array
from mtpp.solvers.jit import kernel


@kernel
def cheapest_split(
    forward: Float64Array,
    backward: Float64Array,
    handover: Float64Array,
    speed_of: Int32Array,
    price: Float64Array,
    split: Int64Array,
) -> float:
    """Set the split with the least price, and return that.

    Parameters
    ----------
    forward, backward, handover, speed_of
        As in :class:`mtpp.training.pfeife.costs.SplitTimes`, in units of which a float holds enough.
    price
        Of a unit of the forward pass of stage s at 2 · s, of its backward pass at 2 · s + 1, of the hand-over before it
        at 2 · S + s; float64, shape (3 · S,), not negative.
    split
        Output, int64, shape (S + 1,).

    Notes
    -----
    A price is a sum over split points: position p between stages s − 1 and s costs what the first p ops cost in stage
    s − 1, less what they would in stage s, and its hand-over. O(S · n).
    """
    stages, n = len(split) - 1, forward.shape[1] - 1
    devices = len(speed_of)
    origin = np.empty((stages + 1, n + 1), dtype=np.int32)
    cost = np.full(n + 1, np.inf)
    cost[0] = 0.0
    following = np.full(n + 1, np.inf)
    for s in range(1, stages):
        old, new = speed_of[(s - 1) % devices], speed_of[s % devices]
        least, at = np.inf, -1
        following[:s] = np.inf
        for p in range(s, n - (stages - s) + 1):
            if cost[p - 1] < least:
                least, at = cost[p - 1], p - 1
            origin[s, p] = at
            following[p] = (
                least
                + price[2 * s - 2] * forward[old, p]
                - price[2 * s] * forward[new, p]
                + price[2 * s - 1] * backward[old, p]
                - price[2 * s + 1] * backward[new, p]
                + price[2 * stages + s] * handover[p]
            )
        cost, following = following, cost
        following[:] = np.inf
    least, at = np.inf, -1
    for p in range(stages - 1, n):
        if cost[p] < least:
            least, at = cost[p], p
    last = speed_of[(stages - 1) % devices]
    split[stages] = n
    split[stages - 1] = at
    for s in range(stages - 1, 0, -1):
        split[s - 1] = origin[s, split[s]]
    return float(least + price[2 * stages - 2] * forward[last, n] + price[2 * stages - 1] * backward[last, n])
