"""Critical path of a simulated pass network: passes and messages without a gap between them, up to its end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.training.pass_network import PassNetwork


class PathStep(NamedTuple):
    """A pass of a network, or a message, by its number there."""

    message: bool
    number: int


def critical_path(network: PassNetwork, start: Int64Array, sent: Int64Array, last: int | None = None) -> list[PathStep]:
    """Return passes and messages each of which begins when the one before it ends, up to the last pass.

    Parameters
    ----------
    start, sent
        Starts of passes and messages, as :func:`mtpp.solvers.planners.simulation.kernels.pass_times.pass_times` sets
        them; every pass runs.
    last
        The last pass of the path; None: the one that ends with the iteration.

    Notes
    -----
    Of several, the path that comes from the lowest row at the end, unless *last* is given, and, backwards, stays in a
    row where it can, else takes the message with the lowest number; a message comes from its sender where it can, else
    from the message before it on its channel. O(passes + messages).
    """
    row = np.repeat(np.arange(len(network.row_start) - 1), np.diff(network.row_start))
    sender = np.repeat(np.arange(len(start)), np.diff(network.message_start))
    end, arrival = start + network.duration, sent + network.message_duration
    previous = _previous_on_channel(network)
    incoming = np.argsort(network.target, kind="stable")
    first = np.searchsorted(network.target[incoming], np.arange(len(start) + 1))
    if last is None:
        last = int(np.lexsort((np.arange(len(end)), -row, end))[-1])
    path = [PathStep(message=False, number=last)]
    while True:
        step = path[-1]
        at = step.number
        if step.message:
            if sent[at] == end[sender[at]]:
                path.append(PathStep(message=False, number=int(sender[at])))
            else:
                path.append(PathStep(message=True, number=int(previous[at])))
            continue
        if at and row[at - 1] == row[at] and end[at - 1] == start[at]:
            path.append(PathStep(message=False, number=at - 1))
            continue
        arrived = (int(m) for m in incoming[first[at] : first[at + 1]] if arrival[m] == start[at])
        found = next(arrived, None)
        if found is None:
            return path[::-1]
        path.append(PathStep(message=True, number=found))


def _previous_on_channel(network: PassNetwork) -> Int64Array:
    """Return the message before each one on its channel, −1 for none, int64."""
    order = np.argsort(network.channel, kind="stable")
    previous = np.full(len(order), -1, dtype=np.int64)
    same = network.channel[order[1:]] == network.channel[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    return previous
