"""A Dask cluster on this machine, started the way users start one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

from processes import environment

DASK = (sys.executable, "-m", "dask")
_MARK = "MTPP_TEST_CLUSTER"


class DaskCluster:
    """A scheduler, which does not know this package, and two workers of a thread each: with a nanny and without."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = uuid.uuid4().hex
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        self.address = f"tcp://127.0.0.1:{port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.scheduler = self._start(("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"), bare)
        self.workers = [self.add_worker(), self.add_worker("--no-nanny")]

    def add_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start one more worker."""
        return self._start(("worker", self.address, "--nthreads", "1", "--no-dashboard", *options), environment())

    def cell_processes(self) -> list[int]:
        """Return the processes that work at cells on this cluster."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if b"cells.worker" in command and self._mark.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
        return found

    def stop(self) -> None:
        """End all of it, whatever state it is in."""
        for process in self._processes:
            kill_all(process)

    def _start(self, command: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"log-{len(self._processes)}").open("wb") as log:
            process = subprocess.Popen(
                [*DASK, *command], cwd=self._folder, env=env | {_MARK: self._mark}, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a scheduler or a worker and its nanny at once, as when their machine is lost."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
