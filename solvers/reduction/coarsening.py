"""Coarsening: ever smaller instances of one problem, for graphs of a million ops.

A level merges ops that much is transferred between, so that what remains between clusters is cheap to cut, and keeps
clusters small enough that stages can still be balanced. Every partition of a level is a partition of the original
with the same stage costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.contraction import Contraction, merge
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.working_memory import least_peaks
from mtpp.solvers.orders.kernels.edge_weights import reversed_edges, weighted_edges
from mtpp.solvers.reduction.kernels.clustering import (
    LAST_LABEL,
    ClusterLimits,
    Clusters,
    Edges,
    contract_edges,
    contract_neighbours,
    number_clusters,
)

_OPS_PER_CLUSTER = 4
"""Ops of one level that one op of the next stands for at most: more would grow some clusters long before others."""

_SEARCH_STEPS = 64
"""Edges that the search for another path between two ops looks at, in each direction, before it gives up."""

_STALLED = 0.75
"""A level that keeps more than this share of the ops merges ops that no edge joins."""

_NO_PROGRESS = 0.95

_ANY_SIZE = 2**62


def unite_parallel_tensors(instance: Instance) -> Instance:
    """Give tensors with the same producer and the same readers one tensor with their summed transfer and bytes.

    A stage cuts all of them or none, so no stage cost changes; merging ops leaves many such tensors. Only for
    instances with merged ops, whose tensors nobody looks up in the graph any more.

    Notes
    -----
    O(pins·log pins). Tensors are compared by a sum of random numbers, one per reader, and then reader by reader; two
    different ones with equal sums only stay apart.
    """
    m = instance.tensor_count
    if m < 2:
        return instance
    readers = np.diff(instance.pin_offsets) - 1
    tensor = np.repeat(np.arange(m, dtype=np.int64), readers + 1)
    # Readers come in any order; sorted, equal sets of them are equal rows.
    sorted_pins = np.sort(tensor * instance.op_count + instance.pins) % instance.op_count
    numbers = np.random.Generator(np.random.PCG64(0)).integers(0, 2**64, instance.op_count, dtype=np.uint64)
    digest = np.add.reduceat(numbers[instance.pins], instance.pin_offsets[:-1])
    order = np.lexsort((digest, readers, instance.producer))
    same = _equal_to_the_one_before(instance, order, readers, digest, sorted_pins)
    first = order[~same]  # a stable sort: the first of its kind in the graph's order
    kind = np.empty(m, dtype=np.int64)
    kind[order] = first[np.cumsum(~same) - 1]
    boundary = instance.cost.boundary
    own_ticks = instance.cost.transfer if boundary is None else boundary.ticks
    ticks = np.zeros_like(own_ticks)
    size = np.zeros(m, dtype=np.int64)
    for of_link, own in zip(ticks, own_ticks, strict=True):
        np.add.at(of_link, kind, own)
    np.add.at(size, kind, instance.tensor_bytes)
    kept = kind == np.arange(m)
    offsets = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(readers[kept] + 1, out=offsets[1:])
    ticks = ticks[:, kept]
    if boundary is not None:
        boundary = boundary.of_tensors(ticks)
    transfer = ticks if boundary is None else boundary.least
    return replace(
        instance,
        cost=replace(instance.cost, transfer=transfer, boundary=boundary),
        tensor_bytes=size[kept],
        pin_offsets=offsets,
        pins=instance.pins[kept[tensor]],
    )


def _equal_to_the_one_before(
    instance: Instance, order: Int64Array, readers: Int64Array, digest: np.ndarray, sorted_pins: Int64Array
) -> np.ndarray:
    """Return, along *order*, whether a tensor has the producer and the readers of the one before."""
    before, here = order[:-1], order[1:]
    likely = (
        (instance.producer[before] == instance.producer[here])
        & (readers[before] == readers[here])
        & (digest[before] == digest[here])
    )
    pairs = np.flatnonzero(likely)
    length = readers[here[pairs]] + 1
    pair = np.repeat(np.arange(len(pairs)), length)
    step = np.arange(len(pair)) - np.repeat(np.cumsum(length) - length, length)
    mine = sorted_pins[instance.pin_offsets[here[pairs]][pair] + step]
    other = sorted_pins[instance.pin_offsets[before[pairs]][pair] + step]
    differs = np.bincount(pair, weights=mine != other, minlength=len(pairs)) > 0
    same = np.zeros(len(order), dtype=bool)
    same[1 + pairs[~differs]] = True
    return same


def coarsen(instance: Instance, target_ops: int, *, ended: Callable[[], bool] = lambda: False) -> list[Contraction]:
    """Contract an instance again and again, to about *target_ops* ops.

    Parameters
    ----------
    target_ops
        The more per stage, the finer the stages can be balanced: no cluster of several ops has more than twice its
        share of the work, 2 · Σ work / *target_ops*, nor of the parameters where memory is limited, nor more than the
        hard limit on a stage's memory permits.
    ended
        Tells whether to end now, with the levels that there are.

    Returns
    -------
    The levels, the finest first: each is the contraction of the one before, the first that of *instance*. Each has
    about half as many ops; the ops of a level are numbered in a topological order. Empty if there is nothing to
    do; more ops than asked for remain where most of them have more than their share.

    Notes
    -----
    Heavy edges first, as in Herrmann et al. (2019) and Popp et al. (2021): the transfer along an edge over the
    geometric mean of the work at its ends. An edge is contracted if no other path joins its ends; see
    :mod:`mtpp.solvers.reduction.kernels.clustering` for why the graph of the clusters has no cycle. Ops of one tensor
    without a path between them, as in very wide graphs, merge with their neighbours in the order when edges no longer
    do. O(pins·log pins) time per level, O(n + pins) memory for all levels together. The same on every run.
    """
    levels: list[Contraction] = []
    limits = _limits(instance, target_ops)
    while instance.op_count > target_ops and not ended():
        goal = max(target_ops, instance.op_count // 2)
        group_of = _clusters(instance, limits._replace(goal=goal))
        merged = merge(instance, group_of, int(group_of.max()) + 1)
        too_large = _too_large(merged.instance)
        if too_large.any():
            group_of = _dissolved(instance, group_of, too_large)
            merged = merge(instance, group_of, int(group_of.max()) + 1)
        if merged.instance.op_count > _NO_PROGRESS * instance.op_count:
            break
        levels.append(Contraction(unite_parallel_tensors(merged.instance), group_of, instance))
        instance = levels[-1].instance
    return levels


def _limits(instance: Instance, target_ops: int) -> ClusterLimits:
    return ClusterLimits(
        size=_OPS_PER_CLUSTER,
        work=2 * int(instance.work.sum()) // target_ops + 1,
        param_bytes=2 * int(instance.param_bytes.sum()) // target_ops + 1
        if instance.device.limits_memory
        else _ANY_SIZE,
        goal=target_ops,
        steps=_SEARCH_STEPS,
    )


def _too_large(instance: Instance) -> NDArray[np.bool_]:
    """Return which ops no stage may hold, by the hard limit on its memory."""
    limit = instance.device.memory_bytes
    if limit is None:
        return np.zeros(instance.op_count, dtype=bool)
    return instance.param_bytes + least_peaks(instance) > limit


def _dissolved(instance: Instance, group_of: Int32Array, dissolved: NDArray[np.bool_]) -> Int32Array:
    """Return the groups numbered anew, the members of dissolved ones as groups of their own.

    A topological order of the groups, with the members of each in topological order, is one of what is left.
    """
    in_order = instance.order[np.argsort(group_of[instance.order], kind="stable")]
    groups = group_of[in_order]
    begins = np.diff(groups, prepend=-1) > 0
    numbers = np.empty_like(group_of)
    numbers[in_order] = np.cumsum(begins | dissolved[groups]) - 1
    return numbers


def _clusters(instance: Instance, limits: ClusterLimits) -> Int32Array:
    """Return the cluster of each op, numbered in a topological order."""
    n = instance.op_count
    # Copies: an instance's own arrays may be read-only, another type to kernels.
    offsets, tails, heads, weight = weighted_edges(
        n, instance.pin_offsets.copy(), instance.pins.copy(), instance.transfer.copy()
    )
    work = instance.work + max(1.0, float(instance.work.mean()))  # the mean, lest ops without work attract all others
    ranking = np.argsort(-weight / np.sqrt(work[tails] * work[heads]), kind="stable")
    clusters = singletons(instance)
    count = contract_edges(
        clusters,
        tails[ranking],
        heads[ranking],
        Edges(offsets, heads),
        Edges(*reversed_edges(n, tails, heads)),
        limits,
    )
    enough = limits.goal if count > _STALLED * n else count
    contract_neighbours(clusters, count, limits._replace(goal=enough))
    group_of = np.empty(n, dtype=np.int32)
    number_clusters(clusters, group_of)
    return group_of


def singletons(instance: Instance) -> Clusters:
    """Return every op as a cluster of its own, in the instance's order."""
    n = instance.op_count
    line = np.concatenate(([n], instance.order, [n + 1])).astype(np.int32)
    label = np.empty(n + 2, dtype=np.int64)
    label[line] = np.arange(n + 2) * (LAST_LABEL // (n + 2))
    previous = np.full(n + 2, -1, dtype=np.int32)
    following = np.full(n + 2, -1, dtype=np.int32)
    previous[line[1:]] = line[:-1]
    following[line[:-1]] = line[1:]
    return Clusters(
        root=np.arange(n, dtype=np.int32),
        next_member=np.full(n, -1, dtype=np.int32),
        last_member=np.arange(n, dtype=np.int32),
        label=label,
        previous=previous,
        following=following,
        size=np.ones(n, dtype=np.int64),
        work=instance.work.copy(),
        param_bytes=instance.param_bytes.copy(),
    )
