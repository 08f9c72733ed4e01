"""Longest path through the passes and messages of a schedule, for a mixture of splits."""

from __future__ import annotations

from mtpp.array_types import Float64Array, Int32Array
from mtpp.solvers.jit import kernel


@kernel
def path_heads(
    before: Int32Array, kind: Int32Array, weight: Float64Array, head: Float64Array, origin: Int32Array
) -> None:
    """Set the length of the longest path to the end of each node, and the node before it on that path.

    Parameters
    ----------
    before
        Up to three nodes that each waits for, −1 for none, int32, shape (nodes, 3); all come before it.
    kind
        Place of each node's time in *weight*, int32.
    weight
        Ticks by kind, float64.
    head, origin
        Output: float64 and int32, shape (nodes,).

    Notes
    -----
    O(nodes).
    """
    for i in range(len(kind)):
        longest, from_node = 0.0, -1
        for a in range(before.shape[1]):
            j = before[i, a]
            if j >= 0 and head[j] > longest:
                longest, from_node = head[j], j
        head[i] = longest + weight[kind[i]]
        origin[i] = from_node


@kernel
def path_tails(
    before: Int32Array, kind: Int32Array, weight: Float64Array, tail: Float64Array, origin: Int32Array
) -> None:
    """Set the length of the longest path behind each node, itself left out, and the node behind it on that path.

    The parameters are those of :func:`path_heads`.
    """
    tail[:] = 0.0
    origin[:] = -1
    for i in range(len(kind) - 1, -1, -1):
        rest = tail[i] + weight[kind[i]]
        for a in range(before.shape[1]):
            j = before[i, a]
            if j >= 0 and rest > tail[j]:
                tail[j] = rest
                origin[j] = i


@kernel
def traced(origin: Int32Array, node: int, path: Int32Array) -> int:
    """Write the nodes from *node* along *origin* into *path*; return how many there are."""
    count = 0
    while node >= 0:
        path[count] = node
        count += 1
        node = origin[node]
    return count


@kernel
def longest_load(
    head: Float64Array,
    tail: Float64Array,
    kind: Int32Array,
    weight: Float64Array,
    first: Int32Array,
    last: Int32Array,
    device: Int32Array,
    counts: Int32Array,
    devices: int,
) -> tuple[int, float]:
    """Return the load with the longest path through it, and the length of that path; −1 where there are none.

    Parameters
    ----------
    head, tail, kind, weight
        As in :func:`path_heads` and :func:`path_tails`.
    first, last
        The first forward pass and the last backward pass of each load, nodes, int32, shape (loads,).
    device, counts
        Device of each load, int32, and its micro-batches of each loop, int32, shape (loads, N_l).

    Notes
    -----
    O(loads · N_l).
    """
    best, longest = -1, 0.0
    for i in range(len(first)):
        length = head[first[i]] - weight[kind[first[i]]] + tail[last[i]]
        for loop in range(counts.shape[1]):
            s = device[i] + loop * devices
            length += counts[i, loop] * (weight[2 * s] + weight[2 * s + 1])
        if length > longest:
            best, longest = i, length
    return best, longest
