"""Cores of this machine that the process may use."""

from __future__ import annotations

import os
import sys


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
