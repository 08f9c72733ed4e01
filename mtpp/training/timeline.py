"""Timeline of a simulated pipeline: what runs when, row by row, as charts and traces draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

FORWARD, BACKWARD, SYNCHRONISATION, TRANSFER = "forward", "backward", "synchronisation", "transfer"
BACKWARD_INPUT, BACKWARD_WEIGHT = "backward_input", "backward_weight"

KINDS = (FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, SYNCHRONISATION, TRANSFER)
"""Of bars."""


class Bar(NamedTuple):
    """A pass, a synchronisation or a transfer, from *start* to *end* in ticks.

    *kind* is one of :data:`KINDS`, *label* the number of its micro-batch (empty: none), *loop* which of its device's
    stages it is of, counted from 0.
    """

    kind: str
    name: str
    label: str
    start: int
    end: int
    loop: int = 0


@dataclass(frozen=True)
class TimelineRow:
    """Bars of a stage, a device or a channel, none of which overlap, in their order.

    Attributes
    ----------
    short, label
        Names of the row, the second with what its file calls it.
    """

    short: str
    label: str
    bars: Sequence[Bar]


class Stretch(NamedTuple):
    """Part of the critical path on a row of passes, from *start* to *end* in ticks."""

    row: int
    start: int
    end: int


class RowMemory(NamedTuple):
    """Bytes of each device of a row: *fixed* all the time, *kept* for a micro-batch in flight, loop by loop.

    *limit* is what it has; None: nothing says that.
    """

    fixed: int
    kept: Sequence[int]
    limit: int | None = None


@dataclass(frozen=True, eq=False)
class Timeline:
    """Rows of passes, and channels with their transfers.

    Attributes
    ----------
    iteration
        In ticks.
    ticks_per_unit
        Ticks in a unit of the file's times; a tick is a picosecond if *timed*.
    loops
        Stages of a row, at most.
    critical
        Passes of the critical path from the first to the last one; empty where none is known.
    memory
        Of each row; empty where it is not known.
    """

    name: str
    iteration: int
    ticks_per_unit: int
    timed: bool
    rows: Sequence[TimelineRow]
    channels: Sequence[TimelineRow]
    loops: int = 1
    critical: Sequence[Stretch] = ()
    memory: Sequence[RowMemory] = ()
