"""Processes that this one starts with the same Python, and the ties that keep them from outliving it."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import IO, Any, BinaryIO, NoReturn

_PR_SET_PDEATHSIG = 1


def serving(module: str, function: str = "serve") -> str:
    """Return the program of a child that runs a function of a module with the child's arguments."""
    return (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        f"from {module} import {function}; {function}(*map(int, sys.argv[2:]))"
    )


def command_line(program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program in this Python, whose first argument is the path for modules, as JSON."""
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    return [sys.executable, "-c", program, path, *arguments]


class ChildProcess:
    """A process that is started anew: no thread, lock or main module of this one is carried over.

    Not one of ``multiprocessing``: those of a daemonic process, such as a worker of Dask, may not have children.

    Parameters
    ----------
    program
        As :func:`serving` gives it. Its first argument is this process's search path for modules, as JSON.
    arguments
        Those after it.
    leads
        Whether it leads a group: it is killed with all that it starts, and gets no Ctrl-C. Else it is in the group of
        this process, and killed with that.
    options
        Others of :class:`subprocess.Popen`.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(self, program: str, *arguments: int, leads: bool, **options: Any) -> None:
        self._leads = leads
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command_line(program, *map(str, arguments)), start_new_session=leads, **options
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> bool:
        """Wait until the process has ended, so many seconds at most; tell whether it has."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.returncode is not None

    def exit_code(self) -> int:
        """Return what the process ended with, −s where signal s killed it; what is left of its group is killed."""
        if self._process.returncode is None and self._leads:
            end_family(self.pid)
        return self._process.wait()

    def kill(self) -> None:
        """End the process at once, and the group that it leads."""
        if self._process.returncode is None:  # nobody has asked yet, so its number is still its own
            if self._leads:
                end_family(self.pid)
            self._process.kill()

    def close(self) -> None:
        """Kill the process and wait until it is gone."""
        self.kill()
        self._process.wait()


class TalkingProcess(ChildProcess):
    """A child that is talked to in pickles, by :func:`message_pipes` on its side.

    Parameters
    ----------
    hear
        Is given, in a thread of its own, each message of the child, and None when there are no more.
    """

    def __init__(self, program: str, hear: Callable[[Any], None], *, leads: bool) -> None:
        pipe = subprocess.PIPE
        super().__init__(program, leads=leads, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        Thread(target=_listen, args=(self._process.stdout, hear), daemon=True).start()

    def send(self, message: Any) -> None:
        """Say something to the child.

        Raises
        ------
        OSError
            If it has died.
        """
        assert self._process.stdin is not None
        pickle.dump(message, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()

    def close(self) -> None:
        """Kill the process, wait until it is gone, and let go of what it was talked to through."""
        super().close()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # what was still to be written has no reader any more


def start_detached(module: str, function: str, *arguments: str) -> None:
    """Call a function of a module with texts, in a process of its own that goes on after this one.

    It has nothing of a terminal, and runs only when nothing else wants to.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    program = (
        "import json, os, sys; sys.path[:] = json.loads(sys.argv[1]); hasattr(os, 'nice') and os.nice(19); "
        f"from {module} import {function}; {function}(*sys.argv[2:])"
    )
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        command_line(program, *arguments),
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    )


def _listen(stream: IO[bytes], hear: Callable[[Any], None]) -> None:
    """Pass on what the child says until its pipe ends, perhaps within a message."""
    with suppress(Exception), stream:
        while True:
            hear(pickle.load(stream))
    hear(None)


def follow_parent() -> None:
    """Leave the user's interruption to the parent, and end when it ends or says so: to be called by a child."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def message_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return what a child hears its parent from, and what it answers to.

    They were its standard input and output; what a library prints from now on does not get between the messages.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return requests, replies


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends, where it can (Linux).

    Elsewhere, and for the processes that this one starts, see :func:`end_family`.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_family(leader: int | None = None) -> None:
    """Kill a process that leads a group, and the whole group with it; None: this one."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(os.getpgrp() if leader is None else leader, signal.SIGKILL)
        elif leader is not None:
            os.kill(leader, signal.SIGTERM)  # which ends it at once where there are no groups


def orphaned() -> NoReturn:
    """End this process, and what it started: nobody waits for it any more."""
    end_family()
    os._exit(1)
