"""The parent's side of a worker process: what it is told, and how it died."""

from __future__ import annotations

from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from mtpp.host.child_process import TalkingProcess, serving

_COMMAND = serving("mtpp.solvers.certify.cells.worker")


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
