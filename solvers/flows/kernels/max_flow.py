"""Maximum flow in int64: Dinic's algorithm on flat arrays."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel

UNLIMITED_CAPACITY = 2**62
"""More than any flow: of arcs that are never cut."""


@kernel
def max_flow(
    offsets: Int64Array, arcs: Int32Array, heads: Int32Array, residual: Int64Array, source: int, sink: int, enough: int
) -> int:
    """Return the value of a maximum flow from *source* to *sink*, or what is found once it is *enough*.

    Parameters
    ----------
    offsets, arcs
        Arcs that leave each node, CSR: int64, shape (nodes + 1,), and int32.
    heads
        Node that each arc enters, int32; arcs 2·i and 2·i + 1 are each other's reverse.
    residual
        Capacity of each arc, int64; reduced by the flow when the function returns. The sum of those that leave the
        source has to be below 2^63.

    Notes
    -----
    O(nodes² · arcs) at worst, far less on sparse graphs. Dinic (1970).
    """
    nodes = len(offsets) - 1
    level = np.empty(nodes, dtype=np.int32)
    queue = np.empty(nodes, dtype=np.int32)
    at = np.empty(nodes, dtype=np.int64)
    path = np.empty(nodes + 1, dtype=np.int32)
    total = np.int64(0)
    while total < enough:
        level[:] = -1
        level[source] = 0
        queue[0] = source
        first, last = 0, 1
        while first < last and level[sink] < 0:
            u = queue[first]
            first += 1
            for i in range(offsets[u], offsets[u + 1]):
                arc = arcs[i]
                v = heads[arc]
                if residual[arc] > 0 and level[v] < 0:
                    level[v] = level[u] + 1
                    queue[last] = v
                    last += 1
        if level[sink] < 0:
            break
        for u in range(nodes):
            at[u] = offsets[u]
        depth = 0
        u = source
        while True:
            if u == sink:
                pushed = residual[path[0]]
                for i in range(1, depth):
                    pushed = min(pushed, residual[path[i]])
                total += pushed
                back = depth
                for i in range(depth - 1, -1, -1):
                    residual[path[i]] -= pushed
                    residual[path[i] ^ 1] += pushed
                    if residual[path[i]] == 0:
                        back = i
                depth = back
                u = source if depth == 0 else heads[path[depth - 1]]
                continue
            advanced = False
            while at[u] < offsets[u + 1]:
                arc = arcs[at[u]]
                v = heads[arc]
                if residual[arc] > 0 and level[v] == level[u] + 1:
                    path[depth] = arc
                    depth += 1
                    u = v
                    advanced = True
                    break
                at[u] += 1
            if advanced:
                continue
            if depth == 0:
                break
            depth -= 1
            u = source if depth == 0 else heads[path[depth - 1]]
            at[u] += 1
    return int(total)
