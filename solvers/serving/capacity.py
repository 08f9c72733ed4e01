"""Capacity of devices for a model: the largest context, or the most sequences, at which some stages all fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.language_models.capacity import largest
from mtpp.solvers.serving.fitting import FittingStage, Places, fitting_stages

Reach = Sequence[Sequence[int]]
"""For each class of devices, the furthest stop of a stage that starts at each op and fits."""


@dataclass(frozen=True)
class LargestFit:
    """Capacity with stages that show it.

    Attributes
    ----------
    value
        The largest number of tokens or sequences at which stages fit; one at which nothing grows any more where any
        number does.
    stages
        That all fit at it.
    next_infeasible
        The number after it: no stages fit there, all were looked at. None where stages fit at any number.
    decisions
        Numbers that were looked at.
    """

    value: int
    stages: Sequence[FittingStage]
    next_infeasible: int | None
    decisions: int


def largest_fit(reach_at: Callable[[int], Reach], places: Places, settled: int) -> LargestFit | None:
    """Return the largest number of tokens or sequences at which stages fit on devices; None where none fit at 1.

    Parameters
    ----------
    reach_at
        Reach of the classes of devices at a number. What fits at one fits at all lower ones.
    settled
        Nothing that grows with the number fits from this one on.
    """
    places.refuse_too_many()
    found: dict[int, list[FittingStage] | None] = {}

    def holds(number: int) -> bool:
        if number not in found:
            found[number] = fitting_stages(reach_at(number), places)
        return found[number] is not None

    value = largest(holds, settled)
    if value == 0:
        return None
    stages = found[settled if value is None else value]
    assert stages is not None
    return LargestFit(value or settled, stages, None if value is None else value + 1, len(found))


def reach_of(ways: Sequence[tuple[Int64Array, int | None]], cuts: BoolArray) -> list[int]:
    """Return the furthest stop of a stage that starts at each op and fits a device, the start where none does.

    Parameters
    ----------
    ways
        For each way in which the device may hold a stage: bytes of ranges of ops, as
        :func:`~mtpp.solvers.serving.memory_needs.memory_needs` has them, and the limit.
    cuts
        For each place from 0 to n, whether a stage may end there.
    """
    n = len(cuts) - 1
    start, place = np.arange(n), np.arange(n + 1)
    before = np.maximum.accumulate(np.where(cuts, place, 0))
    furthest = start
    for needs, limit in ways:
        fits = np.full(n, n) if limit is None else start + ((needs <= limit) & (place > start[:, None])).sum(axis=1)
        furthest = np.maximum(furthest, fits)
    reached: list[int] = np.maximum(start, before[furthest]).tolist()
    return [*reached, n]


def cuts_between(groups: Sequence[Sequence[int]], ops: int) -> BoolArray:
    """Return for each place from 0 to n whether a stage may end there without a cut through a group of ops."""
    cuts = np.ones(ops + 1, dtype=np.bool_)
    for group in groups:
        cuts[min(group) + 1 : max(group) + 1] = False
    return cuts
