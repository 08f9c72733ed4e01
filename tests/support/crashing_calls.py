"""Functions that a guarded call runs in its own process: one that is ended by a signal, and some that end otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from signal import Signals
from typing import Any

from mtpp.errors import InputError


class Particular(InputError):
    """An error made from more than exceptions keep when they are pickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}", source="file", where="place", remedy="do it otherwise")


def doubled(number: int, tell: Callable[[str], None]) -> int:
    """Return twice a number, and tell about it."""
    tell("doubling")
    return 2 * number


def killed(number: int, tell: Callable[[str], None]) -> None:
    """End this process by a signal."""
    tell("breaking off")
    os.kill(os.getpid(), Signals(number))


def refused(tell: Callable[[str], None]) -> Any:
    """Raise an error that cannot be pickled as it is."""
    raise Particular("one", "two")


def broken(tell: Callable[[str], None]) -> Any:
    """Raise what no user can cause."""
    raise ZeroDivisionError("nothing to divide by")
