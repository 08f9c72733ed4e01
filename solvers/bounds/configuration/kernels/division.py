"""Families divided until none of their stages can hold more than one whole of some weights."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.configuration.kernels.family_closure import close_family
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_families import Families, Fill, SetCache, fill_family, room_to_fill
from mtpp.solvers.bounds.configuration.kernels.stage_network import (
    FREE,
    IN,
    OUT,
    Int8Array,
    StageNetwork,
    work_and_cut,
)
from mtpp.solvers.jit import kernel

LEAF, NONE = -1, -2
"""In place of the op that splits a family: it is bounded as it is, or holds no set."""

DIVIDED, STOPPED, FOUND, STUCK = 0, 1, 2, 3
"""How a division ended: well, for want of room, at a stage that holds more than 1, or with nothing left to split."""

_PLACES = 24
_TOLERANCE = 1e-6
FULL = 1.0 + 1e-6
"""What a family may hold: weights add up to a little more than that times k, and values are rounded up."""

_BY_WORK = 0.3
"""What the work of an op counts beside its weight when a family is split."""


@kernel
def splitting_op(mixture: FloatArray, weight: FloatArray, work: Int64Array, state: Int8Array, most: float) -> int:
    """Return the op that a mixture of sets holds by half and that matters most, −1 if it holds all or nothing of each.

    Parameters
    ----------
    mixture
        Share of each op, float64, shape (n,).
    weight, work
        Of each op.
    state
        What is known of each op in the family.
    most
        Work of a stage and what it cuts at most.
    """
    best, op = 1e-12, -1
    for u in range(len(mixture)):
        if state[u] == FREE:
            score = min(mixture[u], 1.0 - mixture[u]) * (weight[u] + _BY_WORK * work[u] / most + 1e-9)
            if score > best:
                best, op = score, u
    return op


@kernel
def divide_family(
    network: StageNetwork, weight: FloatArray, most: int, least: int, scale: float, state: Int8Array,
    multipliers: FloatArray, deepest: int, op: Int32Array, budget: FloatArray, rest: FloatArray, found: Int8Array,
    stop: Int64Array,
) -> tuple[int, int]:  # fmt: skip
    """Split a family, and what comes of it, depth first, until none of the parts can hold more than 1.

    Parameters
    ----------
    weight
        Of each op, float64, shape (n,).
    most, least
        Of the work of a set and what it cuts, and of its work less what it cuts.
    scale
        As :func:`~mtpp.solvers.bounds.configuration.kernels.stage_families.fill_families` takes it.
    state
        Of the family, int8, shape (n,).
    multipliers
        Of budget and rest, to begin with, float64, shape (2,).
    deepest
        Splits one below the other at most.
    op, budget, rest
        Results: the tree in preorder, with the part with the op before that without it. The op of each split, or
        ``LEAF`` or ``NONE``, int32; multipliers of each leaf, float64. As many nodes as there is room for.
    found
        Result: 1 for the ops of a stage that holds more than 1, int8, shape (n,).
    stop
        The work stops when its item is not 0, int64, shape (1,).

    Returns
    -------
    Number of nodes, and how it ended.

    Notes
    -----
    A minimum cut or more per node; O(depth · n) memory.
    """
    n, m = len(network.work), len(network.transfer)
    families = Families(
        np.empty((1, n), dtype=np.int8),
        np.empty((1, n), dtype=np.int8),
        np.empty((1, n), dtype=np.int8),
        np.empty((1, m), dtype=np.int8),
    )
    cache = SetCache(
        np.empty((1, _PLACES, n), dtype=np.int8),
        np.empty((1, _PLACES), dtype=np.int64),
        np.empty((1, _PLACES), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    fill = Fill(
        np.empty(1, dtype=np.float64),
        np.empty(1, dtype=np.float64),
        np.empty(1, dtype=np.float64),
        np.empty((1, n), dtype=np.float64),
    )
    scratch = room_to_fill(network, _PLACES)
    waiting = np.empty((n + 2, n), dtype=np.int8)
    depth = np.zeros(n + 2, dtype=np.int64)
    begin = np.empty((n + 2, 2), dtype=np.float64)
    waiting[0] = state
    begin[0, 0], begin[0, 1] = multipliers[0], multipliers[1]
    left, count = 1, 0
    while left > 0:
        if stop[0] != 0 or count == len(op):
            return count, STOPPED
        left -= 1
        for u in range(n):
            families.state[0, u] = waiting[left, u]
        fill.budget[0], fill.rest[0] = begin[left, 0], begin[left, 1]
        possible = close_family(
            network, most, least, families.state[0], families.before[0], families.after[0], families.apart[0],
        )  # fmt: skip
        if not possible:
            op[count] = NONE
            count += 1
            continue
        cache.met[0] = 0
        fill_family(
            network, families, 0, weight, float(most), float(least), scale, _TOLERANCE, 0.0, FULL, cache, fill, scratch
        )
        if fill.value[0] <= FULL:
            op[count] = LEAF
            budget[count], rest[count] = fill.budget[0], fill.rest[0]
            count += 1
            continue
        split = splitting_op(fill.mixture[0], weight, network.work, families.state[0], float(most))
        if split < 0:
            for u in range(n):
                found[u] = 1 if fill.mixture[0, u] > 0.5 else 0
            split = _breaking(network, found, families.state[0])
            if split < 0:
                total = 0.0
                for u in range(n):
                    total += weight[u] * found[u]
                work, cut = work_and_cut(network, found, families.apart[0])
                if total > FULL and work + cut <= most and work - cut >= least:
                    return count, FOUND
                for u in range(n):
                    if families.state[0, u] == FREE and (split < 0 or weight[u] > weight[split]):
                        split = u
            if split < 0:
                return count, STUCK
        if depth[left] >= deepest:
            return count, STUCK
        op[count] = split
        count += 1
        below = depth[left] + 1
        for value in (OUT, IN):
            depth[left] = below
            for u in range(n):
                waiting[left, u] = families.state[0, u]
            waiting[left, split] = value
            begin[left, 0], begin[left, 1] = fill.budget[0], fill.rest[0]
            left += 1
    return count, DIVIDED


@kernel
def _breaking(network: StageNetwork, inside: Int8Array, state: Int8Array) -> int:
    """Return a free op because of which a set is not convex, −1 if there is none.

    It is on a path between two ops of the set and not in it, or in the set and joined to one left out like that.
    """
    n = len(inside)
    for x in range(n):
        if inside[x] == 1:
            continue
        before = False
        after = False
        for u in range(n):
            if inside[u] == 1:
                before |= network.reaches[u, x] == 1
                after |= network.reaches[x, u] == 1
        if before and after:
            if state[x] == FREE:
                return x
            for u in range(n):
                joined = network.reaches[u, x] == 1 or network.reaches[x, u] == 1
                if inside[u] == 1 and state[u] == FREE and joined:
                    return u
    return -1
