"""A time limit on work that does not look at the clock: reading, proofs in plain Python, shape inference."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mtpp.host.deadline import Deadline

_LONGEST_S = 1e8
"""Seconds that a timer of the system takes."""

_AFTER_AN_IMPORT_S = 0.002
"""Seconds until the alarm rings again, where it rang in the midst of an import."""


class TimeIsUp(BaseException):
    """The time limit passed in the midst of work; not an :class:`Exception`, so that nothing on the way keeps it."""


@contextmanager
def alarm(deadline: Deadline) -> Iterator[None]:
    """Raise :class:`TimeIsUp` inside the block once *deadline* has passed.

    The signal SIGALRM does it, between two bytecodes of Python: a compiled loop that looks at nothing runs on to its
    end first, and so does an import, of which an exception in its midst would make another, or nothing. Outside the
    main thread, without a limit, and on systems without that signal the block runs as it is, and so it does where the
    caller has set a timer that is due before. A later one goes on afterwards.
    """
    seconds = min(deadline.remaining_s(), _LONGEST_S)
    possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    others_s = signal.getitimer(signal.ITIMER_REAL)[0] if possible else 0.0
    if not possible or seconds >= _LONGEST_S or 0 < others_s <= seconds:
        yield
        return
    armed = True
    began, others = time.monotonic(), (0.0, 0.0)

    def ring(number: int, frame: FrameType | None) -> None:
        if armed and _imports(frame):
            signal.setitimer(signal.ITIMER_REAL, _AFTER_AN_IMPORT_S)
        elif armed:
            raise TimeIsUp

    previous = signal.signal(signal.SIGALRM, ring)
    try:
        others = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        yield
    finally:
        armed = False  # a signal that is under way already must not strike what follows
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
        if others[0]:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, others[0] - (time.monotonic() - began)), others[1])


def _imports(frame: FrameType | None) -> bool:
    """Return whether *frame* is a part of importing a module."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
