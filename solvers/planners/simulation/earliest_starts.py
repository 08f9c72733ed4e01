"""Earliest starts of all passes and messages of a network, or the passes that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.errors import Deadlock
from mtpp.solvers.planners.simulation.kernels.pass_times import pass_times
from mtpp.training.pass_network import PassNetwork

_MOST_NAMED = 8
"""Passes of a cycle that a message names."""


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
