"""Simulation of stage graphs and timed schedules: earliest starts of passes, or those that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.errors import Deadlock
from mtpp.solvers.planners.simulation.kernels.pass_times import pass_times
from mtpp.solvers.planners.simulation.kernels.stage_passes import stage_passes
from mtpp.training.pfeife.schedule import Pass
from mtpp.training.pfeife.schedule_run import ScheduleRun
from mtpp.training.pfeife.timed_schedule import TimedSchedule
from mtpp.training.simulation import AT_ONCE, PassNetwork, Simulation
from mtpp.training.stage_graph import StageGraph, pass_name

_REMEDY = "change the orders of passes, or keep more micro-batches in flight"

_SCHEDULE_REMEDY = "change the order of the passes, or prefetch less"

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


def simulate_schedule(timed: TimedSchedule) -> ScheduleRun:
    """Let every pass start as soon as its device is free and what it needs has arrived.

    Raises
    ------
    Deadlock
        If passes wait for each other; the text names them.

    Notes
    -----
    O(passes + messages).
    """
    network, links = schedule_network(timed)
    names = [one.name for row in timed.schedule.rows for one in row]
    start, sent = earliest_starts(network, names.__getitem__, _SCHEDULE_REMEDY)
    return ScheduleRun(network, start, sent, timed, links)


def schedule_network(timed: TimedSchedule) -> tuple[PassNetwork, list[tuple[int, int]]]:
    """Return the network of a schedule, a row for each device, and the devices at the ends of each channel.

    Hand-overs take turns on the channel of their two devices, whether tensors or gradients. A backward pass waits for
    its forward pass, a half for weights for that for inputs, and passes for their dependencies, without a channel.
    """
    schedule = timed.schedule
    passes = [one for row in schedule.rows for one in row]
    number = {one: p for p, one in enumerate(passes)}
    later: dict[Pass, list[Pass]] = {}
    for before, after in schedule.dependencies:
        later.setdefault(before, []).append(after)
    messages: list[tuple[int, tuple[int, int] | None, int]] = []
    message_start = [0]
    for one in passes:
        here = one.stage % schedule.devices
        for target, ticks in timed.messages(one):
            messages.append((number[target], (here, target.stage % schedule.devices), ticks))
        for target in (*timed.followers(one), *later.get(one, ())):
            messages.append((number[target], None, 0))
        message_start.append(len(messages))
    links = sorted({link for _, link, _ in messages if link is not None})
    channel = {link: c for c, link in enumerate(links)}
    network = PassNetwork(
        np.cumsum([0, *map(len, schedule.rows)], dtype=np.int64),
        np.array([timed.ticks(one) for one in passes], dtype=np.int64),
        np.array(message_start, dtype=np.int64),
        np.array([target for target, _, _ in messages], dtype=np.int64),
        np.array([AT_ONCE if link is None else channel[link] for _, link, _ in messages], dtype=np.int64),
        np.array([ticks for _, _, ticks in messages], dtype=np.int64),
        len(links),
    )
    return network, links


def waiting_text(network: PassNetwork, start: Int64Array, name: Callable[[int], str]) -> str:
    """Return the names of passes each of which waits for the next one, the first again at the end.

    Parameters
    ----------
    start
        Of each pass, −1 where it never starts; some do not.
    name
        Of a pass by its number.
    """
    names = [name(one) for one in _cycle(network, start)]
    if len(names) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        names = [*names[:half], f"… {len(names) - _MOST_NAMED} more …", *names[-half:]]
    return " waits for ".join([names[0], ", which waits for ".join(names[1:])])


def _cycle(network: PassNetwork, start: Int64Array) -> list[int]:
    """Return a cycle of passes that never start, in which each waits for the next."""
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


def earliest_starts(network: PassNetwork, name: Callable[[int], str], remedy: str) -> tuple[Int64Array, Int64Array]:
    """Return when each pass starts and when each message is sent, in ticks, int64.

    Parameters
    ----------
    name
        Of a pass by its number, for messages.
    remedy
        Against passes that wait for each other.

    Notes
    -----
    O(passes + messages).
    """
    start, sent = np.empty_like(network.duration), np.empty_like(network.target)
    done = pass_times(
        network.row_start,
        network.duration,
        network.message_start,
        network.target,
        network.channel,
        network.message_duration,
        network.channels,
        start,
        sent,
    )
    if done < len(network.duration):
        raise Deadlock(f"passes wait for each other: {waiting_text(network, start, name)}", remedy=remedy)
    return start, sent
