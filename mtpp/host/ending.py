"""Early ends of work. Five kinds end it; searches, bounds, planners and runs hear of all of them here.

1. A deadline (:mod:`mtpp.host.deadline`): searches look at the clock, and end with their best so far.
2. A thread in time (:class:`TimedThread`): the caller goes on without work that does not look in time.
3. An alarm (:mod:`mtpp.host.alarm`): ``TimeIsUp`` is raised in the midst of work that looks at no clock.
4. A limit on memory (:mod:`mtpp.host.memory_limit`): searches end before it is reached, or an allocation fails.
5. A signal: Ctrl-C or SIGTERM is a flag during searches (:mod:`mtpp.host.interruption`), and elsewhere ends the process
   (:mod:`mtpp.host.interrupts`).

:func:`reason_to_end` says which of 1, 4 and 5 holds now; :exc:`EndedEarly` says which has ended a piece of work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from mtpp.host.deadline import Deadline
from mtpp.host.memory_limit import short_of_memory
from mtpp.host.stop_reason import StopReason

R = TypeVar("R")

GRACE_S = 0.5
GRACE_SHARE = 0.02
"""Seconds, and part of its limit, that work gets beyond its deadline to come to an end by itself."""

INTERRUPTION_GRACE_S = 1.0
"""Seconds that work gets to come to an end once the user has interrupted it."""

_LOOK_S = 0.05

_ABANDONED: list[Thread] = []


class EndedEarly(Exception):
    """Work that did not come to its own end.

    Attributes
    ----------
    stopped
        Why: one of :data:`mtpp.host.stop_reason.CUT_SHORT`.
    """

    def __init__(self, stopped: StopReason) -> None:
        self.stopped = stopped
        super().__init__(stopped)


def reason_to_end(deadline: Deadline, interrupted: Callable[[], bool]) -> StopReason | None:
    """Return why work has to end now, None to go on: an interruption before memory, memory before time."""
    if interrupted():
        return StopReason.INTERRUPTED
    if short_of_memory():
        return StopReason.MEMORY_LIMIT
    return StopReason.TIME_LIMIT if deadline.expired() else None


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
        EndedEarly
            If the work has been given up, or the memory did not suffice. A thread that was given up goes on until the
            process ends: see :func:`abandoned`.
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
        if isinstance(job.error, MemoryError):
            from traceback import clear_frames

            clear_frames(job.error.__traceback__)  # or they would keep what has used it up
            raise EndedEarly(StopReason.MEMORY_LIMIT)
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
            raise EndedEarly(reason)
