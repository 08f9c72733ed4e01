"""Length of a run: batches for about half a minute where the caller names no number; progress through them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mtpp.units import PICOSECONDS, format_clock, format_picoseconds

BATCHES_S = 30.0
"""Seconds of batches of a run whose caller names no number."""

FEWEST_BATCHES, MOST_BATCHES = 5, 200
LEAST_WARMUP, MOST_WARMUP = 1, 10
_WARMUP_SHARE = 0.1
"""Part of the seconds of batches that warming up takes at most."""

_TELL_S = 1.0
"""Seconds between two lines of progress: more of them would take time from what is measured."""


@dataclass(frozen=True)
class RunLength:
    """Batches of a run.

    Attributes
    ----------
    batches, warmup
        To be timed, and before.
    period_s
        Estimated seconds from one batch to the next that shorten the run; None where nothing does.
    """

    batches: int
    warmup: int
    period_s: float | None = None

    @property
    def told(self) -> str:
        """Reason for fewer batches than usual, for people; empty where there is none."""
        if self.period_s is None:
            return ""
        least = f", at least {FEWEST_BATCHES}" if self.batches == FEWEST_BATCHES else ""
        period = format_picoseconds(self.period_s * PICOSECONDS["s"])
        return f"as many batches of about {period} as take {BATCHES_S:.0f} s{least}"


def run_length(batches: int | None, warmup: int | None, alone: NDArray[np.float64], at_a_time: int) -> RunLength:
    """Return the length of a run, numbers that are None chosen by the time of a batch.

    Parameters
    ----------
    alone
        Seconds of each stage with nothing else running, shape (rounds, stages).
    at_a_time
        Stages that the cores run at the same time, at least 1.

    Notes
    -----
    A full pipeline takes as long for a batch as its slowest stage, and no less than all stages on the cores at hand.
    """
    stages = np.median(alone, axis=0)
    period = float(max(stages.max(), stages.sum() / at_a_time))
    fitting = MOST_BATCHES if period * MOST_BATCHES <= BATCHES_S else int(BATCHES_S / period)
    chosen = max(FEWEST_BATCHES, fitting)
    before = max(LEAST_WARMUP, min(MOST_WARMUP, int(fitting * _WARMUP_SHARE)))
    return RunLength(
        chosen if batches is None else batches,
        before if warmup is None else warmup,
        period if batches is None and chosen < MOST_BATCHES else None,
    )


class Progress(Protocol):
    """Listener to the batches of a run."""

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Take note of what is being done, and that *done* of *total* batches are done."""


class Unheard:
    """Listener that does nothing."""

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Take no note."""


class BatchProgress:
    """Batches that are done, told of once a second with the time that is left.

    Parameters
    ----------
    done
        Batches that all stages have done.
    total
        Of the run.
    progress
        Is told of them.
    """

    def __init__(self, done: Callable[[], int], total: int, progress: Progress) -> None:
        self._done, self._total, self._progress = done, total, progress
        self._began = time.monotonic()
        self._next = self._began

    def look(self) -> None:
        """Tell of it if a second has gone since the last time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _TELL_S
        done = self._done()
        left = "" if not done else f", about {format_clock((now - self._began) / done * (self._total - done))} left"
        self._progress.show(f"batches through the pipeline{left}", done, self._total)
