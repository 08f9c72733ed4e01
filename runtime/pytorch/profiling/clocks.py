"""Clocks of devices: marks set while a program runs, and the microseconds between them once it has."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from mtpp.runtime.pytorch.library import pytorch

if TYPE_CHECKING:
    import torch

_HEAD_START_CYCLES = 300_000
"""Of a GPU: 0.15 to 0.3 ms, in which the processor hands it the kernels of an op."""


class Clock(Protocol):
    """What times are taken by.

    Attributes
    ----------
    device, device_name
        Whose work is timed, and what it is called.
    """

    device: torch.device
    device_name: str

    def head_start(self) -> None:
        """Let the processor get ahead of the device, so that what comes next is not timed waiting for it."""
        ...

    def mark(self) -> Any:
        """Return a mark that the device reaches when it has done all before it."""
        ...

    def wait(self) -> None:
        """Wait until all work is done."""
        ...

    def between_us(self, start: Any, end: Any) -> Fraction:
        """Return the time between two marks, after :meth:`wait`."""
        ...


class HostClock:
    """The processor's own clock: it does all work at once."""

    def __init__(self) -> None:
        self.device = pytorch().device("cpu")
        self.device_name = "CPU"

    def head_start(self) -> None:
        """Do nothing."""

    def mark(self) -> int:
        """Return the time in nanoseconds."""
        return time.perf_counter_ns()

    def wait(self) -> None:
        """Do nothing."""

    def between_us(self, start: int, end: int) -> Fraction:
        """Return the difference."""
        return Fraction(end - start, 1000)


class CudaClock:
    """Events of a GPU, in the order of the work that it is given.

    Notes
    -----
    A GPU that waits for the processor between two events is timed waiting. Before each op it is given some idle work,
    during which the processor hands it the op.
    """

    def __init__(self) -> None:
        torch = pytorch()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.device_name = str(torch.cuda.get_device_name(self.device))
        self._sleep = getattr(torch.cuda, "_sleep", None)

    def head_start(self) -> None:
        """Have the GPU idle for a while."""
        if self._sleep is not None:
            self._sleep(_HEAD_START_CYCLES)

    def mark(self) -> Any:
        """Return an event that is recorded now."""
        event = pytorch().cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        """Wait for the GPU."""
        pytorch().cuda.synchronize(self.device)

    def between_us(self, start: Any, end: Any) -> Fraction:
        """Return what the GPU says, in whole nanoseconds."""
        return Fraction(round(start.elapsed_time(end) * 10**6), 1000)
