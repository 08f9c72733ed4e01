"""The memory that this process and those that it starts may have resident together, as ``--memory-limit`` says.

Two things hold it. The kernel refuses allocations that would take this process beyond what is left, which Python and
NumPy turn into a MemoryError; and a thread adds up what the whole family has, tells searches to end before it is all
used, and ends the process where all that does not help. A process has one limit for all its threads, hence the state of
this module.
"""

from __future__ import annotations

import os
import signal
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
"""Part of the limit at which the kernel refuses more."""

_NOT_RESIDENT_BYTES = 128 * 2**20
"""Of a process's data at most that is granted beside the limit because it is not resident: stacks, heaps not filled."""

_END_AT = 1.08
"""Part of the limit at which the process ends without any result."""

_TO_END_WITH = 1.06
"""Part of the limit that a process may have to write its result, once a search had to be ended."""

_EVERY_S = 0.05

_LOADED_LATER_BYTES = 96 * 2**20
"""Memory of solvers and their compiled loops once they are imported."""

_SEARCH_SHARE = 0.6
"""Of what is left of a limit, for what an exhaustive search keeps; the rest is for all that is done beside it."""


class MemoryLimit:
    """The limit on a family of processes, and what it has resident.

    Parameters
    ----------
    limit_bytes
        Of all processes together.
    read
        Returns the resident bytes of the family.
    end
        Ends the process at once, which is what happens well above the limit.

    Attributes
    ----------
    children_expendable
        Whether processes that this one has started may be killed at the limit: their work is then reported as failed.
    """

    def __init__(
        self, limit_bytes: int, read: Callable[[], int] | None = None, end: Callable[[], object] | None = None
    ) -> None:
        self.children_expendable = True
        self._end = end or self._end_process
        self.limit_bytes = limit_bytes
        self._read = read or family_resident_bytes
        self._short = Event()
        self._over = Event()
        self._share = _DATA_SHARE
        # A process that is large already, such as a notebook's, must not be left without memory for a thread.
        self._not_resident = max(_NOT_RESIDENT_BYTES, data_bytes() - self._read() + _NOT_RESIDENT_BYTES // 2)

    @property
    def short(self) -> bool:
        """Whether searches have to end, because nearly all of it was in use at some time."""
        return self._short.is_set()

    def look(self) -> int:
        """Take note of what is resident now, act on it, and return it."""
        resident = self._read()
        if resident >= NEARLY * self.limit_bytes:
            self._short.set()
        if resident >= _END_AT * self.limit_bytes:
            self._end()
        elif resident >= self.limit_bytes and self.children_expendable:
            kill_descendants()
        room = int(self._share * self.limit_bytes) - resident
        most = int(self._share * self.limit_bytes) + self._not_resident
        _set_data_limit(max(0, min(data_bytes() + max(0, room), most)))
        return resident

    def left_bytes(self) -> int:
        """Return what may still be allocated."""
        return max(0, int((1 - _LEFT_ALONE) * self.limit_bytes) - self.look())

    def _end_process(self) -> None:
        kill_descendants()
        with suppress(OSError, ValueError, AttributeError):
            mebibytes = self.limit_bytes >> 20
            sys.stderr.write(f"error: more memory is needed than the limit of {mebibytes} MiB; raise --memory-limit\n")
            sys.stderr.flush()
        os._exit(1)

    def spare(self) -> None:
        """Let this process have what was held back for writing a result after the limit ended a search."""
        self._share = _TO_END_WITH
        self.look()

    def begin_anew(self) -> None:
        """Forget that an earlier search had to end, unless there is still as little left."""
        self._short.clear()
        self._share = _DATA_SHARE
        self.look()

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
def memory_limited(
    limit_bytes: int | None,
    read: Callable[[], int] | None = None,
    end: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Hold this process and its family to so many bytes inside the block; None: to none."""
    if limit_bytes is None:
        yield
        return
    limit = MemoryLimit(limit_bytes, read, end)
    before = _data_limit()
    _CURRENT.append(limit)
    try:
        limit.look()
        limit.watch()
        yield
    finally:
        limit.end()
        _CURRENT.remove(limit)
        if before is not None:
            _set_data_limit(before)


def keep_children() -> None:
    """Kill no process that this one has started for the sake of its limit: each has one of its own."""
    if _CURRENT:
        _CURRENT[-1].children_expendable = False


def limited_memory() -> bool:
    """Tell whether there is a limit."""
    return bool(_CURRENT)


def short_of_memory() -> bool:
    """Tell whether searches have to end for the sake of the limit; False without one."""
    return bool(_CURRENT) and _CURRENT[-1].short


def memory_left() -> int | None:
    """Return the bytes that may still be allocated, None without a limit."""
    return _CURRENT[-1].left_bytes() if _CURRENT else None


def search_share(left_bytes: int) -> int:
    """Return what an exhaustive search may keep in memory, in bytes, where so many may still be allocated."""
    return int(_SEARCH_SHARE * max(0, left_bytes - _LOADED_LATER_BYTES))


def return_memory() -> None:
    """Give what was freed but is still resident back to the system, where there is a limit (glibc)."""
    if _CURRENT:
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def begin_search() -> None:
    """Let the next of several searches in this process have what the one before it has given back."""
    return_memory()
    if _CURRENT:
        _CURRENT[-1].begin_anew()


def spare_memory() -> None:
    """Let this process have what was held back for writing a result after a limit ended a search."""
    return_memory()
    if _CURRENT:
        _CURRENT[-1].spare()


def _data_limit() -> int | None:
    """Return the present limit, None where there is nothing like it."""
    if sys.platform != "linux":
        return None
    import resource

    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def _set_data_limit(size: int) -> None:
    if sys.platform != "linux":
        return
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


def kill_descendants() -> None:
    """Kill all that this process has started, and what they have."""
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


def data_bytes() -> int:
    """Return the size of this process's data as the kernel's limit counts it, 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def shared_resident_bytes(pid: int) -> int:
    """Return the same, with its share only of pages that several processes have; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident_bytes(pid)
