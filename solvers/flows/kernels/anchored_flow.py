"""Maximum flow in int64 between ops that give out and ops that absorb: Dinic's algorithm without terminal nodes."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel


@kernel
def anchored_flow(
    offsets: Int64Array,
    heads: Int32Array,
    twins: Int32Array,
    residual: Int64Array,
    inject: Int64Array,
    absorb: Int64Array,
    level: Int32Array,
    queue: Int32Array,
    at: Int64Array,
    path: Int32Array,
    enough: int,
) -> int:
    """Return the value of a maximum flow, or what is found once it is *enough*.

    Parameters
    ----------
    offsets, heads, twins
        Arcs sorted by the node that they leave, CSR int64, shape (nodes + 1,); the nodes that they enter and the
        positions of their reverses, int32.
    residual
        Capacity of each arc, int64; reduced by the flow when the function returns.
    inject, absorb
        What the first nodes, the ops, may still give out and take, int64; reduced by the flow as well.
    level
        On return, if the flow is maximum: at least 0 for the nodes on the source's side of the least minimum cut,
        else −1; int32, shape (nodes,).
    queue, at, path
        Scratch, int32, int64 and int32, shape (nodes + 1,).

    Notes
    -----
    O(nodes² · arcs) at worst; a phase looks no further than the nearest op that still absorbs. Dinic (1970).
    """
    ops = len(inject)
    total = np.int64(0)
    while total < enough:
        level[:] = -1
        last = 0
        for u in range(ops):
            if inject[u] > 0:
                level[u] = 0
                queue[last] = u
                last += 1
        first = 0
        nearest = np.int32(2**31 - 1)
        while first < last:
            u = queue[first]
            first += 1
            depth = level[u]
            if depth >= nearest:
                break
            if u < ops and absorb[u] > 0:
                nearest = depth
                continue
            for i in range(offsets[u], offsets[u + 1]):
                v = heads[i]
                if level[v] < 0 and residual[i] > 0:
                    level[v] = depth + 1
                    queue[last] = v
                    last += 1
        if nearest == 2**31 - 1:
            break
        for i in range(last):
            at[queue[i]] = offsets[queue[i]]
        for start in range(ops):
            if inject[start] == 0:
                continue
            depth = 0
            u = start
            while True:
                if u < ops and absorb[u] > 0:
                    pushed = min(inject[start], absorb[u])
                    for i in range(depth):
                        pushed = min(pushed, residual[path[i]])
                    total += pushed
                    inject[start] -= pushed
                    absorb[u] -= pushed
                    back = depth
                    for i in range(depth - 1, -1, -1):
                        arc = path[i]
                        residual[arc] -= pushed
                        residual[twins[arc]] += pushed
                        if residual[arc] == 0:
                            back = i
                    if inject[start] == 0 or total >= enough:
                        break
                    depth = back
                    u = start if depth == 0 else heads[path[depth - 1]]
                    continue
                advanced = False
                if level[u] < nearest:
                    while at[u] < offsets[u + 1]:
                        arc = at[u]
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
                u = start if depth == 0 else heads[path[depth - 1]]
                at[u] += 1
            if total >= enough:
                break
    return int(total)
