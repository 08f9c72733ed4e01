"""Maximum flow in int64 between nodes that give out and nodes that absorb: Dinic's algorithm without terminal nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel

UNLIMITED_CAPACITY = 2**62
"""More than any flow: of arcs that are never cut."""


class FlowArcs(NamedTuple):
    """Arcs and their reverses, sorted by the node that they leave.

    Attributes
    ----------
    offsets
        Positions of the arcs that leave each node, CSR int64, shape (nodes + 1,).
    heads, twins
        Node that each arc enters, and position of its reverse, int32.
    forward, backward
        Positions of each arc that was given, and of its reverse, int32.
    """

    offsets: Int64Array
    heads: Int32Array
    twins: Int32Array
    forward: Int32Array
    backward: Int32Array


def flow_arcs(tails: NDArray[Any], heads: NDArray[Any], nodes: int) -> FlowArcs:
    """Return arcs with their reverses as :func:`max_flow` takes them; O(arcs·log arcs)."""
    starts = np.stack([tails, heads], axis=1).ravel()
    order = np.argsort(starts, kind="stable")
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    offsets = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(starts, minlength=nodes), out=offsets[1:])
    ends = np.stack([heads, tails], axis=1).ravel()
    return FlowArcs(
        offsets, ends[order].astype(np.int32), position[order ^ 1], position[::2].copy(), position[1::2].copy()
    )


class FlowScratch(NamedTuple):
    """Room for one flow at a time.

    Attributes
    ----------
    level
        After a maximum flow: at least 0 for the nodes on the source's side of the least minimum cut, else −1; int32,
        shape (nodes,).
    queue, at, path
        int32, int64 and int32, shape (nodes + 1,).
    """

    level: Int32Array
    queue: Int32Array
    at: Int64Array
    path: Int32Array


def flow_scratch(nodes: int) -> FlowScratch:
    """Return scratch for :func:`max_flow` in a network."""
    return FlowScratch(
        np.empty(nodes, dtype=np.int32),
        np.empty(nodes + 1, dtype=np.int32),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int32),
    )


@kernel
def max_flow(
    arcs: FlowArcs,
    residual: Int64Array,
    inject: Int64Array,
    absorb: Int64Array,
    scratch: FlowScratch,
    enough: int,
    whole_phases: bool,
) -> int:
    """Return the value of a maximum flow, or what is found once it is *enough*.

    Parameters
    ----------
    residual
        Capacity of each arc, int64; reduced by the flow when the function returns.
    inject, absorb
        What the first nodes may still give out and take, int64, both of one shape; reduced by the flow as well. No
        sum of what can flow may reach 2^63.
    whole_phases
        Whether a phase that has begun is ended although there is enough.

    Notes
    -----
    Between pushes *residual*, *inject* and *absorb* are left by a flow of value *total*, which keeps to all capacities.
    O(nodes² · arcs) at worst; a phase looks no further than the nearest node that still absorbs. Dinic (1970).
    """
    offsets, heads, twins = arcs.offsets, arcs.heads, arcs.twins
    level, queue, at, path = scratch
    terminals = len(inject)
    total = np.int64(0)
    while total < enough:
        level[:] = -1
        last = 0
        for u in range(terminals):
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
            if u < terminals and absorb[u] > 0:
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
        for start in range(terminals):
            if inject[start] == 0:
                continue
            depth = 0
            u = start
            while True:
                if u < terminals and absorb[u] > 0:
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
                    if inject[start] == 0 or (total >= enough and not whole_phases):
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
            if total >= enough and not whole_phases:
                break
    return int(total)
