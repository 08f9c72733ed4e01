"""Earliest starts of passes and messages, in one sweep over a pass network."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel


@kernel
def pass_times(
    row_start: Int64Array,
    duration: Int64Array,
    message_start: Int64Array,
    target: Int64Array,
    channel: Int64Array,
    message_duration: Int64Array,
    channels: int,
    start: Int64Array,
    sent: Int64Array,
) -> int:
    """Set when each pass starts and when each message is sent, −1 where that never happens; return how many passes run.

    Parameters
    ----------
    row_start, duration, message_start, target, channel, message_duration, channels
        As in :class:`mtpp.training.simulation.PassNetwork`.
    start, sent
        Output: ticks, int64, a place for each pass and for each message.

    Notes
    -----
    A pass runs once it is the next of its row and all messages for it have arrived. No clock is needed: every channel
    is filled in the order of one row. O(passes + messages).
    """
    rows = len(row_start) - 1
    passes = len(duration)
    start[:] = -1
    sent[:] = -1
    row = np.empty(passes, dtype=np.int64)
    for r in range(rows):
        row[row_start[r] : row_start[r + 1]] = r
    waiting = np.zeros(passes, dtype=np.int64)
    for m in range(len(target)):
        waiting[target[m]] += 1
    ready = np.zeros(passes, dtype=np.int64)
    free = np.zeros(rows, dtype=np.int64)
    channel_free = np.zeros(max(1, channels), dtype=np.int64)
    head = row_start[:rows].copy()
    queue = np.arange(rows)[::-1].copy()
    queued = np.ones(rows, dtype=np.bool_)
    left = rows
    done = 0
    while left > 0:
        left -= 1
        r = queue[left]
        queued[r] = False
        while head[r] < row_start[r + 1] and waiting[head[r]] == 0:
            p = head[r]
            begin = max(free[r], ready[p])
            end = begin + duration[p]
            start[p] = begin
            free[r] = end
            head[r] += 1
            done += 1
            for m in range(message_start[p], message_start[p + 1]):
                c = channel[m]
                leaves = end if c < 0 else max(end, channel_free[c])
                arrives = leaves + message_duration[m]
                if c >= 0:
                    channel_free[c] = arrives
                sent[m] = leaves
                t = target[m]
                ready[t] = max(ready[t], arrives)
                waiting[t] -= 1
                other = row[t]
                if waiting[t] == 0 and head[other] == t and not queued[other]:
                    queued[other] = True
                    queue[left] = other
                    left += 1
    return done
