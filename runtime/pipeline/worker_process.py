"""The parent's side of a worker process: starts it, hears it, says how it died, kills it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, Protocol

from mtpp.errors import MtppError
from mtpp.host.child_process import ChildProcess, serving

_COMMAND = serving("mtpp.runtime.pipeline.worker")
_LAST_LINES = 12
_LAST_BYTES = 4000
_LAST_BREATH_S = 15.0
"""Seconds that a process may take to end after it has closed its connection."""


class Job(Protocol):
    """What a worker does."""

    def descriptors(self) -> Sequence[int]:
        """Return those that the worker must inherit: none, unless a job says otherwise."""
        return ()

    def run(self, parent: Connection) -> None:
        """Do it, and tell the parent."""


CRASHES = frozenset(
    getattr(signal, name) for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV") if hasattr(signal, name)
)
"""Signals by which the system ends a program for what it does itself."""


class WorkerDied(MtppError):
    """A worker process ended without a word (exit code 2; 1 where the library crashed that runs the model).

    Attributes
    ----------
    last_lines
        Of what it printed.
    signal
        That it was ended by; 0 if by none.
    """

    def __init__(
        self, problem: str, last_lines: Sequence[str], *, source: str, remedy: str | None = None, signal: int = 0
    ) -> None:
        super().__init__(problem, source=source, remedy=remedy)
        self.last_lines = tuple(last_lines)
        self.signal = signal
        if signal in CRASHES:
            self.exit_code = 1


class WorkerProcess(ChildProcess):
    """A process that does one job.

    Parameters
    ----------
    label
        What people call it.
    """

    def __init__(self, label: str, job: Job) -> None:
        self.label = label
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        self.connection, theirs = Pipe()
        try:
            super().__init__(
                _COMMAND,
                theirs.fileno(),
                os.getpid(),
                leads=True,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                pass_fds=(theirs.fileno(), *job.descriptors()),
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy computes nothing there
            )
        except BaseException:
            self.connection.close()
            self._said.close()
            raise
        finally:
            theirs.close()
        self.send(job)

    def send(self, message: Any) -> None:
        """Say something to the process; if it has died, that is heard when it is listened to."""
        with suppress(OSError):
            self.connection.send(message)

    def death(self) -> WorkerDied:
        """Return how the process ended, for people; only after it has."""
        self.wait(_LAST_BREATH_S)  # killing it now would hide what it died of
        code = self.exit_code()
        if code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
            remedy = "see that the machine has enough memory" if -code == signal.SIGKILL else None
            if -code in CRASHES:
                remedy = "what runs the model crashed: change the op that it crashes in, or try another version of it"
            problem = f"its process was killed by {name}"
            return WorkerDied(problem, self._last_lines(), source=self.label, remedy=remedy, signal=-code)
        return WorkerDied(f"its process ended with exit code {code}", self._last_lines(), source=self.label)

    def close(self) -> None:
        """Kill the process, wait until it is gone, and let go of what it was talked to through."""
        super().close()
        self.connection.close()
        self._said.close()

    def _last_lines(self) -> list[str]:
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _LAST_BYTES))
        lines = self._said.read().decode("utf-8", "replace").splitlines()
        return list(deque((line for line in lines if line.strip()), _LAST_LINES))
