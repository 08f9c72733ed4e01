"""Minimum cuts by the kernel for maximum flows, whose answers are checked: flow and cut prove each other."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.flows.kernels.max_flow import FlowArcs, flow_arcs, flow_scratch, max_flow
from mtpp.solvers.recheck.crossings import SINK, SOURCE, Network


def minimum_cut_compiled(network: Network) -> tuple[int, set[int]]:
    """Find a minimum cut.

    Notes
    -----
    No flow is larger than any cut. So if what is left of the capacities lets nothing more from the source to the sink,
    the nodes that it lets the source reach are a cut of the flow's value, and neither a larger flow nor a smaller cut
    exists, whatever the kernel did.
    """
    if not network.arcs:
        return 0, {SOURCE}
    tails, heads, capacity = (np.array(column, dtype=np.int64) for column in zip(*network.arcs, strict=True))
    arcs = flow_arcs(tails, heads, network.nodes)
    residual = np.zeros(len(arcs.heads), dtype=np.int64)
    residual[arcs.forward] = capacity
    inject, absorb = np.zeros(network.nodes, dtype=np.int64), np.zeros(network.nodes, dtype=np.int64)
    inject[SOURCE] = absorb[SINK] = 2**63 - 1
    scratch = flow_scratch(network.nodes)
    max_flow(arcs.offsets, arcs.heads, arcs.twins, residual, inject, absorb, *scratch, 2**62, whole_phases=True)

    flow = capacity - residual[arcs.forward]
    if np.any(flow < 0) or np.any(flow > capacity) or np.any(flow != residual[arcs.backward]):
        raise RuntimeError("a flow is not within its capacities")
    balance = np.zeros(network.nodes, dtype=np.int64)
    np.add.at(balance, tails, flow)
    np.subtract.at(balance, heads, flow)
    value = int(balance[SOURCE])
    balance[SOURCE], balance[SINK] = 0, balance[SINK] + value
    side = _reached(arcs, residual)
    if np.any(balance) or SINK in side:
        raise RuntimeError("a flow is not balanced, or not a maximum one")
    return value, side


def _reached(arcs: FlowArcs, residual: Int64Array) -> set[int]:
    reached = {SOURCE}
    queue = [SOURCE]
    for node in queue:  # grows on the way
        for arc in range(arcs.offsets[node], arcs.offsets[node + 1]):
            head = int(arcs.heads[arc])
            if residual[arc] > 0 and head not in reached:
                reached.add(head)
                queue.append(head)
    return reached
