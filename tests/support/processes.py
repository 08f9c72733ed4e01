"""Run the command line the way users do: as a process."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fork_server import ForkServer, fork_children

ROOT = Path(__file__).resolve().parents[2]
MTPP = (sys.executable, "-m", "mtpp")
LONGEST_S = 900.0
_SET_BY_LIBRARIES = ("TORCHINDUCTOR_CACHE_DIR",)
"""Variables that PyTorch sets in this process, in the midst of the tests."""
_COMPILING = "compiling (once) …\n"
"""On stderr of the first run that needs kernels of that kind, so of any test, by the order in which tests come."""


def environment() -> dict[str, str]:
    """Return the environment of a process outside a terminal, with the checkout on its path."""
    ours = {name: value for name, value in os.environ.items() if name not in _SET_BY_LIBRARIES}
    return {**ours, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def environment_with_libraries() -> dict[str, str]:
    """Return the same for a process that finds every library that this one finds, PyTorch beside the rest included."""
    path = [str(ROOT), *(place for place in sys.path if place)]
    return {**environment(), "PYTHONPATH": os.pathsep.join(path)}


def run(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``mtpp ARGUMENTS`` and return its exit code, stdout and stderr, but for the note that kernels are compiled.

    In a process that was forked where it can be: see :mod:`fork_server` for what :func:`run_afresh` is left for.
    """
    if _for_runs() != _AT_START or not ForkServer.works_here():
        return run_afresh(*arguments, stdin=stdin, cwd=cwd)
    command = [*MTPP, *map(str, arguments)]
    return _decoded(server().run(command, stdin=stdin, cwd=cwd, timeout_s=LONGEST_S))


def printed(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT, code: int = 0, stderr: str | None = None
) -> str:
    """Run a command that has to end with an exit code, and return its stdout; *stderr* is held to a text if given."""
    done = run(*arguments, stdin=stdin, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    assert stderr in (None, done.stderr)
    return done.stdout


def refused(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT) -> str:
    """Run a command that has to end with exit code 2 and one line of an error alone; return the line."""
    done = run(*arguments, stdin=stdin, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stdout + done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith("\n")
    return done.stderr


def run_with_libraries(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``mtpp ARGUMENTS`` where PyTorch is found; forked unless only ``PYTHONPATH`` leads to it."""
    torch = find_spec("torch")
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if torch is not None and not any(Path(str(torch.origin)).is_relative_to(place) for place in places):
        return run(*arguments, cwd=cwd)
    command = [*MTPP, *map(str, arguments)]
    return _decoded(
        subprocess.run(command, cwd=cwd, env=environment_with_libraries(), capture_output=True, timeout=LONGEST_S)
    )


def run_afresh(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``mtpp ARGUMENTS`` in a process of its own, with a hash seed of its own."""
    command = [*MTPP, *map(str, arguments)]
    return _decoded(
        subprocess.run(command, input=stdin, cwd=cwd, env=environment(), capture_output=True, timeout=LONGEST_S)
    )


def interrupted(*arguments: str | Path, after: str, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
    """Send ``mtpp ARGUMENTS -v`` a signal once a line of stderr begins with some words; return how it ends.

    Its stderr is what it says after the signal.
    """
    command = [*MTPP, *map(str, arguments), "-v"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith(after):
                    break
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()  # it might go on forever
    return process.returncode, stdout, stderr


MARK = "MTPP_TEST_RUN"
"""Variable by which processes of a run are found again."""


def left_over(mark: str) -> dict[int, str]:
    """Return the living processes of a run and the ends of their command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_text()
    return found


def gone(pid: int) -> bool:
    """Tell whether a process runs no more, or only waits to be forgotten."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return True


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for something that has to come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def _decoded(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    said = done.stderr.decode().replace(_COMPILING, "")
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), said)


def _for_runs() -> dict[str, str]:
    """Return the environment without what pytest changes for every test."""
    return {name: value for name, value in environment().items() if name != "PYTEST_CURRENT_TEST"}


_AT_START = _for_runs()


@cache
def server() -> ForkServer:
    """Return the one of this process, which is started when it is first asked for."""
    server = ForkServer.started(_AT_START)
    atexit.register(server.close)
    return server


def fork_all_children() -> None:
    """From now on, have those that the package starts in this process forked where they can be."""
    fork_children(lambda: server() if ForkServer.works_here() and _for_runs() == _AT_START else None)
