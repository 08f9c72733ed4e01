"""Bound of a pipeline's iteration, from paths into its stages and what they have to do."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel


@kernel
def path_bound(costs: Int64Array, ends: Int64Array, ticks: Int64Array) -> int:
    """Return J, ticks that no simulation of a stage graph beats: paths into stages and what they have to do.

    Parameters
    ----------
    costs
        Of each stage, in a topological order: ticks of a forward pass, of a backward pass, of all synchronisation, and
        micro-batches, int64, shape (stages, 4).
    ends, ticks
        Source and target of each transfer, and what it takes forward and back, int64, shape (transfers, 2).

    Notes
    -----
    The first pass of a stage waits for a forward pass and a transfer of each stage on a path into it. From then on it
    takes as long as all its passes, or as its passes of one micro-batch, the transfers there and back, and what a stage
    behind it takes. Its synchronisation follows, or the backward passes of the path into it. A channel carries all
    micro-batches of its sender. For equal stages and free transfers the iteration is J. O(stages · transfers).
    """
    stages = len(costs)
    taken = np.zeros(stages, dtype=np.int64)  # from the first forward to the last backward pass
    for x in range(stages - 1, -1, -1):
        taken[x] = costs[x, 3] * (costs[x, 0] + costs[x, 1])
        for t in range(len(ends)):
            if ends[t, 0] == x:
                behind = taken[ends[t, 1]] + ticks[t, 0] + ticks[t, 1]
                taken[x] = max(taken[x], costs[x, 0] + costs[x, 1] + behind)
    both = np.zeros(stages, dtype=np.int64)
    forward = np.zeros(stages, dtype=np.int64)
    bound = 0
    for x in range(stages):
        for t in range(len(ends)):
            if ends[t, 1] == x:
                y = ends[t, 0]
                both[x] = max(both[x], both[y] + costs[y, 0] + costs[y, 1] + ticks[t, 0] + ticks[t, 1])
                forward[x] = max(forward[x], forward[y] + costs[y, 0] + ticks[t, 0])
                bound = max(bound, costs[y, 3] * ticks[t, 0], costs[x, 3] * ticks[t, 1])
        bound = max(bound, both[x] + taken[x], forward[x] + taken[x] + costs[x, 2])
    return bound
