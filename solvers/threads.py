"""Work split over threads in parts that do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_GLANCE_S = 0.2


class Threads:
    """A pool of threads, even for one job, so that the caller's thread stays free to notice signals.

    Kernels release the interpreter lock, so threads use as many cores.
    """

    def __init__(self, jobs: int) -> None:
        self._pool = ThreadPoolExecutor(jobs)

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[[T], R], items: Iterable[T], meanwhile: Callable[[], object] | None = None
    ) -> list[R]:
        """Return ``function(item)`` of every item, in order; *meanwhile* is called about five times a second."""
        running: list[Future[R]] = [self._pool.submit(function, item) for item in items]
        while wait(running, timeout=_GLANCE_S).not_done:  # short waits, so that signals are noticed on every platform
            if meanwhile is not None:
                meanwhile()
        return [future.result() for future in running]
