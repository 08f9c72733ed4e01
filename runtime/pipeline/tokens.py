"""Messages between stages: a batch lies in its slot, a slot is free again. A dead peer is heard at once.

Batches go through every ring in order, so a byte without content says all; the slot is the number of the batch modulo
that of slots. A pipe carries the bytes: the kernel ends it when the process at its other end dies, whatever killed it,
so nobody waits for the dead.

Waking a process that sleeps costs both sides tens of microseconds, as much as small stages take altogether. Where every
process has a core of its own, one that waits therefore looks again and again for a while before it sleeps.
"""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass

SPIN_S = 200e-6
"""Seconds of looking before sleeping: a few times as long as it takes to fall asleep and to be woken."""


class PeerGone(Exception):
    """The process at the other end of a pipe has ended before its time."""


@dataclass(frozen=True)
class Arrivals:
    """What a consumer has of its link to one producer: descriptors, and how many slots the ring has."""

    filled: int
    free: int
    slots: int

    def wait(self, spin_s: float = 0.0) -> float:
        """Wait until the next batch is there; return the seconds of that, 0 where it is there already.

        Parameters
        ----------
        spin_s
            Seconds of looking before sleeping.
        """
        return _take(self.filled, spin_s)

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

    def wait(self, batch: int, spin_s: float = 0.0) -> float:
        """Wait until the slot of a batch is free: from the start, or because the consumer gave it back.

        Seconds as those of :meth:`Arrivals.wait`.
        """
        return _take(self.free, spin_s) if batch >= self.slots else 0.0

    def tell(self) -> None:
        """Say that the next batch is there."""
        _give(self.filled)


def make_link(slots: int) -> tuple[Departures, Arrivals]:
    """Return both ends of a new link from a producer to a consumer."""
    filled_out, filled_in = os.pipe()
    free_out, free_in = os.pipe()
    for end in (filled_out, free_out):
        os.set_blocking(end, False)
    return Departures(filled_in, free_out, slots), Arrivals(filled_out, free_in, slots)


def _take(descriptor: int, spin_s: float) -> float:
    if _there(descriptor):
        return 0.0
    began = time.monotonic()
    asleep = select.poll()
    asleep.register(descriptor, select.POLLIN)
    while not _there(descriptor):
        if time.monotonic() - began >= spin_s:
            asleep.poll()
    return time.monotonic() - began


def _there(descriptor: int) -> bool:
    """Take a byte if there is one."""
    try:
        if not os.read(descriptor, 1):
            raise PeerGone
    except BlockingIOError:
        return False
    return True


def _give(descriptor: int) -> None:
    try:
        os.write(descriptor, b"\0")
    except BrokenPipeError:
        raise PeerGone from None
