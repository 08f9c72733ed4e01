"""A process that has imported what ``mtpp`` needs, and forks for every run of it: a second saved each time.

As a program this is the server, and after every fork the run itself. A run does what it does in a process of its own,
but for this: imports take no time (nor can one be forgotten), its seed of hashes is the server's, and it ends without
taking the interpreter apart. Tests that are about any of these start a process of their own.
"""

from __future__ import annotations

import atexit
import gc
import json
import mmap
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

LIBRARIES = ("networkx", "onnx", "rich.console", "rich.progress", "rich.table", "scipy.sparse.csgraph")
ROOMS = ("api", "cli", "datasets", "formats", "runtime", "solvers", "views")
OTHERS_DO = ("mtpp.__main__", "mtpp.solvers.bounds.mip.highs", "mtpp.solvers.certify.cells.cluster")
"""Modules that commands leave to processes which they start, and the one that is the command."""
OF_SOME_RUNS = ("bokeh.plotting", "bokeh.embed", "igraph", "jinja2", "matplotlib.figure", "torch")
"""Libraries that the server imports once a run has needed them; none starts a thread as it is imported."""

_LONGEST_MESSAGE = 1 << 20
_NEEDED = mmap.mmap(-1, len(OF_SOME_RUNS))
"""A byte for each of them, which a run shares with the server that it was forked from."""


class ForkServer:
    """Starts the server, and asks it for one run after the other; not for several threads at once.

    Parameters
    ----------
    environment
        Of the server and so of all runs.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},  # a second thread would not survive a fork
            )

    @staticmethod
    def works_here() -> bool:
        """Return whether the system has what it takes; on macOS, libraries of its own may not survive a fork."""
        return sys.platform == "linux"

    def run(
        self, command: Sequence[str], *, stdin: bytes = b"", cwd: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Do what ``subprocess.run`` does, with a pipe for each of the three streams.

        Parameters
        ----------
        command
            ``[sys.executable, "-m", MODULE, ARGUMENT…]``.

        Raises
        ------
        subprocess.TimeoutExpired
            After killing it, if it takes longer than that.
        """
        module, *arguments = command[2:]
        request = json.dumps({"module": module, "arguments": arguments, "cwd": os.fspath(cwd)}).encode()
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = os.pipe(), os.pipe(), os.pipe()
        theirs = (their_in, their_out, their_err)
        with open(our_in, "wb", 0) as feed, open(our_out, "rb") as out, open(our_err, "rb") as err:
            try:
                socket.send_fds(self._requests, [request], theirs)
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
            pid = self._reply()
            with ThreadPoolExecutor(3) as threads:
                threads.submit(_feed, feed, stdin)
                printed, complaints = threads.submit(out.read), threads.submit(err.read)
                code = self._exit_code(command, pid, timeout_s)
            return subprocess.CompletedProcess(command, code, printed.result(), complaints.result())

    def close(self) -> None:
        """End the server."""
        self._requests.close()
        self._process.communicate()

    def _exit_code(self, command: Sequence[str], pid: int, timeout_s: float) -> int:
        try:
            self._requests.settimeout(timeout_s)
            return self._reply()
        except BaseException as problem:
            os.kill(pid, signal.SIGKILL)
            self._requests.settimeout(None)
            self._reply()
            if isinstance(problem, TimeoutError):
                raise subprocess.TimeoutExpired(list(command), timeout_s) from None
            raise
        finally:
            self._requests.settimeout(None)

    def _reply(self) -> int:
        reply = self._requests.recv(_LONGEST_MESSAGE)
        if not reply:
            raise RuntimeError(f"the fork server has died: {self._process.communicate()[1].decode()}")
        return int(reply)


def _feed(feed: IO[bytes], data: bytes) -> None:
    with suppress(BrokenPipeError), feed:  # a run may end before it has read all
        feed.write(data)


def _preload() -> None:
    """Import the libraries and all of mtpp; what cannot be imported fails again in the runs, and is reported there."""
    for name in (*LIBRARIES, *_modules()):
        if name not in OTHERS_DO:
            with suppress(Exception):
                import_module(name)
    gc.collect()
    gc.freeze()


def _modules() -> Iterator[str]:
    """Yield the names of all modules; what lies beside the rooms of a checkout is none of it."""
    core = import_module("mtpp")
    yield from (module.name for module in pkgutil.walk_packages(core.__path__[:1], "mtpp."))
    for room in ROOMS:
        package = import_module(f"mtpp.{room}")
        yield from (module.name for module in pkgutil.walk_packages(package.__path__, f"mtpp.{room}."))


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Fork for every request; return it in the process that is to run it, and None in the server at the end."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the run, and for who waits for it
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_MESSAGE, 3)
        if not message:
            return None
        pid = os.fork()
        if pid == 0:
            requests.close()
            signal.signal(signal.SIGINT, interrupted)
            for stream, descriptor in enumerate(descriptors):
                os.dup2(descriptor, stream)
                os.close(descriptor)
            return json.loads(message)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(b"%d" % pid)
        requests.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        for needed, name in zip(_NEEDED[:], OF_SOME_RUNS, strict=True):
            if needed and name not in sys.modules:
                with suppress(Exception):
                    import_module(name)
                gc.freeze()


def _run(module: str, arguments: Sequence[str], cwd: str) -> NoReturn:
    """Be ``python -m MODULE ARGUMENTS``, just started, up to its end."""
    import_module("mtpp.host.process_age")._IMPORTED_AT = time.monotonic()
    del os.environ["OPENBLAS_NUM_THREADS"]
    os.chdir(cwd)
    sys.path.insert(0, os.getcwd())
    sys.argv[:] = [module, *arguments]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    _NEEDED[:] = bytes(name in sys.modules for name in OF_SOME_RUNS)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads as the interpreter does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    del sys.path[0]
    _preload()
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        _run(**request)
