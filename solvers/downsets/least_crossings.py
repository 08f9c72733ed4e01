"""Least traffic between the stages of any partition within a limit: minimum cuts in windows of work.

Let stages 1 … k cost at most L each, D_i hold the ops of the first i of them, and n_i be the transfers of the tensors
that stage i makes for later ones. Every such tensor is paid for by stage i and by a later one, so that

* work(D_i) ≤ i·L − n_1 − … − n_i, and
* work(V − D_i) ≤ (k − i)·L − n_i − 2·(n_{i+1} + … + n_{k−1}).

Where numbers μ_i ≤ n_i are known, this gives a window for the work of each D_i, from a_i to b_i. An op is not in D_i if
its ancestors and itself have more work than b_i; it is in D_i if all but its descendants and itself have less than a_i.
What cannot be in D_{i−1} is in stage i if it is in D_i. So n_i is at least the least transfer, over all downsets D that
hold what must be in D_i and nothing that cannot be, of the tensors from ops in D that cannot be in D_{i−1} to ops that
are not in D: a minimum cut. That gives new μ_i, from μ = 0 on, until none grows. If a window is empty, or an n_i is
above L, there is no such partition.

If a partition has fewer stages, the last ones are empty, and the argument holds with D_i = V.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.solvers.downsets.downset_arrays import DownsetArrays
from mtpp.solvers.downsets.kernels.ancestor_work import ancestor_work
from mtpp.solvers.flows.kernels.max_flow import UNLIMITED_CAPACITY, FlowArcs, flow_arcs, flow_scratch, max_flow

ROUNDS = 8
"""Rounds at most; the windows seldom shrink more often than two or three times."""


class CrossingArc(IntEnum):
    """What an arc is: an op draws one that it reads from, makes a tensor, reads one."""

    OP_TO_OP = 0
    MADE = 1
    READ = 2


class CrossingNetwork(NamedTuple):
    """The network of the cuts, one node per op and per tensor; make it once per instance.

    Attributes
    ----------
    arcs
        As :func:`~mtpp.solvers.flows.kernels.max_flow.max_flow` takes them.
    kind, item
        What each arc is that is no reverse, and the op or tensor whose it is, both int32.
    before, after
        Work of each op with its ancestors, and with its descendants, int64, shape (n,).
    """

    arcs: FlowArcs
    kind: Int32Array
    item: Int32Array
    before: Int64Array
    after: Int64Array


def work_around(arrays: DownsetArrays) -> tuple[Int64Array, Int64Array]:
    """Return the work of each op with its ancestors, and with its descendants, two int64 arrays of shape (n,)."""
    n = len(arrays.work)
    reverse = np.arange(n)[::-1]
    tails, heads = n - 1 - np.repeat(np.arange(n), np.diff(arrays.successor_offsets)), n - 1 - arrays.successors
    later = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n), out=later[1:])
    by_tail = heads[np.argsort(tails, kind="stable")].astype(np.int32)
    before = ancestor_work(arrays.work, arrays.predecessor_offsets, arrays.predecessors)
    return before, ancestor_work(arrays.work[reverse], later, by_tail)[reverse]


def crossing_network(arrays: DownsetArrays) -> CrossingNetwork:
    """Return the network of an instance.

    An op draws its predecessors to the side of the source, by arcs without end; a tensor on the side of the sink costs
    its transfer if its producer is on the other, and it is there if one of its consumers is.
    """
    n, m = len(arrays.work), len(arrays.transfer)
    ops, tensors = np.arange(n), np.arange(m)
    degree = np.diff(arrays.predecessor_offsets)
    reads = np.diff(arrays.consumer_offsets)
    reading = n + np.repeat(tensors, reads)
    tails: list[NDArray[Any]] = [np.repeat(ops, degree), arrays.producer, reading]
    ends: list[NDArray[Any]] = [arrays.predecessors, n + tensors, arrays.consumers]
    items: list[NDArray[Any]] = [np.repeat(ops, degree), tensors, np.repeat(tensors, reads)]
    return CrossingNetwork(
        flow_arcs(np.concatenate(tails), np.concatenate(ends), n + m),
        np.repeat(np.arange(3), [len(part) for part in tails]).astype(np.int32),
        np.concatenate(items).astype(np.int32),
        *work_around(arrays),
    )


def least_crossings(arrays: DownsetArrays, network: CrossingNetwork, stages: int, limit: int) -> list[int] | None:
    """Return μ_1 … μ_{k−1}, ticks that at least cross from each stage of a partition within the limit to later ones.

    Returns
    -------
    None if they show that there is no such partition.

    Notes
    -----
    At most :data:`ROUNDS` · (k − 1) maximum flows.
    """
    total = int(arrays.work.sum())
    least = [0] * (stages + 1)
    for _ in range(ROUNDS):
        window = windows(least, total, limit)
        if window is None:
            return None
        lowest, highest = window
        grown = list(least)
        for i in range(1, stages):
            crossing = _least_crossing(arrays, network, highest[i - 1], lowest[i], highest[i], total, limit + 1)
            if crossing > limit:
                return None
            grown[i] = max(grown[i], crossing)
        if grown == least:
            break
        least = grown
    return None if windows(least, total, limit) is None else least[1:stages]


def windows(least: list[int], total: int, limit: int) -> tuple[list[int], list[int]] | None:
    """Return a_0 … a_k and b_0 … b_k; None if one of the windows is empty."""
    stages = len(least) - 1
    until = list(accumulate(least))  # least[0] and least[k] are 0
    highest = [min(total, i * limit - until[i]) for i in range(stages + 1)]
    lowest = [
        max(0, total - (stages - i) * limit + least[i] + 2 * (until[stages] - until[i])) for i in range(stages + 1)
    ]
    if any(a > b for a, b in zip(lowest, highest, strict=True)):
        return None
    return lowest, highest


def _least_crossing(
    arrays: DownsetArrays,
    network: CrossingNetwork,
    before: int,
    lowest: int,
    highest: int,
    total: int,
    enough: int,
) -> int:
    """Return the least transfer of tensors from ops that are surely new to ops outside a downset in the window."""
    inside = total - network.after < lowest
    outside = network.before > highest
    new = network.before > before
    if not inside.any() or not outside.any() or not new.any():
        return 0
    capacity = np.zeros(len(network.kind), dtype=np.int64)
    kind, item = network.kind, network.item
    capacity[(kind == CrossingArc.OP_TO_OP) | (kind == CrossingArc.READ)] = UNLIMITED_CAPACITY
    fill_arcs(capacity, kind == CrossingArc.MADE, item, np.where(new[arrays.producer], arrays.transfer, 0))
    inject, absorb = np.where(inside, enough, 0), np.where(outside, UNLIMITED_CAPACITY, 0)
    return crossing_flow(network, capacity, inject, absorb, enough)[0]


def crossing_flow(
    network: CrossingNetwork, capacity: Int64Array, inject: Int64Array, absorb: Int64Array, enough: int
) -> tuple[int, Int64Array]:
    """Return the value of a flow, which need not be above *enough*, and what goes through each arc, int64.

    Parameters
    ----------
    capacity
        Of each arc, int64.
    inject, absorb
        What each op gives out and takes at most, int64; reduced by the flow.
    """
    arcs = network.arcs
    residual = np.zeros(len(arcs.heads), dtype=np.int64)
    residual[arcs.forward] = capacity
    scratch = flow_scratch(len(arcs.offsets) - 1)
    value = max_flow(arcs, residual, inject, absorb, scratch, enough, whole_phases=True)
    return int(value), residual[arcs.backward]


def fill_arcs(capacity: Int64Array, where: NDArray[np.bool_], item: Int32Array, value: Int64Array) -> None:
    """Give the arcs *where* the values of their items."""
    capacity[where] = value[item[where]]
