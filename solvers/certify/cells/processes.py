"""Cells in worker processes, several at once: killed when they overrun, tried again when their process dies."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any

from mtpp.errors import MtppError
from mtpp.host.child_process import TalkingProcess, serving
from mtpp.host.memory_limit import keep_children
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.certify.cell_state import Certification
from mtpp.solvers.certify.cells.cell import CertificateCell, Outcome
from mtpp.solvers.compilation import tell_watchers

_COMMAND = serving("mtpp.solvers.certify.cells.worker")

ATTEMPTS = 2
"""At a cell, before it is given up."""

_GRACE_S = 0.8

_GRACE_SHARE = 0.05
"""Seconds, and part of its limit, by which a cell may overrun before its process is killed."""

_LOOK_S = 0.1
"""Seconds between two looks at the clock and at whether the work is still wanted."""

_STARTS = 3
"""Processes in a row that may end before they are ready."""


class WorkerProcess(TalkingProcess):
    """A process that works at one cell after the other; see :mod:`mtpp.solvers.certify.cells.worker` for what is said.

    Parameters
    ----------
    inbox
        Gets what the process says as pairs of this object and the message, and (this, None) when it has ended.
    """

    def __init__(self, inbox: SimpleQueue[tuple[WorkerProcess, Any]]) -> None:
        super().__init__(_COMMAND, lambda message: inbox.put((self, message)), leads=True)

    def tell(self, *message: Any) -> None:
        """Say something to the process; if it has died, that is heard from the inbox."""
        with suppress(OSError):
            self.send(message)

    def cause_of_death(self) -> str:
        """Say how the process ended, for people; only after it has. What it started is killed."""
        code = self.exit_code()
        return f"its process was killed by signal {-code}" if code < 0 else f"its process ended with exit code {code}"


@dataclass(eq=False)
class _Post:
    """A worker process and the cell that it is at.

    Attributes
    ----------
    state
        The last that was heard of the cell, in this attempt or one before.
    began
        When its clock started, None before.
    kill_at
        When the process has to be killed, None while nothing says so.
    """

    worker: WorkerProcess
    ready: bool = False
    cell: CertificateCell | None = None
    attempt: int = 1
    state: Certification | None = None
    began: float | None = None
    kill_at: float | None = None


def run_in_processes(
    cells: Iterable[CertificateCell],
    interrupted: Callable[[], bool],
    *,
    at_once: int,
    grace_s: float = _GRACE_S,
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[Outcome[Certification]]:
    """Give the outcome of each cell as it comes, until the user ends it.

    A cell is asked for when there is a process for it. What is proven is never lost: the outcome of a cell that was
    killed or interrupted is the last state that its process told of.

    Parameters
    ----------
    at_once
        Cells at once, each in a process of its own.
    grace_s
        Seconds that a cell may overrun its limit, and that processes have to come to an end when they are interrupted.
    tell
        Is told of accidents after which a cell is tried again.

    Raises
    ------
    MtppError
        If processes cannot be started.
    """
    keep_children()
    pool = _Pool(iter(cells), at_once, grace_s, tell)
    try:
        while pool.at_work(interrupted):
            yield from pool.news(interrupted())
    finally:
        pool.close()


class _Pool:
    def __init__(
        self, cells: Iterator[CertificateCell], at_once: int, grace_s: float, tell: Callable[[str], None]
    ) -> None:
        self._cells = cells
        self._at_once = at_once
        self._grace_s = grace_s
        self._tell = tell
        self._inbox: SimpleQueue[tuple[WorkerProcess, Any]] = SimpleQueue()
        self._held: deque[tuple[WorkerProcess, Any]] = deque()
        self._posts: dict[WorkerProcess, _Post] = {}
        self._exhausted = self._interrupted = False
        self._failed_starts = 0

    def at_work(self, interrupted: Callable[[], bool]) -> bool:
        """Hand out cells as long as there are processes for them; tell whether any is being worked at."""
        while not (self._exhausted or interrupted()):
            idle = next((post for post in self._posts.values() if post.cell is None), None)
            if idle is None and len(self._posts) >= self._at_once:
                break
            cell = next(self._cells, None)
            if cell is None or interrupted():  # also while the next one was being read
                self._exhausted = True
                break
            self._give(idle or self._start_worker(), cell)
        return any(post.cell is not None for post in self._posts.values())

    def news(self, interrupted: bool) -> Iterator[Outcome[Certification]]:
        """Give the outcomes that there are within a moment."""
        if interrupted and not self._interrupted:
            self._interrupted = True
            for post in self._posts.values():
                post.worker.tell("end")
                post.kill_at = time.monotonic() + self._grace_s
        if not self._held:
            with suppress(Empty):
                self._held.append(self._inbox.get(timeout=_LOOK_S))
        while self._held or not self._inbox.empty():
            worker, message = self._held.popleft() if self._held else self._inbox.get()
            speaker = self._posts.get(worker)
            if speaker is not None:
                yield from self._buried(speaker) if message is None else self._heard(speaker, *message)
        for post in list(self._posts.values()):
            if post.cell is not None and post.kill_at is not None and time.monotonic() > post.kill_at:
                yield from self._overrun(post)

    def close(self) -> None:
        """End all processes at once."""
        for post in self._posts.values():
            post.worker.close()
        self._posts.clear()

    def _start_worker(self) -> _Post:
        worker = WorkerProcess(self._inbox)
        post = self._posts[worker] = _Post(worker)
        return post

    def _give(self, post: _Post, cell: CertificateCell, attempt: int = 1, state: Certification | None = None) -> None:
        post.cell, post.attempt, post.state, post.began, post.kill_at = cell, attempt, state, None, None
        if post.ready:
            post.worker.tell("cell", cell)

    def _heard(self, post: _Post, kind: str, value: Any = None) -> Iterator[Outcome[Certification]]:
        if kind == "ready":
            post.ready, self._failed_starts = True, 0
            if post.cell is not None:
                post.worker.tell("cell", post.cell)
        elif post.cell is None:
            return
        elif kind == "began":
            post.began = time.monotonic()
            limit = post.cell.limits.time_limit_s
            if limit is not None and not self._interrupted:
                post.kill_at = post.began + limit + self._grace_s + _GRACE_SHARE * limit
        elif kind == "compiling":
            post.kill_at = None
            tell_watchers()
        elif kind == "state":
            post.state = _better(value, post.state)
        elif kind == "failed":
            self._dismiss(post)
            yield from self._lost(post, value)
        else:
            cell, post.cell, post.kill_at = post.cell, None, None
            if kind == "done":
                yield Outcome(cell, value)
            elif kind == "short" and post.state is not None:
                yield Outcome(cell, replace(post.state, stopped=StopReason.MEMORY_LIMIT))
            elif kind == "false" or not self._interrupted:  # else there was more to try
                yield Outcome(cell, None, value, kind == "false")

    def _buried(self, post: _Post) -> Iterator[Outcome[Certification]]:
        """Go on after a process died by itself."""
        del self._posts[post.worker]
        cause = post.worker.cause_of_death()
        post.worker.close()
        if not post.ready:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise MtppError(f"no process for the work can be started: {cause}", remedy="use ‹jobs› 1")
            if post.cell is not None and not self._interrupted:
                self._give(self._start_worker(), post.cell, post.attempt, post.state)
            return
        yield from self._lost(post, cause)

    def _lost(self, post: _Post, cause: str) -> Iterator[Outcome[Certification]]:
        """Try the cell again after an accident, or give it up."""
        cell, post.cell = post.cell, None
        if cell is None:
            return
        if post.attempt < ATTEMPTS and not self._interrupted:
            self._tell(f"{cell.label}: {cause}; trying again")
            self._give(self._start_worker(), cell, post.attempt + 1, post.state)
        else:
            state = None if post.state is None else replace(post.state, stopped=StopReason.INTERRUPTED)
            yield Outcome(cell, state, f"{cause}, {ATTEMPTS} times" if post.attempt == ATTEMPTS else cause)

    def _overrun(self, post: _Post) -> Iterator[Outcome[Certification]]:
        """Kill a process that did not come to its end in time; what it said until then counts."""
        self._dismiss(post)
        cell = post.cell
        assert cell is not None
        for kind, *values in self._last_words(post.worker):
            yield from self._heard(post, kind, *values)
        if post.cell is None:  # it did come to its end
            return
        if post.state is None:
            if not self._interrupted:
                yield Outcome(cell, None, "no partition was found in the time")
            return
        seconds = post.state.total_seconds if post.began is None else time.monotonic() - post.began
        stopped = StopReason.INTERRUPTED if self._interrupted else StopReason.TIME_LIMIT
        yield Outcome(cell, replace(post.state, stopped=stopped, total_seconds=seconds))

    def _last_words(self, worker: WorkerProcess) -> list[Any]:
        """Return what a process that was killed had said of its cell and nobody had listened to yet."""
        words: list[Any] = []
        while True:
            speaker, message = self._inbox.get()
            if speaker is not worker:
                self._held.append((speaker, message))
            elif message is None:
                return [word for word in words if word[0] in ("state", "done")]
            else:
                words.append(message)

    def _dismiss(self, post: _Post) -> None:
        post.worker.close()
        del self._posts[post.worker]


def _better(new: Certification, old: Certification | None) -> Certification:
    """Return the state with the smaller ratio: a second attempt starts anew."""
    if old is None or old.upper is None or new.upper is None:  # no partition: bounds alone were asked for
        return new
    return new if new.upper * old.lower.value <= old.upper * new.lower.value else old
