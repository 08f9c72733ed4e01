"""Pass network: passes in rows that run one after the other, and messages between passes over channels.

A simulation needs no more than this. A row is what runs one pass at a time: a stage, or a device with several stages.
A message leaves when its pass ends, takes its turn on its channel, and the pass that it is for waits for it. All
messages of a channel come from one row, so that first come, first served is the order of that row.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.array_types import Int64Array

AT_ONCE = -1
"""Channel of a message that takes no turn: it is there when its pass ends."""


@dataclass(frozen=True, eq=False)
class PassNetwork:
    """Passes, numbered row by row in the order in which they run, and messages, numbered by the passes that send them.

    Attributes
    ----------
    row_start
        Where the passes of each row begin, int64, shape (rows + 1,).
    duration
        Of each pass in ticks, int64.
    message_start
        Where the messages of each pass begin, int64, shape (passes + 1,).
    target
        The pass that waits for each message, int64.
    channel
        Of each message, int64, or :data:`AT_ONCE`.
    message_duration
        Ticks that each message keeps its channel busy, int64.
    channels
        How many there are.
    """

    row_start: Int64Array
    duration: Int64Array
    message_start: Int64Array
    target: Int64Array
    channel: Int64Array
    message_duration: Int64Array
    channels: int
