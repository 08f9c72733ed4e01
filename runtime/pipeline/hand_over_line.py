"""Time of a message between two stages as a line of its bytes: a latency, and a bandwidth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Message:
    """A size of messages, and the seconds for which a stage has one in hand: the median over batches.

    Attributes
    ----------
    sent
        Whether the stage writes it; else it reads it.
    """

    bytes: int
    seconds: float
    sent: bool


@dataclass(frozen=True)
class HandOverLine:
    """Line by which either stage pays for a message: latency + bytes / bandwidth.

    Attributes
    ----------
    latency_s, bandwidth_bytes_per_s
        The bandwidth is infinite where larger messages take no longer.
    residual
        Root of the mean square of relative deviations from the line.
    messages
        That it was drawn through.
    """

    latency_s: float
    bandwidth_bytes_per_s: float
    residual: float
    messages: tuple[Message, ...]

    @classmethod
    def through(cls, messages: Sequence[Message]) -> HandOverLine:
        """Return the line whose squared relative deviations have the least sum; neither part is negative.

        Relative, for the largest messages take a thousand times as long as the smallest, whose time is the latency.

        Raises
        ------
        ValueError
            If there is no message, or one took no time.
        """
        size = np.array([one.bytes for one in messages], dtype=np.float64)
        taken = np.array([one.seconds for one in messages])
        if not len(taken) or not (taken > 0).all():
            raise ValueError("no messages, or messages that took no time")
        latency, per_byte = _line(1 / taken, size / taken)
        deviation = (latency + per_byte * size) / taken - 1
        residual = float(np.sqrt((deviation**2).mean()))
        return cls(latency, 1 / per_byte if per_byte else math.inf, residual, tuple(messages))

    def seconds(self, count: int) -> float:
        """Return the time of a message of *count* bytes."""
        return self.latency_s + count / self.bandwidth_bytes_per_s


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the a, b ≥ 0 with the least Σ (a·x + b·y − 1)²."""
    xx, xy, yy, x1, y1 = (float(v) for v in (x @ x, x @ y, y @ y, x.sum(), y.sum()))
    determinant = xx * yy - xy * xy
    if determinant > 1e-12 * xx * yy:
        a, b = (x1 * yy - y1 * xy) / determinant, (xx * y1 - xy * x1) / determinant
        if a >= 0 and b >= 0:
            return a, b
    # On the edge: one of them is 0. Of messages of one size all is latency.
    alone = [(x1 / xx, 0.0), (0.0, y1 / yy if yy else 0.0)]
    return min(alone, key=lambda ab: float(((ab[0] * x + ab[1] * y - 1) ** 2).sum()))
