"""Worker processes and waits for them: every wait ends when one dies, at the time limit, or on Ctrl-C."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Protocol

from mtpp.errors import MtppError
from mtpp.host.deadline import Deadline
from mtpp.host.ending import EndedEarly, reason_to_end
from mtpp.runtime.pipeline.worker_process import Job, WorkerProcess

_LOOK_S = 0.1
"""Seconds between two looks at the clock and at whether the work is still wanted."""

_CAUSE_S = 5.0
"""Seconds within which the death must be heard of that others suffer from."""


class RunLimits:
    """End of a run: its time limit, and an interruption by the user.

    Parameters
    ----------
    interrupted
        Whether the user has interrupted it.
    """

    def __init__(self, deadline: Deadline, interrupted: Callable[[], bool]) -> None:
        self._deadline = deadline
        self._interrupted = interrupted

    def check(self) -> float:
        """Return the seconds until the next look; raise EndedEarly if the run has to end."""
        reason = reason_to_end(self._deadline, self._interrupted)
        if reason is not None:
            raise EndedEarly(reason)
        return max(0.0, min(_LOOK_S, self._deadline.remaining_s()))


class Limits(Protocol):
    """What ends waits: those of a run, or another crew whose processes have to live."""

    def check(self) -> float:
        """Return the seconds until the next look; raise what ends the run."""


class Crew:
    """Processes that end together: when this is left, none of them lives any more."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._workers: list[WorkerProcess] = []
        self._living: dict[Any, WorkerProcess] = {}
        self._quiet: set[WorkerProcess] = set()
        self._peer_lost_since: float | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.close()

    def start(self, label: str, job: Job) -> None:
        """Start a process for a job."""
        try:
            worker = WorkerProcess(label, job)
        except OSError as error:
            raise no_process(error) from None
        self._workers.append(worker)
        self._living[worker.connection] = worker

    @property
    def pids(self) -> list[int]:
        """Of all processes."""
        return [worker.pid for worker in self._workers]

    def check(self) -> float:
        """Return the seconds until the next look, as :class:`RunLimits` does; raise WorkerDied if one has ended."""
        for worker in self._living.values():
            if worker not in self._quiet and not worker.running:
                raise worker.death()
        return self._limits.check()

    def tell_all(self, message: Any) -> None:
        """Say something to every process."""
        for worker in self._workers:
            worker.send(message)

    def gather(
        self,
        word: str,
        descriptors: Callable[[], Sequence[int]] = tuple,
        read: Callable[[int], None] = lambda descriptor: None,
        look: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        """Wait until every process has said a word; return what they said with it.

        Parameters
        ----------
        descriptors
            That are to be read meanwhile, by *read*, whenever there is something to be read.
        look
            Is called again and again meanwhile.
        """
        said: dict[WorkerProcess, Any] = {}
        while len(said) < len(self._workers):
            look()
            for ready in wait([*self._living, *descriptors()], self._limits.check()):
                if isinstance(ready, int):
                    read(ready)
                else:
                    said.update(self._hear(self._living[ready], word))
            if self._peer_lost_since is not None and time.monotonic() - self._peer_lost_since > _CAUSE_S:
                raise MtppError("the stages lost contact with each other", remedy="run again")
        return [said[worker] for worker in self._workers]

    def _hear(self, worker: WorkerProcess, word: str) -> Iterator[tuple[WorkerProcess, Any]]:
        try:
            kind, value = worker.connection.recv()
        except (EOFError, OSError):
            del self._living[worker.connection]
            if worker not in self._quiet:
                raise worker.death() from None
            return
        if kind == "refused":
            raise value
        if kind == "peer lost":  # the one that died will be heard of: that is what to tell the user
            self._quiet.add(worker)
            self._peer_lost_since = self._peer_lost_since or time.monotonic()
        elif kind in ("done", "measured"):
            self._quiet.add(worker)
        if kind == word:
            yield worker, value


def no_process(error: OSError) -> MtppError:
    """Return what to tell the user when a process or a pipe cannot be made."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return MtppError("too many files are open for a process per stage", remedy="raise `ulimit -n`")
    return MtppError(f"no process can be started: {error.strerror or error}", remedy="use fewer stages")
