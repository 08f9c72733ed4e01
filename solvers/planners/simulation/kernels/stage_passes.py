"""Pass network of a stage graph, filled in by stages and transfers."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import inlined, kernel


@inlined
def _places(order: Int32Array, first: int, last: int, sign: int, places: Int64Array) -> None:
    """Set where each forward (1) or backward (−1) pass of a row is, by micro-batch, from *first* on."""
    for at in range(first, last):
        number = sign * order[at]
        if number > 0:
            places[first // 2 + number - 1] = at


@kernel
def stage_passes(
    row_start: Int64Array,
    order: Int32Array,
    micro_batch: Int64Array,
    times: Int64Array,
    ends: Int64Array,
    ticks: Int64Array,
    duration: Int64Array,
    message_start: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Fill in the passes and messages of a stage graph.

    Parameters
    ----------
    row_start
        Where the passes of each stage begin, int64, shape (stages + 1,).
    order
        Orders of all stages, as in :mod:`mtpp.training.stage_graph`.
    micro_batch
        Samples, int64, shape (stages,).
    times
        Of a forward and of a backward pass, int64, shape (stages, 2).
    ends, ticks
        Source and target of each transfer, and what it takes forward and back, int64, shape (transfers, 2).
    duration, message_start
        Output, as in :class:`mtpp.training.simulation.PassNetwork`.

    Returns
    -------
    Target, channel (2 · t forward along transfer t, 2 · t + 1 back, −1 without) and duration of each message.

    Notes
    -----
    Micro-batch i of b samples has samples from (i − 1) · b + 1 on: a stage with micro-batches of c samples needs it for
    its j if that is at most j · c, and for all later ones; the message is for the first of them in its order.
    O(passes + messages).
    """
    stages = len(micro_batch)
    passes = len(order)
    forward = np.empty(passes // 2, dtype=np.int64)
    backward = np.empty(passes // 2, dtype=np.int64)
    message_start[0] = 0
    for s in range(stages):
        first, last = row_start[s], row_start[s + 1]
        _places(order, first, last, 1, forward)
        _places(order, first, last, -1, backward)
        leaving = 0
        entering = 0
        for t in range(len(ends)):
            leaving += ends[t, 0] == s
            entering += ends[t, 1] == s
        for p in range(first, last):
            if order[p] > 0:
                duration[p] = times[s, 0]
                early = backward[first // 2 + order[p] - 1] < p
                message_start[p + 1] = message_start[p] + leaving + early
            else:
                duration[p] = times[s, 1]
                message_start[p + 1] = message_start[p] + entering
    count = message_start[passes]
    target = np.empty(count, dtype=np.int64)
    channel = np.empty(count, dtype=np.int64)
    message_duration = np.empty(count, dtype=np.int64)
    filled = message_start[:passes].copy()
    for t in range(len(ends)):
        for back in range(2):
            sender, reader = ends[t, back], ends[t, 1 - back]
            ours = backward if back else forward
            begin, theirs = row_start[sender] // 2, row_start[reader] // 2
            size, wanted = micro_batch[sender], micro_batch[reader]
            j = (row_start[reader + 1] - row_start[reader]) // 2
            soonest = np.int64(passes)
            for i in range((row_start[sender + 1] - row_start[sender]) // 2 - 1, -1, -1):
                while j > i * size // wanted:  # j − 1 is the first that needs it
                    j -= 1
                    soonest = min(soonest, (backward if back else forward)[theirs + j])
                p = ours[begin + i]
                target[filled[p]] = soonest
                channel[filled[p]] = 2 * t + back
                message_duration[filled[p]] = ticks[t, back]
                filled[p] += 1
    for i in range(passes // 2):
        if backward[i] < forward[i]:
            p = forward[i]
            target[filled[p]] = backward[i]
            channel[filled[p]] = -1
            message_duration[filled[p]] = 0
            filled[p] += 1
    return target, channel, message_duration
