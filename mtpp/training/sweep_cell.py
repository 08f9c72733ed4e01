"""Cell of a sweep: the best time for numbers of devices and of micro-batches at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class SweepCell:
    """What is known for at most so many devices and a sum of degrees of at most so much.

    Attributes
    ----------
    time
        The best plan's time per sample in ticks, None if there is none.
    lower
        No plan takes less; equal to *time* once that is proven to be the least.
    stages
        Number of stages of that plan.
    """

    time: Fraction | None
    lower: Fraction
    stages: int | None
