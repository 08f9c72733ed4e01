"""Compilation of kernels: on first use, kept on disk, without the interpreter lock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile *function* on its first call, keep the result on disk, and release the GIL while it runs."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # no folder to keep it in can be written: compile it every time
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile *function* into each kernel that calls it: for the small ones inside the hottest loops.

    A call passes tuples of arrays by value and counts references to each array; that takes longer than a small loop.
    """
    return cast(F, numba.njit(nogil=True, error_model="numpy", inline="always")(function))


def on_disk(kernel: object) -> bool:
    """Return whether a kernel has machine code on disk; only a forecast."""
    folder = getattr(getattr(kernel, "stats", None), "cache_path", "")
    name = getattr(kernel, "__name__", "")
    return bool(folder) and any(Path(folder).glob(f"*.{name}-*.nbi"))


def _register_without_blas() -> None:
    """Let numba register its array functions without a look for BLAS.

    That look imports scipy.linalg, a fifth of a second at the start of every command, for ``np.dot`` and the like,
    which no kernel uses.
    """
    if "scipy.linalg" in sys.modules or "numba.np.arraymath" in sys.modules:
        return
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # "not to be found", as the import system says it
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules["scipy.linalg"]


_register_without_blas()
