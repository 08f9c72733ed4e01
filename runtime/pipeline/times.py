"""Times of each batch in each stage, in shared memory: they outlive a worker that is stopped or dies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtpp.runtime.pipeline.memory import Layout, Ring, arrays

COLUMNS = ("started", "wait_in", "wait_out", "busy", "cpu", "ended")
"""Of a row: the first and the last on the system's monotonic clock; all in seconds."""


@dataclass(frozen=True)
class TimesTable:
    """Where a worker notes down its times: a row per batch, written before the batch counts as done."""

    ring: Ring

    @classmethod
    def make(cls, rows: int) -> TimesTable:
        """Make an empty one."""
        layout = Layout.of([("done", "int64", (1,)), ("rows", "float64", (rows, len(COLUMNS)))])
        return cls(Ring.make(layout, 1, "the times of all batches"))

    def open(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the number of rows that are done, shape (1,), and the rows, shape (batches, columns)."""
        views = arrays(self.ring.views()[0])
        return views["done"], views["rows"]


@dataclass(frozen=True)
class StageTimes:
    """The times of one stage, a number per batch, in seconds.

    Attributes
    ----------
    busy
        Within ONNX Runtime, by the clock on the wall.
    cpu
        What of that its process was running.
    wait_in, wait_out
        For inputs, and for room for the outputs.
    started, ended
        When it began to wait for a batch's inputs, and when it handed its outputs on.
    """

    started: NDArray[np.float64]
    wait_in: NDArray[np.float64]
    wait_out: NDArray[np.float64]
    busy: NDArray[np.float64]
    cpu: NDArray[np.float64]
    ended: NDArray[np.float64]

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> StageTimes:
        """Return the times in the rows of a table."""
        return cls(*(rows[:, column].copy() for column in range(len(COLUMNS))))
