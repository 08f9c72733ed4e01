"""Ctrl-C and SIGTERM: one line on standard error and exit code 130, from the first line of the program to its last.

An exception that a signal raises may come up anywhere: in the midst of an import, where libraries catch it, print it or
make another of it, or in a destructor, which loses it. So the first signal ends the process on the spot, but for three
kinds of blocks:

* :class:`mtpp.host.interruption.Interruption`, around searches: they end in order, with their best so far;
* :func:`held`, around the writing of results: it is finished before the process ends;
* :func:`unwinding`, around what has to be cleaned up: ``KeyboardInterrupt`` is raised there.

A second signal ends the process wherever it is. What it has started goes with it: workers watch over their parent. All
of this is for the program alone; where :func:`install` has not been called, nothing here does anything.

It is the first of our modules that is imported, so it imports next to nothing.
"""

from __future__ import annotations

import _signal  # what `signal` wraps, without the milliseconds that importing it takes
import atexit
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import NoReturn

INTERRUPTED = 130

_SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
_LINE = b"error: interrupted\n"
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"

_ONE_S = 0.2
"""Seconds within which two signals are one: `timeout` sends its signal to the process, and again to its group."""


class _State:
    """State of the process: signals that came, and blocks that it is in."""

    installed = False
    asked_at: float | None = None
    holds = 0
    kept = False
    unwinding = 0
    told = False


def install() -> None:
    """Let signals end this process as said above; those that it was started with as ignored as well.

    Before Python runs the first line of this package (:mod:`mtpp`), nothing can be done: it ends on a signal as any
    program in Python does.
    """
    _State.installed = True
    for number in _SIGNALS:
        _signal.signal(number, _handle)
    sys.unraisablehook = _unraisable
    sys.excepthook = _uncaught
    atexit.register(_ignore)  # as the first, it is called last: nothing is left to wait for


def again(since: float) -> None:
    """End the process on a second signal; *since* is when the first one came, by the monotonic clock."""
    if time.monotonic() - since < _ONE_S:
        return
    if not _State.installed:
        raise KeyboardInterrupt
    end_now()


def end_now() -> NoReturn:
    """Say that the process was interrupted, and end it at once."""
    if sys.stderr is not None:  # closed; its number may be that of another file
        try:
            if "rich.live" in sys.modules and os.isatty(2):
                os.write(2, _SHOW_CURSOR)
            if not _State.told:
                os.write(2, _LINE)
        except OSError:
            pass
    os._exit(INTERRUPTED)


def installed() -> bool:
    """Return whether this process is the program, and not another one that uses the library."""
    return _State.installed


def told() -> bool:
    """Return whether standard error says already that the run was interrupted."""
    return _State.told


def tell(said: bool = True) -> None:
    """Take note that standard error says so already, or that it does not."""
    _State.told = said


def asked() -> bool:
    """Return whether a signal has come that nobody has taken care of."""
    return _State.asked_at is not None


def keep() -> None:
    """Hold signals from now on until the next :func:`held` block has ended: there is a result to be written."""
    if _State.installed and not _State.kept:
        _State.kept = True
        _State.holds += 1


class held:
    """A block that is finished before a signal ends the process."""

    def __enter__(self) -> None:
        _State.holds += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _State.holds -= 1
        if _State.kept and _State.holds == 1:
            _State.kept = False
            _State.holds = 0
        _settle()


class unwinding:
    """A block that cleans up after itself: a signal raises ``KeyboardInterrupt`` in it."""

    def __enter__(self) -> None:
        _State.unwinding += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _State.unwinding -= 1
        if kind is None:  # else the exception goes on to the caller
            _settle()


def ignore() -> None:
    """Have no signal get between the last words and the end."""
    if _State.installed:
        _ignore()


def finish(code: int) -> None:
    """Prepare the end of the process: from now on a signal ends it with *code* and without a word.

    An interrupted process ends here, without waiting for threads that may be in long loops.
    """
    if not _State.installed:
        return
    for number in _SIGNALS:
        _signal.signal(number, lambda number, frame: os._exit(code))
    if code == INTERRUPTED:
        atexit._run_exitfuncs()
        os._exit(code)


def _handle(number: int, frame: FrameType | None) -> None:
    since, _State.asked_at = _State.asked_at, time.monotonic()
    if since is not None:
        _State.asked_at = since
        again(since)
    elif not _State.holds:
        _settle()


def _settle() -> None:
    """Do what a signal asked for, if one has, and nothing holds it."""
    if not _State.installed or _State.asked_at is None or _State.holds:
        return
    if _State.unwinding:
        raise KeyboardInterrupt
    end_now()


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """End the process where an interruption got lost; report everything else as always."""
    if _State.asked_at is not None and isinstance(unraisable.exc_value, KeyboardInterrupt):
        end_now()
    sys.__unraisablehook__(unraisable)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print no traceback of an interruption by any library."""
    if _State.asked_at is None or not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def _ignore() -> None:
    for number in _SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)
