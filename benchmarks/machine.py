"""On what a figure was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def machine_line() -> str:
    """Return processor, cores, Python and the versions of the packages that decide speed, in one line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy"))
    system = f"{platform.system()} {platform.machine()}"
    return f"{_processor()}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}, {packages}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
