"""Time limits, from now or from the start of this process, whose age is as the user's clock sees it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_IMPORTED_AT = time.monotonic()


def process_age_s() -> float:
    """Return the seconds since this process started, interpreter start-up and imports included.

    Reads the kernel's record of the start on Linux; elsewhere it counts from the import of this module.
    """
    try:
        # The command in field 2 may hold spaces and parentheses; the start time is field 22, in clock ticks.
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _IMPORTED_AT
    return max(age, time.monotonic() - _IMPORTED_AT)


class Deadline:
    """The moment at which a search has to stop.

    Parameters
    ----------
    limit_s
        Seconds; None: never.
    spent_s
        Seconds of them that are gone already.
    clock
        Counts the seconds.
    """

    def __init__(
        self, limit_s: float | None = None, spent_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._end = None if limit_s is None else clock() + limit_s - spent_s

    def share(self, part: float) -> Deadline:
        """Return the moment at which *part* of the time left will be gone; never, if this is never."""
        return Deadline(None if self.limit_s is None else part * self.remaining_s(), clock=self._clock)

    def remaining_s(self) -> float:
        """Return the seconds left, negative when past, infinite without a limit."""
        return float("inf") if self._end is None else self._end - self._clock()

    def expired(self) -> bool:
        """Return whether the time is up."""
        return self.remaining_s() <= 0


def deadline_from_start(limit_s: float | None) -> Deadline:
    """Return the moment at which a limit of so many seconds on the whole command ends; None: never."""
    return Deadline(limit_s, 0.0 if limit_s is None else process_age_s())
