"""Clusters of ops that leave the graph between them acyclic.

Two clusters that an edge joins may become one if no other path leads from the first to the second. An order of the
clusters in which every edge goes forward is kept, so a search for such a path can stay between their positions, as in
the dynamic topological order of Pearce and Kelly (2006). It gives up after a fixed number of steps, which only costs an
opportunity.

Why there is never a cycle: as long as every edge goes forward in the order, there is none. Let an edge tail → head be
contracted, and F be the clusters that *tail* leads to before the position of *head*. None of them has an edge to
*head*, or the edge is left alone. F moves behind *head*, in the order it had, and *tail* moves to *head*. Edges out of
F then go within F or to where they went, behind *head* and so behind F; edges out of *tail* go to *head*, to F or
behind *head*; edges into *tail* or F come from where they came, which is not behind. So every edge goes forward again.
The same holds with all edges reversed: what leads to *head* from behind *tail* moves before *tail*. Merging clusters
that are neighbours in the order turns no edge around.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine

_BLOCKED = -1

LAST_LABEL = 2**62
"""All labels are below."""


class Edges(NamedTuple):
    """Distinct edges by one of their ends: op v has those from ``offsets[v]`` to ``offsets[v + 1]``."""

    offsets: Int64Array
    ends: Int32Array


class ClusterLimits(NamedTuple):
    """What a cluster may hold at most, how many clusters are few enough, and how long a search may take."""

    size: int
    work: int
    param_bytes: int
    goal: int
    steps: int


@kernel
def contract_edges(
    clusters: Clusters, tails: Int32Array, heads: Int32Array, successors: Edges, predecessors: Edges,
    limits: ClusterLimits,
) -> int:  # fmt: skip
    """Contract edges, in the order in which they come, wherever limits and acyclicity permit.

    Parameters
    ----------
    tails, heads
        Ends of the edges, the best to contract first.

    Returns
    -------
    The number of clusters left: as few as ``limits.goal``, or more.

    Notes
    -----
    O(edges · ``limits.steps``) time at worst; the searches are short where a graph looks like a network.
    """
    count = len(clusters.root)
    found = np.empty(limits.steps, dtype=np.int32)
    seen = np.full(count, -1, dtype=np.int32)
    for e in range(len(tails)):
        if count <= limits.goal:
            break
        tail = find(clusters.root, tails[e])
        head = find(clusters.root, heads[e])
        if tail != head and _fits(clusters, tail, head, limits) and _join(
            clusters, tail, head, successors, predecessors, found, seen, 2 * e
        ):  # fmt: skip
            count -= 1
    return count


@kernel
def contract_neighbours(clusters: Clusters, count: int, limits: ClusterLimits) -> int:
    """Merge clusters with the next one in the order, which is always acyclic, each with one other at most."""
    end = len(clusters.root) + 1
    first = clusters.following[end - 1]
    while first != end and count > limits.goal:
        second = clusters.following[first]
        if second != end and _fits(clusters, first, second, limits):
            unite(clusters, first, second)
            count -= 1
            second = clusters.following[first]
        first = second
    return count


@kernel
def number_clusters(clusters: Clusters, group_of: Int32Array) -> None:
    """Write the number of every op's cluster, counted along the order of the clusters, to *group_of*."""
    end = len(clusters.root) + 1
    cluster = clusters.following[end - 1]
    number = 0
    while cluster != end:
        member = cluster
        while member >= 0:
            group_of[member] = number
            member = clusters.next_member[member]
        number += 1
        cluster = clusters.following[cluster]


@subroutine
def _fits(clusters: Clusters, a: int, b: int, limits: ClusterLimits) -> bool:
    return bool(
        clusters.size[a] + clusters.size[b] <= limits.size
        and clusters.work[a] + clusters.work[b] <= limits.work
        and clusters.param_bytes[a] + clusters.param_bytes[b] <= limits.param_bytes
    )


@subroutine
def _join(
    clusters: Clusters, tail: int, head: int, successors: Edges, predecessors: Edges, found: Int32Array,
    seen: Int32Array, stamp: int,
) -> bool:  # fmt: skip
    """Make one cluster of the two ends of an edge, unless another path joins them or the search gives up."""
    after = _reached(clusters, tail, head, 1, successors, found, seen, stamp)
    if after != _BLOCKED and move(clusters, found[:after], head, clusters.following[head]):
        unite(clusters, head, tail)
        return True
    before = _reached(clusters, head, tail, -1, predecessors, found, seen, stamp + 1)
    if before != _BLOCKED and move(clusters, found[:before], clusters.previous[tail], tail):
        unite(clusters, tail, head)
        return True
    return False


@subroutine
def _reached(
    clusters: Clusters, start: int, stop: int, sign: int, neighbours: Edges, found: Int32Array, seen: Int32Array,
    stamp: int,
) -> int:  # fmt: skip
    """List the clusters that edges lead to from *start* before the position of *stop*.

    Parameters
    ----------
    sign
        1: along the edges; −1: against them.
    found
        Receives the clusters; its length is the number of edges that the search may look at.
    seen
        Marks by *stamp*, which no other search uses.

    Returns
    -------
    How many there are, or :data:`_BLOCKED` if one of them has an edge to *stop* or the search takes too long.
    """
    end = sign * clusters.label[stop]
    steps = 0
    count = 0
    done = -1
    cluster = start
    seen[start] = stamp
    while True:
        member = cluster
        while member >= 0:
            for e in range(neighbours.offsets[member], neighbours.offsets[member + 1]):
                if steps == len(found):
                    return _BLOCKED
                steps += 1
                other = find(clusters.root, neighbours.ends[e])
                if other == stop:
                    if cluster != start:
                        return _BLOCKED
                elif seen[other] != stamp and sign * clusters.label[other] < end:
                    seen[other] = stamp
                    found[count] = other
                    count += 1
            member = clusters.next_member[member]
        done += 1
        if done == count:
            return count
        cluster = found[done]


class Clusters(NamedTuple):
    """Clusters, each called by one of its members, and their order; a state that kernels change.

    The order is a doubly linked list with labels to compare positions by, a simple form of order maintenance: labels
    are spread out far enough at first that what has to move nearly always finds room, and is left where it is if not.

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
