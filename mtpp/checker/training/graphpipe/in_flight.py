"""Fewest micro-batches in flight that a stage may have: Jeon et al. (2025), Table 2, in one line.

In samples, i_x is at least i_y + max(0, k_x·b_x - k_y·b_y) + m or 2m for each stage y behind x, m being the larger size
of the two, and doubled if it is below both k·b; a stage with none behind it keeps k·b. Rounded up to micro-batches, and
never more than there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Schedule(NamedTuple):
    """Samples b of a stage's micro-batches, k of its kFkB order, and its micro-batches in flight."""

    b: int
    k: int
    in_flight: int


def fewest_in_flight(b: int, k: int, behind: Iterable[Schedule], mini_batch: int) -> int:
    """Return the fewest micro-batches in flight, given the stages that read from this one."""
    needed = k * b
    for other in behind:
        ours, theirs, larger = k * b, other.k * other.b, max(b, other.b)
        step = 2 * larger if larger < min(ours, theirs) else larger
        needed = max(needed, other.b * other.in_flight + max(0, ours - theirs) + step)
    return min(-(-needed // b), mini_batch // b)


def sizes_agree(b: int, other: int) -> bool:
    """Tell whether neighbours may have micro-batches of these sizes: one divides the other."""
    return max(b, other) % min(b, other) == 0
