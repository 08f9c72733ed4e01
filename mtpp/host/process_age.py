"""Age of this process, as the user's clock sees it."""

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
