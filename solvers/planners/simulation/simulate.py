"""Simulation of a stage graph: earliest starts of all passes, or the passes that wait for each other."""

from __future__ import annotations

import numpy as np

from mtpp.solvers.planners.simulation.earliest_starts import earliest_starts
from mtpp.solvers.planners.simulation.kernels.stage_passes import stage_passes
from mtpp.training.pass_network import PassNetwork
from mtpp.training.pass_order import pass_name
from mtpp.training.simulation import Simulation
from mtpp.training.stage_graph import StageGraph

_REMEDY = "change the orders of passes, or keep more micro-batches in flight"


def simulate(graph: StageGraph) -> Simulation:
    """Let every pass start as soon as its stage is free and what it needs has arrived.

    Raises
    ------
    Deadlock
        If passes wait for each other; the text names them.

    Notes
    -----
    O(passes + messages).
    """
    network = pass_network(graph)
    start, sent = earliest_starts(network, lambda number: _name(graph, network, number), _REMEDY)
    return Simulation(network, start, sent, graph)


def pass_network(graph: StageGraph) -> PassNetwork:
    """Return the network of a stage graph: a row for each stage, two channels for each transfer.

    Forward pass j of a stage waits for all forward passes of each predecessor that have samples up to the end of its
    micro-batch j; backward passes wait for those of successors in the same way, and for their own forward pass.
    """
    stages, transfers = graph.stages, graph.transfers
    order = np.concatenate([stage.order for stage in stages])
    row_start = np.cumsum([0, *(len(stage.order) for stage in stages)], dtype=np.int64)
    duration = np.empty(len(order), dtype=np.int64)
    message_start = np.empty(len(order) + 1, dtype=np.int64)
    messages = stage_passes(
        row_start,
        order,
        np.array([stage.micro_batch for stage in stages], dtype=np.int64),
        np.array([[stage.forward_ticks, stage.backward_ticks] for stage in stages], dtype=np.int64),
        np.array([[one.source, one.target] for one in transfers], dtype=np.int64).reshape(-1, 2),
        np.array([[one.forward_ticks, one.backward_ticks] for one in transfers], dtype=np.int64).reshape(-1, 2),
        duration,
        message_start,
    )
    return PassNetwork(row_start, duration, message_start, *messages, channels=2 * len(transfers))


def _name(graph: StageGraph, network: PassNetwork, number: int) -> str:
    s = int(np.searchsorted(network.row_start, number, side="right")) - 1
    return f"{pass_name(int(graph.stages[s].order[number - network.row_start[s]]))} of stage {s}"
