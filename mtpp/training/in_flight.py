"""Micro-batches in flight: the fewest that cost a pipeline no throughput (Jeon et al. 2025, Table 2)."""

from __future__ import annotations

from functools import lru_cache


def least_before(size: int, interval: int, later_size: int, later_interval: int, later: int) -> int:
    """Return the samples that a stage has to keep in flight for one stage behind it: Table 2 in one line.

    Parameters
    ----------
    size, interval
        Samples b of its micro-batches, and k of its kFkB order.
    later_size, later_interval, later
        The same of the stage behind, and the samples that it keeps in flight.

    Notes
    -----
    All ten rows of the table. It is exact where forward passes take as long as backward passes, one of the sizes
    divides the other, and transfers are free.
    """
    return later + more_before(size, interval, later_size, later_interval)


@lru_cache(maxsize=1_024)
def more_before(size: int, interval: int, later_size: int, later_interval: int) -> int:
    """Return the samples that a stage has to keep in flight beyond those of a stage behind it."""
    ours, theirs, larger = interval * size, later_interval * later_size, max(size, later_size)
    return max(0, ours - theirs) + larger * (2 if larger < min(ours, theirs) else 1)
