"""Minimum cuts by the kernel for maximum flows, whose answers are checked: flow and cut prove each other."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.flows.kernels.max_flow import max_flow
from mtpp.solvers.recheck.crossings import SINK, SOURCE, Network


def minimum_cut_compiled(network: Network) -> tuple[int, set[int]]:
    """Find a minimum cut.

    Raises
    ------
    RuntimeError
        If the kernel's answer is no flow within the capacities, or another path could be added to it.

    Notes
    -----
    No flow is larger than any cut. So if what is left of the capacities lets nothing more from the source to the sink,
    the nodes that it lets the source reach are a cut of the flow's value, and neither a larger flow nor a smaller cut
    exists, whatever the kernel did.
    """
    if not network.arcs:
        return 0, {SOURCE}
    tails, heads, capacity = (np.array(column, dtype=np.int64) for column in zip(*network.arcs, strict=True))
    ends = np.empty(2 * len(tails), dtype=np.int32)
    starts = np.empty(2 * len(tails), dtype=np.int32)
    ends[::2], ends[1::2] = heads, tails
    starts[::2], starts[1::2] = tails, heads
    residual = np.zeros(len(ends), dtype=np.int64)
    residual[::2] = capacity
    arcs = np.argsort(starts, kind="stable").astype(np.int32)
    offsets = np.zeros(network.nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(starts, minlength=network.nodes), out=offsets[1:])
    max_flow(offsets, arcs, ends, residual, SOURCE, SINK, 2**62)

    flow = capacity - residual[::2]
    if np.any(flow < 0) or np.any(flow > capacity) or np.any(flow != residual[1::2]):
        raise RuntimeError("a flow is not within its capacities")
    balance = np.zeros(network.nodes, dtype=np.int64)
    np.add.at(balance, tails, flow)
    np.subtract.at(balance, heads, flow)
    value = int(balance[SOURCE])
    balance[SOURCE], balance[SINK] = 0, balance[SINK] + value
    side = _reached(offsets, arcs, ends, residual)
    if np.any(balance) or SINK in side:
        raise RuntimeError("a flow is not balanced, or not a maximum one")
    return value, side


def _reached(offsets: Int64Array, arcs: Int32Array, ends: Int32Array, residual: Int64Array) -> set[int]:
    reached = {SOURCE}
    queue = [SOURCE]
    for node in queue:  # grows on the way
        for arc in arcs[offsets[node] : offsets[node + 1]]:
            head = int(ends[arc])
            if residual[arc] > 0 and head not in reached:
                reached.add(head)
                queue.append(head)
    return reached
