"""Work that may not come back in time: it runs in a thread that is given up once its limit is past."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

from mtpp.deadline import Deadline

R = TypeVar("R")

GRACE_S = 0.1
GRACE_SHARE = 0.02
"""Seconds, and part of its limit, that work gets beyond its deadline to come to an end by itself."""

INTERRUPTION_GRACE_S = 2.0
"""Seconds that work gets to come to an end once the user has interrupted it."""

_LOOK_S = 0.05

_ABANDONED: list[Thread] = []


class Overrun(Exception):
    """The work was given up; *stopped* says why, one of ``solvers.search.STOPS``."""

    def __init__(self, stopped: str) -> None:
        self.stopped = stopped
        super().__init__(stopped)


class _Outcome(Generic[R]):
    """What a thread leaves behind."""

    def __init__(self) -> None:
        self.done = Event()
        self.result: R
        self.error: BaseException | None = None


def run_in_time(work: Callable[[], R], deadline: Deadline, stop: Callable[[], str | None]) -> R:
    """Run *work* in a thread of its own and return what it returns, or give it up soon after it had to end.

    Compiled loops release the interpreter's lock, so the caller's thread keeps the clock, whatever the work is at.

    Parameters
    ----------
    deadline
        By when the work should end by itself.
    stop
        Why the work has to end now, None as long as it may go on; it is to ask this itself.

    Raises
    ------
    Overrun
        If the work has been given up. Its thread goes on until the process ends: see :func:`abandoned`.
    """
    outcome: _Outcome[R] = _Outcome()

    def run() -> None:
        try:
            outcome.result = work()
        except BaseException as error:
            outcome.error = error
        outcome.done.set()

    thread = Thread(target=run, name="work with a limit", daemon=True)
    thread.start()
    grace_s = GRACE_S + GRACE_SHARE * (deadline.limit_s or 0)
    stopped_at: float | None = None
    try:
        while not outcome.done.wait(max(0.0, min(_LOOK_S, deadline.remaining_s() + grace_s))):
            reason = stop()
            if reason is None:
                continue
            stopped_at = stopped_at or time.monotonic()
            patience_s = INTERRUPTION_GRACE_S if reason == "interrupted" else grace_s
            if time.monotonic() - stopped_at >= patience_s or deadline.remaining_s() <= -grace_s:
                _ABANDONED.append(thread)
                raise Overrun(reason)
    except KeyboardInterrupt:
        _ABANDONED.append(thread)
        raise
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def abandoned() -> bool:
    """Tell whether work that was given up still runs: the process must then end without waiting for it."""
    return any(thread.is_alive() for thread in _ABANDONED)
