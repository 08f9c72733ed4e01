"""Time limits that count from the start of the process, as the user's clock does."""

from __future__ import annotations

import os
import time
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
        Seconds from the start of the process; None: never.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self.limit_s = limit_s
        self._end = None if limit_s is None else time.monotonic() + limit_s - process_age_s()

    @classmethod
    def from_now(cls, limit_s: float | None) -> Deadline:
        """Return the deadline of one part of a run, *limit_s* seconds from this moment; None: never."""
        return cls(None if limit_s is None else process_age_s() + limit_s)

    def share(self, part: float) -> Deadline:
        """Return the moment at which *part* of the time left will be gone; never, if this is never."""
        return Deadline.from_now(None if self.limit_s is None else part * self.remaining_s())

    def remaining_s(self) -> float:
        """Return the seconds left, negative when past, infinite without a limit."""
        return float("inf") if self._end is None else self._end - time.monotonic()

    def expired(self) -> bool:
        """Return whether the time is up."""
        return self.remaining_s() <= 0
