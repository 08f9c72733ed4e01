"""Simulation of a timed schedule: devices with several stages, and channels between pairs of devices."""

from __future__ import annotations

import numpy as np

from mtpp.solvers.planners.simulation.earliest_starts import earliest_starts
from mtpp.training.pass_network import AT_ONCE, PassNetwork
from mtpp.training.pfeife.passes import Pass
from mtpp.training.pfeife.schedule_run import ScheduleRun
from mtpp.training.pfeife.timed_schedule import TimedSchedule

_REMEDY = "change the order of the passes, or prefetch less"


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
    start, sent = earliest_starts(network, names.__getitem__, _REMEDY)
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
