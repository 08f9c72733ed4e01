"""Messages between stages: a batch lies in its slot, a slot is free again. A dead peer is heard at once.

Batches go through every ring in order, so a byte without content says all; the slot is the number of the batch modulo
that of slots. A pipe carries the bytes: the kernel ends it when the process at its other end dies, whatever killed it,
so nobody waits for the dead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


class PeerGone(Exception):
    """The process at the other end of a pipe has ended before its time."""


@dataclass(frozen=True)
class Arrivals:
    """What a consumer has of its link to one producer: descriptors, and how many slots the ring has."""

    filled: int
    free: int
    slots: int

    def wait(self) -> None:
        """Wait until the next batch is there."""
        _take(self.filled)

    def release(self, batch: int, batches: int) -> None:
        """Give the slot of a batch back, if any of the *batches* in all will need it."""
        if batch + self.slots < batches:
            _give(self.free)


@dataclass(frozen=True)
class Departures:
    """What a producer has of its link to one consumer."""

    filled: int
    free: int
    slots: int

    def wait(self, batch: int) -> None:
        """Wait until the slot of a batch is free: from the start, or because the consumer gave it back."""
        if batch >= self.slots:
            _take(self.free)

    def tell(self) -> None:
        """Say that the next batch is there."""
        _give(self.filled)


def make_link(slots: int) -> tuple[Departures, Arrivals]:
    """Return both ends of a new link from a producer to a consumer."""
    filled_out, filled_in = os.pipe()
    free_out, free_in = os.pipe()
    return Departures(filled_in, free_out, slots), Arrivals(filled_out, free_in, slots)


def _take(descriptor: int) -> None:
    if not os.read(descriptor, 1):
        raise PeerGone


def _give(descriptor: int) -> None:
    try:
        os.write(descriptor, b"\0")
    except BrokenPipeError:
        raise PeerGone from None
