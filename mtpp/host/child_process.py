"""A process that must not outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


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
