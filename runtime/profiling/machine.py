"""The machine that times are measured on."""

from __future__ import annotations

import platform
from pathlib import Path

from mtpp.host.capacity import available_cores


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
