"""The machine that times are measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> dict[str, str | int]:
    """Return what measured times depend on: processor, number of its cores that may be used, system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpu": _processor(), "cores": cores, "system": f"{platform.system()} {platform.machine()}"}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
