"""Shipped machine code: which Python and libraries it is for, told without an import of any of them."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from mtpp.solvers.machine_code.code_folders import SHIPPED

_NOTE = "for.txt"
_HARMLESS = (
    "NUMBA_CACHE_DIR",
    "NUMBA_CPU_FEATURES",  # shipped code is taken for whatever processor
    "NUMBA_CPU_NAME",
    "NUMBA_DISABLE_INTEL_SVML",
    "NUMBA_NUM_THREADS",
    "NUMBA_THREADING_LAYER",
)
"""Settings of numba that have no effect on which code is taken."""


@cache
def ships_code(folder: Path = SHIPPED) -> bool:
    """Return whether the package came with machine code for this Python and these libraries; only a forecast.

    Kernels are told apart one by one when they are loaded. This is what commands go by that start processes for their
    work, and have no other need of numba themselves.
    """
    try:
        note = (folder / _NOTE).read_text(encoding="utf-8")
    except OSError:
        return False
    settings = {name for name in os.environ if name.startswith("NUMBA_")}
    return settings <= set(_HARMLESS) and note == _description()


def write_note(folder: Path) -> None:
    """Note in a folder of machine code that it is for the Python and the libraries of this process."""
    (folder / _NOTE).write_text(_description(), encoding="utf-8")


def _description() -> str:
    try:
        versions = [f"{name} {version(name)}" for name in ("numba", "llvmlite")]
        versions.append(f"numpy {version('numpy').partition('.')[0]}")
    except PackageNotFoundError:
        return ""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} {MAGIC_NUMBER.hex()}"
    return "\n".join([f"{sys.platform} {platform.machine()}", python, *versions, ""])
