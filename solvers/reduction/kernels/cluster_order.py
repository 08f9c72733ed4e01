"""Clusters of ops and an order of them in which every edge goes forward.

The order is a doubly linked list with labels to compare positions by, a simple form of order maintenance: labels are
spread out far enough at first that what has to move nearly always finds room, and is left where it is if not.
"""

from __future__ import annotations

from typing import NamedTuple

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine

LAST_LABEL = 2**62
"""All labels are below."""


class Clusters(NamedTuple):
    """Clusters, each called by one of its members, and their order; a state that kernels change.

    Attributes
    ----------
    root
        Leads from every op to its cluster (disjoint sets with path halving), int32, shape (n,).
    next_member, last_member
        Chain of a cluster's members; the last one's next is −1.
    label, previous, following
        Position of each cluster, int64, and its neighbours in the order; shape (n + 2,), for entries n and n + 1
        stand before the first and after the last.
    size, work, param_bytes
        Sums over the members.
    """

    root: Int32Array
    next_member: Int32Array
    last_member: Int32Array
    label: Int64Array
    previous: Int32Array
    following: Int32Array
    size: Int64Array
    work: Int64Array
    param_bytes: Int64Array


@kernel
def move(clusters: Clusters, moving: Int32Array, left: int, right: int) -> bool:
    """Put clusters between two neighbours in the order, themselves in the order in which they were."""
    room = clusters.label[right] - clusters.label[left]
    if room <= len(moving):
        return False
    for i in range(1, len(moving)):  # insertion sort: they are few
        cluster = moving[i]
        j = i
        while j > 0 and clusters.label[moving[j - 1]] > clusters.label[cluster]:
            moving[j] = moving[j - 1]
            j -= 1
        moving[j] = cluster
    label = clusters.label[left]
    for cluster in moving:
        _unlink(clusters, cluster)
        label += room // (len(moving) + 1)
        clusters.label[cluster] = label
        clusters.previous[cluster] = left
        clusters.following[cluster] = right
        clusters.following[left] = cluster
        clusters.previous[right] = cluster
        left = cluster
    return True


@subroutine
def _unlink(clusters: Clusters, cluster: int) -> None:
    before = clusters.previous[cluster]
    after = clusters.following[cluster]
    clusters.following[before] = after
    clusters.previous[after] = before


@subroutine
def unite(clusters: Clusters, kept: int, gone: int) -> None:
    """Let *kept*, at its place in the order, take in the members of *gone*."""
    _unlink(clusters, gone)
    clusters.root[gone] = kept
    clusters.next_member[clusters.last_member[kept]] = gone
    clusters.last_member[kept] = clusters.last_member[gone]
    clusters.size[kept] += clusters.size[gone]
    clusters.work[kept] += clusters.work[gone]
    clusters.param_bytes[kept] += clusters.param_bytes[gone]


@kernel
def find(root: Int32Array, op: int) -> int:
    """Return the cluster of an op, and shorten the way to it."""
    while root[op] != op:
        root[op] = root[root[op]]
        op = root[op]
    return int(op)
