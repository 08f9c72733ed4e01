"""Stages of consecutive ops on devices, each of which fits: all ways of cutting and of placing are covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from mtpp.errors import InputError

MOST_STATES = 2**18
"""Numbers of devices of each class that may be looked at."""


class FittingStage(NamedTuple):
    """Ops from *start* to before *stop* on a device of the list."""

    device: int
    start: int
    stop: int


@dataclass(frozen=True)
class Places:
    """Devices that stages may stand on.

    Attributes
    ----------
    class_of
        Class of each device, in the machine's order.
    free
        Whether devices may stand anywhere in the pipeline.
    most_used
        Devices that may hold a stage.
    """

    class_of: Sequence[int]
    free: bool
    most_used: int

    def refuse_too_many(self) -> None:
        """Raise InputError where devices differ in more ways than can be looked at."""
        if self.free and (states := prod(count + 1 for count in Counter(self.class_of).values())) > MOST_STATES:
            raise InputError(
                f"devices in free order differ too much: {states:,} ways to choose some of them",
                parameter="machine",
                remedy="give them an order, or let some be equal",
            )


def fitting_stages(reach: Sequence[Sequence[int]], places: Places) -> list[FittingStage] | None:
    """Return stages that cover all ops, None where there are none.

    Parameters
    ----------
    reach
        For each class of devices, the furthest stop of a stage that starts at each op and fits; the start itself where
        none does. A stage that fits lets all ranges inside it fit.

    Returns
    -------
    In the order of the pipeline; devices that hold nothing are left out.

    Notes
    -----
    Of all pipelines with the same devices the one that reaches furthest can be continued wherever another one can. So
    the furthest place for each number of devices of each class (free order) or each number of leading devices and of
    used ones (fixed order) decides.
    """
    return _free(reach, places) if places.free else _fixed(reach, places)


def _fixed(reach: Sequence[Sequence[int]], places: Places) -> list[FittingStage] | None:
    ops = len(reach[0]) - 1
    furthest: list[list[FittingStage]] = [[]]  # by number of used devices
    for device, c in enumerate(places.class_of):
        for used in range(min(len(furthest), places.most_used) - 1, -1, -1):
            before = furthest[used]
            at = before[-1].stop if before else 0
            stages = before if at == ops else [*before, FittingStage(device, at, reach[c][at])]
            if used + 1 == len(furthest):
                furthest.append(stages)
            elif stages and (not furthest[used + 1] or stages[-1].stop > furthest[used + 1][-1].stop):
                furthest[used + 1] = stages
    return next((stages for stages in furthest if stages and stages[-1].stop == ops), None)


def _free(reach: Sequence[Sequence[int]], places: Places) -> list[FittingStage] | None:
    ops, count_of = len(reach[0]) - 1, Counter(places.class_of)
    classes = sorted(count_of)
    states = sorted(product(*(range(count_of[c] + 1) for c in classes)), key=sum)
    best: dict[tuple[int, ...], tuple[int, int]] = {states[0]: (0, -1)}
    for state in states[1:]:
        if sum(state) > places.most_used:
            break
        ways = []
        for i, used in enumerate(state):
            if used:
                at = best[_less(state, i)][0]
                ways.append((reach[classes[i]][at], i))
        best[state] = max(ways)
        if best[state][0] == ops:
            return _placed(state, best, classes, places)
    return None


def _less(state: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*state[:i], state[i] - 1, *state[i + 1 :])


def _placed(
    state: tuple[int, ...], best: dict[tuple[int, ...], tuple[int, int]], classes: Sequence[int], places: Places
) -> list[FittingStage]:
    devices = {c: [i for i, own in enumerate(places.class_of) if own == c] for c in classes}
    stages: list[FittingStage] = []
    while any(state):
        stop, i = best[state]
        state = _less(state, i)
        start = best[state][0]
        if stop > start:
            stages.append(FittingStage(devices[classes[i]].pop(0), start, stop))
    return stages[::-1]
