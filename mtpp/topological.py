"""Topological order of small integers, first come first served."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray


def first_come_order(count: int, sources: NDArray[np.integer], targets: NDArray[np.integer]) -> list[int]:
    """Order the nodes 0 … count − 1 so that every edge goes forward; of all ready nodes the least comes next.

    Parameters
    ----------
    sources, targets
        Ends of the edges; repeated edges do no harm.

    Returns
    -------
    The order; if there is a cycle, it lacks the nodes on cycles and behind them.

    Notes
    -----
    Kahn (1962) with a heap: O(n log n + m).
    """
    successors: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for u, v in zip(sources.tolist(), targets.tolist(), strict=True):
        successors[u].append(v)
        waiting[v] += 1
    ready = [v for v in range(count) if waiting[v] == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        u = heappop(ready)
        order.append(u)
        for v in successors[u]:
            waiting[v] -= 1
            if waiting[v] == 0:
                heappush(ready, v)
    return order
