"""Edges between ops, once each, with what is transferred along them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel


@kernel
def weighted_edges(
    op_count: int, pin_offsets: Int64Array, pins: Int32Array, transfer: Int64Array
) -> tuple[Int64Array, Int32Array, Int32Array, NDArray[np.float64]]:
    """Return the distinct edges, and what is transferred along each.

    Returns
    -------
    Offsets by producer, int64, shape (n + 1,); tails and heads, int32; and the weight, float64: the transfer of each
    tensor is spread evenly over its readers.
    """
    tensor_count = len(transfer)
    made_offsets = np.zeros(op_count + 2, dtype=np.int64)
    for t in range(tensor_count):
        made_offsets[pins[pin_offsets[t]] + 2] += 1
    for v in range(op_count):
        made_offsets[v + 2] += made_offsets[v + 1]
    made = np.empty(tensor_count, dtype=np.int32)
    for t in range(tensor_count):
        producer = pins[pin_offsets[t]]
        made[made_offsets[producer + 1]] = t
        made_offsets[producer + 1] += 1

    most = len(pins) - tensor_count
    offsets = np.zeros(op_count + 1, dtype=np.int64)
    tails = np.empty(most, dtype=np.int32)
    heads = np.empty(most, dtype=np.int32)
    weight = np.zeros(most, dtype=np.float64)
    place = np.full(op_count, -1, dtype=np.int64)
    count = 0
    for u in range(op_count):
        for i in range(made_offsets[u], made_offsets[u + 1]):
            t = made[i]
            begin = pin_offsets[t] + 1
            end = pin_offsets[t + 1]
            for p in range(begin, end):
                v = pins[p]
                if place[v] < offsets[u]:
                    place[v] = count
                    tails[count] = u
                    heads[count] = v
                    count += 1
                weight[place[v]] += transfer[t] / (end - begin)
        offsets[u + 1] = count
    return offsets, tails[:count].copy(), heads[:count].copy(), weight[:count].copy()


@kernel
def reversed_edges(op_count: int, tails: Int32Array, heads: Int32Array) -> tuple[Int64Array, Int32Array]:
    """Return the edges by their heads, as offsets and tails."""
    offsets = np.zeros(op_count + 2, dtype=np.int64)
    for head in heads:
        offsets[head + 2] += 1
    for v in range(op_count):
        offsets[v + 2] += offsets[v + 1]
    ends = np.empty(len(tails), dtype=np.int32)
    for e in range(len(tails)):
        ends[offsets[heads[e] + 1]] = tails[e]
        offsets[heads[e] + 1] += 1
    return offsets[: op_count + 1].copy(), ends
