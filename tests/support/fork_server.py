"""A process that has imported what ``mtpp`` needs, and forks for every process that is asked for: a second saved each.

As a program this is the server, and after every fork what was asked for: a run of a module, or the text of a program.
It does what it does in a process of its own, but for this: imports take no time (nor can one be forgotten), files that
an imported library keeps open are open from the start, its seed of hashes is the server's, and it ends without taking
the interpreter apart. Tests that are about any of these start a process of their own.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import mmap
import os
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from resource import RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, getrlimit
from types import SimpleNamespace
from typing import Any, NoReturn

LIBRARIES = ("networkx", "onnx", "rich.console", "rich.progress", "rich.table", "scipy.sparse.csgraph")
ROOMS = ("api", "cli", "datasets", "formats", "runtime", "solvers", "views")
OTHERS_DO = (
    *("mtpp.__main__", "mtpp.datasets.export_samples", "mtpp.solvers.bounds.mip.highs"),
    "mtpp.solvers.certify.cells.cluster",
)
"""Modules that are no part of a run: commands leave them to processes which they start, or they are one themselves."""
OF_SOME_RUNS = (
    *("bokeh.plotting", "bokeh.embed", "highspy", "igraph", "jinja2", "matplotlib.figure", "onnxruntime", "torch"),
    "torch.export.pt2_archive._package",
)
"""Libraries that the server imports once a run has needed them; no thread that one starts is missed in a fork."""

SERVING = ("mtpp.runtime.pipeline.worker", "mtpp.solvers.bounds.mip.highs", "mtpp.solvers.certify.cells.worker")
"""Modules of the processes that the package starts."""

_THREADS = "OPENBLAS_NUM_THREADS"
_LONGEST_MESSAGE = 1 << 20
_MOST_DESCRIPTORS = 64
_ABOVE_ALL = 512
"""Least number for descriptors on their way to the one that they are to have."""
_NEEDED = mmap.mmap(-1, len(OF_SOME_RUNS))
"""A byte for each of them, which a run shares with the server that it was forked from."""
_CLONE = {"x86_64": 56, "aarch64": 220}
"""Number of the system call by which processes fork, by machine."""
_CLONE_PARENT = 0x8000


class ForkServer:
    """Asks a process that serves for one process after the other.

    Parameters
    ----------
    requests
        One end of a pair of sockets, the other one being the server's.
    environment
        Of the server.
    close
        Ends the server, and returns what it had to complain of.
    """

    def __init__(
        self, requests: socket.socket, environment: Mapping[str, str], close: Callable[[], bytes] = bytes
    ) -> None:
        self._requests, self._environment, self._close = requests, dict(environment), close
        self._one_by_one = threading.Lock()

    @classmethod
    def started(cls, environment: Mapping[str, str]) -> ForkServer:
        """Return a new server, with that environment."""
        ours, theirs = _pair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env={**environment, _THREADS: "1"},  # a second thread would not survive a fork
            )
        return cls(ours, environment, lambda: process.communicate()[1])

    @staticmethod
    def works_here() -> bool:
        """Return whether the system has what it takes; on macOS, libraries of its own may not survive a fork."""
        return sys.platform == "linux" and platform.machine() in _CLONE

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Return the number of a new child of this process, which was forked by the server."""
        with self._one_by_one:
            socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
            reply = self._requests.recv(_LONGEST_MESSAGE)
            if not reply:
                raise RuntimeError(f"the fork server has died: {self._close().decode()}")
        return int(reply)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Do what ``subprocess.Popen`` does, where its options are those that others here have a use for.

        Parameters
        ----------
        command
            ``[sys.executable, "-m", MODULE, ARGUMENT…]`` or ``[sys.executable, "-c", PROGRAM, ARGUMENT…]``.
        """
        return _Forked(command, self, **options)

    def run(
        self, command: Sequence[str], *, stdin: bytes = b"", cwd: Path, timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Do what ``subprocess.run`` does, with a pipe for each of the three streams and the server's environment.

        Raises
        ------
        subprocess.TimeoutExpired
            After killing it, if it takes longer than that.
        """
        pipe = subprocess.PIPE
        with self.start(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=self._environment) as process:
            try:
                printed, complaints = process.communicate(stdin, timeout_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, printed, complaints)

    def close(self) -> None:
        """End the server."""
        self._requests.close()
        self._close()


class _Forked(subprocess.Popen[bytes]):
    """A child that a server forks, in place of one that is started anew."""

    def __init__(self, command: Sequence[str], server: ForkServer, **options: Any) -> None:
        self._server = server
        super().__init__(command, **options)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        _, _, _, pass_fds, cwd, env, _, _, _, *pipes = others[:15]
        start_new_session = others[-2]
        streams = [own if given == -1 else given for own, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        request = {
            "kind": args[1],
            "program": args[2],
            "arguments": args[3:],
            "folder": os.fspath(os.getcwd() if cwd is None else cwd),
            "environment": dict(os.environ if env is None else env),
            "leads": bool(start_new_session),
            "numbers": [0, 1, 2, *pass_fds],
        }
        try:
            self.pid = self._server.fork(request, [*streams, *pass_fds])
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def fork_children(server: Callable[[], ForkServer | None]) -> None:
    """From now on, have those that the package starts in this process forked where there is a server for them."""
    child_process = import_module("mtpp.host.child_process")
    programs = {child_process.serving(module) for module in SERVING}

    def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        found = server() if command[2] in programs and _limits() == _LIMITS_AT_START else None
        return subprocess.Popen(command, **options) if found is None else found.start(command, **options)

    child_process.subprocess = SimpleNamespace(**vars(subprocess) | {"Popen": start})


def _limits() -> list[tuple[int, int]]:
    return [getrlimit(kind) for kind in (RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE)]


_LIMITS_AT_START = _limits()


def _preload() -> None:
    """Import the libraries and all of mtpp; what cannot be imported fails again in the runs, and is reported there."""
    for name in (*LIBRARIES, *_modules()):
        if name not in OTHERS_DO:
            with suppress(Exception):
                import_module(name)
    gc.collect()
    _settle()


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
        message, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_MESSAGE, _MOST_DESCRIPTORS)
        if not message:
            return None
        _import_needed()
        pid = _fork_sibling()
        if pid == 0:
            requests.close()
            request: dict[str, Any] = json.loads(message)
            _place(descriptors, request.pop("numbers"))
            signal.signal(signal.SIGINT, interrupted)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(b"%d" % pid)


def _fork_sibling() -> int:
    """Do what ``os.fork`` does in a process of one thread, but that the new one is a child of this one's parent."""
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    pid: int = call(_CLONE[platform.machine()], _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    if pid < 0:
        raise OSError("a fork failed")
    return pid


@cache
def _nursery() -> ForkServer | None:
    """Return a server that is a copy of this process as it is when first asked for one; None if it has threads then."""
    if len(os.listdir("/proc/self/task")) > 1:
        return None
    ours, theirs = _pair()
    if os.fork():
        theirs.close()
        return ForkServer(ours, os.environ)
    ours.close()
    _settle()  # folders of the process that this one is a copy of are not its own to remove
    with open(os.devnull, "r+b", 0) as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    request = _serve(theirs)
    if request is None:
        os._exit(0)
    _run(**request)


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _import_needed() -> None:
    for needed, name in zip(_NEEDED[:], OF_SOME_RUNS, strict=True):
        if needed and name not in sys.modules:
            with suppress(Exception):
                import_module(name)
            _settle()


def _settle() -> None:
    """Have runs neither look for garbage in things that were there before, nor take them apart at their ends."""
    gc.freeze()
    for final in weakref.finalize._registry:  # type: ignore[attr-defined]
        final.atexit = False


def _place(descriptors: Sequence[int], numbers: Sequence[int]) -> None:
    """Give descriptors the numbers that they are to have."""
    on_their_way = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ABOVE_ALL) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(on_their_way, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _run(
    kind: str, program: str, arguments: Sequence[str], folder: str, environment: Mapping[str, str], leads: bool
) -> NoReturn:
    """Be ``python -m MODULE ARGUMENTS`` or ``python -c PROGRAM ARGUMENTS``, just started, up to its end."""
    if leads:
        os.setsid()
    import_module("mtpp.host.deadline")._IMPORTED_AT = time.monotonic()
    os.environ.clear()
    os.environ.update(environment)
    if program == "mtpp":
        fork_children(_nursery)
    os.chdir(folder)
    sys.path.insert(0, os.getcwd())
    sys.argv[:] = [program if kind == "-m" else kind, *arguments]
    code = 0
    try:
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            exec(program, {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    for place, name in enumerate(OF_SOME_RUNS):
        if name in sys.modules:
            _NEEDED[place] = 1
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
