"""The parent's side of a worker process: starts it, talks to it, kills it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mtpp.host.child_process import end_family

_COMMAND = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from mtpp.solvers.certify.cells.worker import serve; serve()"
)


class WorkerProcess:
    """A process that works at one cell after the other; see :mod:`mtpp.solvers.certify.cells.worker` for what is said.

    Not one of ``multiprocessing``: those of a daemonic process, such as a worker of Dask, may not have children.

    Parameters
    ----------
    inbox
        Gets what the process says as pairs of this object and the message, and (this, None) when it has ended.
    """

    def __init__(self, inbox: SimpleQueue[tuple[WorkerProcess, Any]]) -> None:
        path = json.dumps([os.path.abspath(entry) for entry in sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that it can be killed with all that it starts, and gets no Ctrl-C
        )
        Thread(target=self._listen, args=(inbox,), daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, *message: Any) -> None:
        """Say something to the process; if it has died, that is heard from the inbox."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
            self._process.stdin.flush()

    def kill(self) -> None:
        """End the process, and all that it started, at once."""
        if self._process.returncode is None:  # nobody has asked yet, so its number is still its own
            end_family(self._process.pid)
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # what was still to be written has no reader any more

    def cause_of_death(self) -> str:
        """Say how the process ended, for people; only after it has. What it started is killed."""
        if self._process.returncode is None:
            end_family(self._process.pid)
        code = self._process.wait()
        return f"its process was killed by signal {-code}" if code < 0 else f"its process ended with exit code {code}"

    def _listen(self, inbox: SimpleQueue[tuple[WorkerProcess, Any]]) -> None:
        assert self._process.stdout is not None
        with suppress(Exception), self._process.stdout:  # the pipe ends, perhaps within a message
            while True:
                inbox.put((self, pickle.load(self._process.stdout)))
        inbox.put((self, None))
