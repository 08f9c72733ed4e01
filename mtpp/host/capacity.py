"""Processor, cores and free memory of this machine, and the share that a search takes where nobody says."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

_SHARE = 2
_FALLBACK_BYTES = 2**30


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_budget() -> int:
    """Return half of the memory that is free, in bytes: of the machine, or of the container if that has less."""
    free = free_bytes()
    return _FALLBACK_BYTES if free is None else free // _SHARE


def free_bytes() -> int | None:
    """Return the memory that is free, in bytes: of the machine, or of the container; None if nothing tells."""
    free = [size for size in (_free_on_machine(), _free_in_container()) if size is not None]
    return max(0, min(free)) if free else None


def memory_bytes() -> int | None:
    """Return the memory of the machine, or of the container if that has less, in bytes; None if nothing tells."""
    sizes: list[int] = []
    with suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # "max" is no number
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(sizes, default=None)


def _free_on_machine() -> int | None:
    """Return what Linux calls available, elsewhere the free pages as far as the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_container() -> int | None:
    """Return what the control group (version 2) of this process has left, None if it has no limit of its own."""
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        return limit - int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" is no number
        return None


def machine() -> dict[str, str | int]:
    """Return what measured times depend on: processor, number of its cores that may be used, system."""
    return {"cpu": _processor(), "cores": available_cores(), "system": f"{platform.system()} {platform.machine()}"}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
