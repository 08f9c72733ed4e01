"""Minimum cuts that hold one op, with what convexity draws into them, and the largest part of a stage by them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.flows.anchored_network import AnchoredNetwork
from mtpp.solvers.flows.kernels.max_flow import UNLIMITED_CAPACITY, FlowScratch, flow_scratch, max_flow
from mtpp.solvers.jit import kernel

FREE, BEFORE, AFTER, APART = 0, 1, 2, 4
"""What an op is to the anchor: it neither leads to it nor follows, or it does; or it shares no stage with it."""


class CutScratch(NamedTuple):
    """Room for one cut at a time.

    Attributes
    ----------
    residual, inject, absorb, flow
        As :func:`~mtpp.solvers.flows.kernels.max_flow.max_flow` takes them.
    relation
        Of each op to the anchor, int32.
    stamp
        Marks of a search, int64.
    """

    residual: Int64Array
    inject: Int64Array
    absorb: Int64Array
    flow: FlowScratch
    relation: Int32Array
    stamp: Int64Array


def cut_scratch(network: AnchoredNetwork, op_count: int) -> CutScratch:
    """Return scratch for cuts in a network."""
    return CutScratch(
        np.zeros(len(network.arcs.heads), dtype=np.int64),
        np.zeros(op_count, dtype=np.int64),
        np.zeros(op_count, dtype=np.int64),
        flow_scratch(len(network.arcs.offsets) - 1),
        np.zeros(op_count, dtype=np.int32),
        np.zeros(op_count, dtype=np.int64),
    )


@kernel
def relate(network: AnchoredNetwork, weight: Int64Array, v: int, limit: int, scratch: CutScratch) -> None:
    """Find what leads to op v, what follows from it, and what shares no stage of weight up to *limit* with it.

    Notes
    -----
    O(n + edges), and for each op that may share a stage the edges among what is between them. A negative *limit*: any.
    Before each op the relations of all ops between it and v are final.
    """
    relation, stamp, stack = scratch.relation, scratch.stamp, scratch.flow.queue
    n = len(weight)
    relation[:] = FREE
    stamp[:] = -1
    for u in range(v - 1, -1, -1):
        drawn = False
        apart = False
        for e in range(network.successor_offsets[u], network.successor_offsets[u + 1]):
            x = network.successors[e]
            if x == v:
                drawn = True
            elif relation[x] != FREE:
                drawn = True
                apart = apart or relation[x] & APART != 0
        if not drawn:
            continue
        relation[u] = BEFORE
        if limit >= 0 and not apart:
            between = weight[v] + weight[u]
            stamp[u] = u
            stack[0] = u
            top = 1
            while top > 0 and between <= limit:
                top -= 1
                z = stack[top]
                for e in range(network.successor_offsets[z], network.successor_offsets[z + 1]):
                    x = network.successors[e]
                    if relation[x] != FREE and stamp[x] != u:
                        stamp[x] = u
                        between += weight[x]
                        stack[top] = x
                        top += 1
            apart = between > limit
        if apart:
            relation[u] = BEFORE | APART
    for u in range(v + 1, n):
        drawn = False
        apart = False
        for e in range(network.predecessor_offsets[u], network.predecessor_offsets[u + 1]):
            x = network.predecessors[e]
            if x == v:
                drawn = True
            elif relation[x] & AFTER:
                drawn = True
                apart = apart or relation[x] & APART != 0
        if not drawn:
            continue
        relation[u] = AFTER
        if limit >= 0 and not apart:
            between = weight[v] + weight[u]
            stamp[u] = u
            stack[0] = u
            top = 1
            while top > 0 and between <= limit:
                top -= 1
                z = stack[top]
                for e in range(network.predecessor_offsets[z], network.predecessor_offsets[z + 1]):
                    x = network.predecessors[e]
                    if relation[x] & AFTER and stamp[x] != u:
                        stamp[x] = u
                        between += weight[x]
                        stack[top] = x
                        top += 1
            apart = between > limit
        if apart:
            relation[u] = AFTER | APART


@kernel
def cut_around(
    network: AnchoredNetwork,
    weight: Int64Array,
    value: Int64Array,
    v: int,
    p: int,
    q: int,
    enough: int,
    scratch: CutScratch,
) -> int:
    """Return the least Σ (p·weight − q·value) + p·transfers cut over the sets that hold op v and all that is drawn.

    Only sets without ops that are apart. Needs :func:`relate` for v. If the sum reaches *enough* it may be too low,
    else ``scratch.flow.level`` tells the least such set.

    Notes
    -----
    Before each op *least* is the sum of the negative terms of earlier ops, and the term of v if it is one of them.
    p · (Σ weight + 2·Σ transfer) + q · Σ value has to be below 2^61.
    """
    residual, inject, absorb, relation = scratch.residual, scratch.inject, scratch.absorb, scratch.relation
    for i in range(len(residual)):
        capacity = network.capacity[i]
        if capacity >= 0:
            residual[i] = capacity * p
        elif capacity == -1:
            residual[i] = UNLIMITED_CAPACITY
        else:
            residual[i] = 0
    least = np.int64(0)
    for u in range(len(weight)):
        inject[u] = 0
        absorb[u] = 0
        terminal = p * weight[u] - q * value[u]
        if u == v:
            least += terminal
            inject[u] = UNLIMITED_CAPACITY
            continue
        if relation[u] & APART:
            absorb[u] = UNLIMITED_CAPACITY
        elif terminal > 0:
            absorb[u] = terminal
        else:
            inject[u] = -terminal
            least += terminal
        if relation[u] & BEFORE:
            for e in range(network.successor_offsets[u], network.successor_offsets[u + 1]):
                x = network.successors[e]
                if x != v and relation[x] & BEFORE:
                    residual[network.successor_arcs[e]] = UNLIMITED_CAPACITY
        elif relation[u] & AFTER:
            for e in range(network.predecessor_offsets[u], network.predecessor_offsets[u + 1]):
                x = network.predecessors[e]
                if x != v and relation[x] & AFTER:
                    residual[network.predecessor_arcs[e]] = UNLIMITED_CAPACITY
    flow = max_flow(network.arcs, residual, inject, absorb, scratch.flow, int(enough - least), False)
    return int(least + flow)
