"""Compilation of kernels as others see it: that it happens, and a clock that stands still meanwhile.

Nothing here imports numba, so that a command that may have nothing to compile need not either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Work:
    """Loading and compiling in this process, one kernel at a time but for those that it calls."""

    compiled = False
    depth = 0
    began = 0.0
    seconds = 0.0


_WATCHERS: list[Callable[[], None]] = []


@contextmanager
def watched_compilation(say: Callable[[], None]) -> Iterator[None]:
    """Call *say* once if anything is compiled while this is entered, in whichever thread."""
    _WATCHERS.append(say)
    try:
        yield
    finally:
        if say in _WATCHERS:
            _WATCHERS.remove(say)


def search_clock() -> float:
    """Return seconds that pass only while this process compiles and loads no kernels, from an unknown beginning."""
    now = time.monotonic()
    return now - _Work.seconds - (now - _Work.began if _Work.depth else 0.0)


def tell_watchers() -> None:
    """Tell those who watch that something is compiled, in this process or one of its children."""
    _Work.compiled = True
    while _WATCHERS:
        _WATCHERS.pop()()


def has_compiled() -> bool:
    """Return whether this process or one of its children has compiled anything."""
    return _Work.compiled


def work_begins() -> None:
    """Have the clock stand still until :func:`work_ends`."""
    if not _Work.depth:
        _Work.began = time.monotonic()
    _Work.depth += 1


def work_ends() -> None:
    """Have the clock go on, once for each :func:`work_begins`."""
    _Work.depth -= 1
    if not _Work.depth:
        _Work.seconds += time.monotonic() - _Work.began
