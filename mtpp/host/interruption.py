"""Ctrl-C and SIGTERM as a flag, so that a search can end in order and give its best so far."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any

from mtpp.host import interrupts

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption(AbstractContextManager["Interruption"]):
    """While it is entered, the first signal sets :attr:`requested` and the second ends the process.

    From its end until the result is delivered, signals wait: what was found is written first. Outside the main thread,
    where Python delivers no signals, nothing ever sets it. SIGTERM is taken in the program alone: other programs that
    use the library have handlers of their own.
    """

    def __init__(self) -> None:
        self.requested = False
        self._since = 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in _SIGNALS if interrupts.installed() else _SIGNALS[:1]:
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            interrupts.keep()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            interrupts.again(self._since)
        else:
            self.requested, self._since = True, time.monotonic()
