"""The memory that this process and those that it starts may have resident together, as ``--memory-limit`` says.

Two things hold it. The kernel refuses allocations that would take this process beyond its part, which Python and NumPy
turn into a MemoryError; and a thread adds up what the whole family has, and tells searches to end before it is all
used. Limits of a process are the same for all its threads, hence the state of this module.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

LEAST_BYTES = 512 * 2**20
"""Smallest limit: an interpreter with all that is imported takes a third of it."""

NEARLY = 0.92
"""Share of the limit at which searches end."""

_LEFT_ALONE = 0.04
"""Share of the limit that is kept free for what comes after a search."""

_DATA_SHARE = 1.03
"""The kernel's limit on data for each resident byte allowed. It counts stacks of threads and heaps that are not filled
yet, about 90 MB with everything loaded, but not code and files, which are as much."""

_TO_END_WITH = 1.04
"""Part of the limit that a process may have to write its result, once a search had to be ended."""

_EVERY_S = 0.05


class MemoryLimit:
    """The limit on a family of processes, and what it has resident.

    Parameters
    ----------
    limit_bytes
        Of all processes together.
    read
        Returns the resident bytes of the family.
    """

    def __init__(self, limit_bytes: int, read: Callable[[], int] | None = None) -> None:
        self.limit_bytes = limit_bytes
        self._read = read or family_resident_bytes
        self._short = Event()
        self._over = Event()

    @property
    def short(self) -> bool:
        """Whether searches have to end, because nearly all of it was in use at some time."""
        return self._short.is_set()

    def look(self) -> int:
        """Take note of what is resident now, and return it."""
        resident = self._read()
        if resident >= NEARLY * self.limit_bytes:
            self._short.set()
        return resident

    def left_bytes(self) -> int:
        """Return what may still be allocated."""
        return max(0, int((1 - _LEFT_ALONE) * self.limit_bytes) - self.look())

    def watch(self) -> None:
        """Look from time to time until the process ends."""

        def keep_looking() -> None:
            while not self._over.wait(_EVERY_S):
                self.look()

        Thread(target=keep_looking, name="memory", daemon=True).start()

    def end(self) -> None:
        """Look no more."""
        self._over.set()


_CURRENT: list[MemoryLimit] = []


@contextmanager
def memory_limited(limit_bytes: int | None, read: Callable[[], int] | None = None) -> Iterator[None]:
    """Hold this process and its family to so many bytes inside the block; None: to none."""
    if limit_bytes is None:
        yield
        return
    limit = MemoryLimit(limit_bytes, read)
    before = _data_limit()
    _CURRENT.append(limit)
    try:
        limit_data(limit_bytes)
        limit.watch()
        yield
    finally:
        limit.end()
        _CURRENT.remove(limit)
        if before is not None:
            _set_data_limit(before)


def limited_memory() -> bool:
    """Tell whether there is a limit."""
    return bool(_CURRENT)


def short_of_memory() -> bool:
    """Tell whether searches have to end for the sake of the limit; False without one."""
    return bool(_CURRENT) and _CURRENT[-1].short


def memory_left() -> int | None:
    """Return the bytes that may still be allocated, None without a limit."""
    return _CURRENT[-1].left_bytes() if _CURRENT else None


def return_memory() -> None:
    """Give what was freed but is still resident back to the system, where there is a limit (glibc)."""
    if _CURRENT:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def spare_memory() -> None:
    """Let this process have what was held back for writing a result after the limit ended a search."""
    return_memory()
    if _CURRENT:
        limit_data(int(_TO_END_WITH * _CURRENT[-1].limit_bytes))


def limit_data(resident_bytes: int) -> None:
    """Have the kernel refuse allocations that would take this process beyond so many resident bytes (Linux)."""
    if _data_limit() is not None:
        _set_data_limit(int(_DATA_SHARE * resident_bytes))


def _data_limit() -> int | None:
    """Return the present limit, None where there is nothing like it."""
    if sys.platform != "linux":
        return None
    import resource

    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def _set_data_limit(size: int) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (size, hard))


def family_resident_bytes(pid: int | None = None) -> int:
    """Return the resident bytes of a process, this one by default, and of all that it has started; 0 if unknown."""
    own = os.getpid() if pid is None else pid
    others = descendants(own)
    if not others:  # nothing is shared: the cheap figure is the exact one
        return resident_bytes(own)
    return sum(shared_resident_bytes(one) for one in (own, *others))


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs; none where the system does not tell."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                with suppress(OSError, ValueError):
                    text = Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii")
                    found.extend(map(int, text.split()))
    return found[1:]


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


def shared_resident_bytes(pid: int) -> int:
    """Return the same, with its share only of pages that several processes have; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident_bytes(pid)
