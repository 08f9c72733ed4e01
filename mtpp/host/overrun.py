"""Work that may not come back in time: it runs in a thread that is given up once its limit is past."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason

R = TypeVar("R")

GRACE_S = 0.5
GRACE_SHARE = 0.02
"""Seconds, and part of its limit, that work gets beyond its deadline to come to an end by itself."""

INTERRUPTION_GRACE_S = 1.0
"""Seconds that work gets to come to an end once the user has interrupted it."""

_LOOK_S = 0.05

_ABANDONED: list[Thread] = []


class Overrun(Exception):
    """The work was given up; *stopped* says why."""

    def __init__(self, stopped: StopReason) -> None:
        self.stopped = stopped
        super().__init__(stopped)


class _Job:
    """A piece of work and what it comes to."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.done = Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        self.done.set()


class TimedThread:
    """A thread for pieces of work one after the other; another one takes its place when it does not come back."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: Thread | None = None

    def run(
        self,
        work: Callable[[], R],
        deadline: Deadline,
        stop: Callable[[], StopReason | None],
        *,
        grace_s: float = GRACE_S,
    ) -> R:
        """Run *work* and return what it returns, or give it up soon after it had to end.

        Compiled loops release the interpreter's lock, so the caller's thread keeps the clock, whatever the work is at.

        Parameters
        ----------
        deadline
            By when the work should end by itself.
        stop
            Why the work has to end now, None as long as it may go on; it is to ask this itself.
        grace_s
            Seconds that it may take longer, besides :data:`GRACE_SHARE` of its limit.

        Raises
        ------
        Overrun
            If the work has been given up. Its thread goes on until the process ends: see :func:`abandoned`.
        """
        job = _Job(work)
        if self._thread is None:
            self._jobs = SimpleQueue()
            self._thread = Thread(target=_serve, args=(self._jobs,), name="work with a limit", daemon=True)
            self._thread.start()
        self._jobs.put(job)
        try:
            _await(job, deadline, stop, grace_s + GRACE_SHARE * max(0.0, min(deadline.limit_s or 0.0, 1e6)))
        except BaseException:
            _ABANDONED.append(self._thread)
            self.close()
            raise
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let the thread end after what it is at."""
        self._jobs.put(None)
        self._thread = None


def run_in_time(work: Callable[[], R], deadline: Deadline, stop: Callable[[], StopReason | None]) -> R:
    """Run *work* in a thread of its own; see :meth:`TimedThread.run`."""
    thread = TimedThread()
    try:
        return thread.run(work, deadline, stop)
    finally:
        thread.close()


def run_beside(work: Callable[[], R]) -> R:
    """Run *work* in a thread of its own, so that the caller's hears signals while compiled loops run.

    An exception that a signal raises meanwhile, such as :class:`mtpp.host.alarm.TimeIsUp`, gives the work up.
    """
    return run_in_time(work, Deadline(), lambda: None)


def abandoned() -> bool:
    """Tell whether work that was given up still runs: the process must then end without waiting for it."""
    return any(thread.is_alive() for thread in _ABANDONED)


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # what it has made must not live until the next one


def _await(job: _Job, deadline: Deadline, stop: Callable[[], StopReason | None], grace_s: float) -> None:
    stopped_at: float | None = None
    while not job.done.wait(max(0.01, min(_LOOK_S, deadline.remaining_s()))):
        reason = stop()
        if reason is None:
            continue
        stopped_at = stopped_at or time.monotonic()
        allowed_s = INTERRUPTION_GRACE_S if reason == StopReason.INTERRUPTED else grace_s
        if time.monotonic() - stopped_at >= allowed_s:
            raise Overrun(reason)
