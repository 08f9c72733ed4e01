"""Earliest starts of all passes and messages of a network, or the passes that wait for each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.errors import Deadlock
from mtpp.solvers.planners.simulation.kernels.pass_times import pass_times
from mtpp.solvers.planners.simulation.waiting_cycle import waiting_text
from mtpp.training.pass_network import PassNetwork


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
