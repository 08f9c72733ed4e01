"""Simulation of a stage graph: earliest starts of all passes, or the passes that wait for each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mtpp.errors import Deadlock
from mtpp.solvers.planners.simulation.kernels.pass_times import pass_times
from mtpp.solvers.planners.simulation.kernels.stage_passes import stage_passes
from mtpp.training.pass_network import PassNetwork
from mtpp.training.pass_order import pass_name
from mtpp.training.simulation import Simulation
from mtpp.training.stage_graph import StageGraph

_REMEDY = "change the orders of passes, or keep more micro-batches in flight"
_MOST_NAMED = 8
"""Passes of a cycle that a message names."""


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
    simulation = Simulation(graph, network, np.empty_like(network.duration), np.empty_like(network.target))
    done = pass_times(
        network.row_start,
        network.duration,
        network.message_start,
        network.target,
        network.channel,
        network.message_duration,
        network.channels,
        simulation.start,
        simulation.sent,
    )
    if done < len(network.duration):
        raise Deadlock(f"passes wait for each other: {_cycle_text(simulation)}", remedy=_REMEDY)
    return simulation


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


def _cycle_text(simulation: Simulation) -> str:
    """Return the names of passes each of which waits for the next one, the first again at the end."""
    cycle = _cycle(simulation)
    names = [_name(simulation, one) for one in cycle]
    if len(names) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        names = [*names[:half], f"… {len(names) - _MOST_NAMED} more …", *names[-half:]]
    return " waits for ".join([names[0], ", which waits for ".join(names[1:])])


def _cycle(simulation: Simulation) -> list[int]:
    """Return a cycle of passes that never start, in which each waits for the next."""
    network, start = simulation.network, simulation.start
    stuck = start < 0
    row = np.searchsorted(network.row_start, np.arange(len(start)), side="right") - 1
    sender = np.repeat(np.arange(len(start)), np.diff(network.message_start))
    needed = {int(target): int(one) for target, one in zip(network.target, sender, strict=True) if stuck[one]}
    heads = {int(row[p]): int(p) for p in reversed(np.flatnonzero(stuck))}
    walk: list[int] = []
    place: dict[int, int] = {}
    at = next(iter(heads.values()))
    while at not in place:
        place[at] = len(walk)
        walk.append(at)
        head = heads[int(row[at])]
        at = head if head != at else needed[at]
    cycle = [*walk[place[at] :], at]
    return [one for one, following in pairwise(cycle) if one != following] + [at]


def _name(simulation: Simulation, number: int) -> str:
    starts = simulation.network.row_start
    s = int(np.searchsorted(starts, number, side="right")) - 1
    stage = simulation.graph.stages[s]
    return f"{pass_name(int(stage.order[number - starts[s]]))} of stage {s}"
