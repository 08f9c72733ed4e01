"""A time limit on work that does not look at the clock: reading, proofs in plain Python, shape inference."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mtpp.host.deadline import Deadline


class TimeIsUp(BaseException):
    """The time limit passed in the midst of work; not an :class:`Exception`, so that nothing on the way keeps it."""


@contextmanager
def alarm(deadline: Deadline) -> Iterator[None]:
    """Raise :class:`TimeIsUp` inside the block once *deadline* has passed.

    The signal SIGALRM does it, between two bytecodes of Python: a compiled loop that looks at nothing runs on to its
    end first. Outside the main thread, without a limit, and on systems without that signal the block runs as it is.
    Blocks do not nest.
    """
    seconds = deadline.remaining_s()
    possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not possible or math.isinf(seconds):
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise TimeIsUp

    previous = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        yield
    finally:
        armed = False  # a signal that is under way already must not strike what follows
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
