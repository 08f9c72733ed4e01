"""Sweeps over the stages at one limit: weights moved from stage to stage, and labels that no partition has removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.solvers.bounds.frontier.device_terms import ClassTerms
from mtpp.solvers.bounds.frontier.kernels.fronts import FULL, Arcs, Slope, arcs_of
from mtpp.solvers.bounds.frontier.kernels.layers import (
    BEFORE,
    INSIDE,
    LABELS,
    Layers,
    Steps,
    costs_ahead,
    costs_behind,
    trimmed,
    within_cost,
)
from mtpp.solvers.bounds.frontier.kernels.marginals import Swept, sweep
from mtpp.solvers.bounds.frontier.scan import LARGEST_WORTH, Room, TooManyStates, best_slope, scan_layers
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.position_weights.proof import Step
from mtpp.solvers.bounds.position_weights.windows import Windows

_COARSE_UNITS = 1000
"""Weight of a full stage up to which weights become finer before a limit is given up."""

_MOST_UNITS = 4000
_FEWEST_UNITS = 120

_STAGES_AT_ONCE = 4
"""Times the states of one scan that those of all stages may be together, without the arrays that make them."""

_HANDY_ENTRIES = 40_000_000
"""Entries of all scans of a sweep up to which weights may become finer."""

_STEADY = 0.01
"""Part of the slack that a sweep has to take at least to count."""

_PATIENCE = 2
"""Sweeps in a row that take less, and remove no label, before weights become finer, or a limit is given up."""

_FEW = 0.01
"""Labels for each op that a sweep has to remove at least to count."""

_NARROW = 0.003
"""Slack for each stage, in full stages, from which on finer weights may be all that is missing."""


class _Stage(NamedTuple):
    layers: Layers
    arcs: Arcs
    least_ahead: Int64Array
    least_behind: Int64Array


class Sweeps:
    """Sweeps at one limit.

    Attributes
    ----------
    weight
        a[j, v], row 0 being 0, int64, shape (k + 1, n).
    units
        Weight of a full stage, about.
    last
        Of the last sweep, by stage.
    slack
        After it, in full stages.
    cramped
        Whether there was no room for the states, or for fronts of weights as coarse as they may be.
    """

    def __init__(
        self,
        order: ScanOrder,
        steps: Sequence[Steps],
        costs: Sequence[ClassTerms],
        windows: Windows,
        limit: int,
        weight: Int64Array,
        units: int,
        room: Room,
    ) -> None:
        self._order, self._steps, self._windows, self._limit, self._room = order, steps, windows, limit, room
        self._costs, self._rooms = costs, [one.room(limit) for one in costs]
        self._k = len(weight)
        self.weight = np.concatenate([np.zeros((1, weight.shape[1]), dtype=np.int64), weight])
        self.units = units
        self.cramped = False
        self._stages: list[_Stage] | None = None
        self._done: list[Step] = []
        self.last: list[Swept] = []
        self.slack = np.inf
        self._idle = 0

    @property
    def exhausted(self) -> bool:
        """Whether sweeps come to nothing more."""
        return self._idle >= _PATIENCE

    def put_off(self) -> None:
        """Give the memory of the scans back."""
        self._stages = None

    def sweep(self, low: int, ended: Callable[[], bool]) -> Found | None:
        """Sweep forwards and backwards, and draw what follows.

        Parameters
        ----------
        low
            Ticks that are known to be ruled out.
        ended
            Tells whether there is no more time.

        Returns
        -------
        The highest limit that the weights rule out, with its proof if it is above *low*; None where that took too much
        time or memory.
        """
        if self._windows.empty:
            return Found(self._limit, self._done)
        if self._stages is None:
            try:
                self._stages = self._made()
            except TooManyStates:
                self.cramped = True
                return None
        without = [len(stage.layers.target) == 0 for stage in self._stages]
        if any(without):
            return Found(self._limit, [*self._done, self._without_way(without)])
        last: list[Swept] | None = []
        for forwards, moving in ((True, True), (False, True), (True, False)):
            last = self._passed(self._stages, forwards, moving, ended)
            if last is None:
                return None
        assert last is not None
        self.last = last
        credit = self._credit()
        slack = sum(int(one.worth[-1]) for one in last) - credit
        ruled_out = _highest_below(last, self._costs, credit, self._limit)
        found = Found(ruled_out, [*self._done, self._final(ruled_out)] if ruled_out > low else None)
        if slack >= 0:
            self._draw(slack)
            if self._windows.empty:
                return Found(self._limit, self._done)
        return found

    def _made(self) -> list[_Stage]:
        stages: list[_Stage] = []
        states = 0
        for j in range(1, self._k + 1):
            allowed = self._windows.allowed(j)[self._order.order]
            layers = scan_layers(self._steps[j - 1], allowed, self._room, lazy=False)
            layers = trimmed(layers, within_cost(layers, self._rooms[j - 1]))
            states += len(layers.target)
            if states > _STAGES_AT_ONCE * self._room.states:
                raise TooManyStates(f"states of {j} stages do not fit")
            stages.append(_Stage(layers, arcs_of(layers), costs_ahead(layers, False), costs_behind(layers)))
        return stages

    def _worth(self, j: int) -> Int64Array:
        """Return the worth of each label of each op at a stage, by position, int64, shape (n, 3)."""
        order, weight = self._order.order, self.weight
        worth = np.zeros((len(order), LABELS), dtype=np.int64)
        worth[:, INSIDE] = weight[j][order]
        worth[:, BEFORE] = (weight[j] - weight[j - 1])[order]
        return worth

    def _movable(self, j: int) -> BoolArray:
        """Mark the ops, by position, that may be in the first *j* stages or not."""
        sides: BoolArray = ((self._windows.first <= j) & (j < self._windows.last))[self._order.order]
        return sides

    def _passed(
        self, stages: list[_Stage], forwards: bool, moving: bool, ended: Callable[[], bool]
    ) -> list[Swept] | None:
        """Go through all stages; return what each came to, None where that took too much time or memory."""
        found: list[Swept | None] = [None] * self._k
        order, entries = self._order.order, 0
        for j in range(1, self._k + 1) if forwards else range(self._k, 0, -1):
            if ended():
                return None
            worth = self._worth(j)
            if int(np.abs(worth).sum()) > LARGEST_WORTH:
                self._scale(0.5)
                return None
            movable = self._movable(j if forwards else j - 1) if moving else np.zeros(len(order), dtype=np.bool_)
            one = sweep(
                stages[j - 1].layers,
                stages[j - 1].arcs,
                worth,
                movable,
                forwards,
                stages[j - 1].least_ahead,
                stages[j - 1].least_behind,
                self._rooms[j - 1],
                self._room.entries,
            )
            if one.state == FULL:
                self.cramped = self.units <= _FEWEST_UNITS
                self._scale(0.5)
                return None
            entries += one.entries
            if forwards:
                self.weight[j][order] -= one.moved
            else:
                self.weight[j - 1][order] += one.moved
            found[j - 1] = one
        self._entries = entries
        return [one for one in found if one is not None]

    def _scale(self, factor: float) -> None:
        self.weight = np.rint(self.weight * factor).astype(np.int64)
        self.units = int(self.units * factor)

    def _credit(self) -> int:
        return int(self.weight[-1].sum())

    def _draw(self, slack: int) -> None:
        """Remove the labels that no partition within the limit has, and see whether that helps."""
        place = np.argsort(self._order.order)
        step = self._step(slack)
        windows, removed = self._windows, 0
        for j, one in enumerate(self.last, start=1):
            allowed = windows.allowed(j)
            gone = np.zeros((len(place), LABELS), dtype=np.bool_)
            for label in range(LABELS):
                low = one.through[place, label] < int(one.worth[-1]) - slack
                gone[:, label] = (allowed >> label & 1).astype(np.bool_) & low
            removed += int(gone.sum())
            windows.remove(j, gone)
        if removed:
            self._done.append(step)
            windows.close()
            self._stages = None
        share = slack / self.units
        if removed > _FEW * self.weight.shape[1] or share < self.slack * (1 - _STEADY):
            self._idle = 0
        else:
            self._idle += 1
            finer = self.units < _MOST_UNITS and self._entries < _HANDY_ENTRIES
            if self.exhausted and finer and (share < _NARROW * self._k or self.units < _COARSE_UNITS):
                self._scale(2)
                self._idle = 0
        self.slack = share

    def _step(self, slack: int) -> Step:
        """Return the weights at hand as a step of a proof that removes labels."""
        assert self._stages is not None
        floors = [int(one.worth[-1]) - slack for one in self.last]
        slopes = [
            best_slope(stage.layers, self._worth(j), self._rooms[j - 1])
            for j, stage in enumerate(self._stages, start=1)
        ]
        return Step(self.weight[1:].copy(), floors, slopes)

    def _final(self, limit: int) -> Step:
        """Return the weights at hand as a step that rules out a limit of the last sweep."""
        assert self._stages is not None
        rooms = [one.room(limit) for one in self._costs]
        most = [_most_within(one, room) for one, room in zip(self.last, rooms, strict=True)]
        spare = self._credit() - 1 - sum(most)
        if spare < 0:  # some stage has no labelling within the limit, and so none of any worth
            most[next(j for j, one in enumerate(self.last) if one.cost[0] > rooms[j])] += spare
            spare = 0
        floors = [value + 1 + spare // self._k for value in most]
        slopes = [
            best_slope(stage.layers, self._worth(j), rooms[j - 1]) for j, stage in enumerate(self._stages, start=1)
        ]
        return Step(self.weight[1:].copy(), floors, slopes)

    def _without_way(self, without: list[bool]) -> Step:
        """Return a step by which stages that no labelling keeps to are worth less than nothing, and others nothing."""
        floors = [-1 if none else 1 for none in without]
        return Step(np.zeros_like(self.weight[1:]), floors, [Slope(0, 0)] * self._k)


class Found(NamedTuple):
    """Limit that a sweep rules out, in ticks, and the steps of its proof, None where it is known."""

    limit: int
    steps: list[Step] | None


def _most_within(one: Swept, limit: int) -> int:
    """Return the most worth of a stage within a limit; where nothing is, less than of any labelling."""
    at = int(np.searchsorted(one.cost, limit, side="right")) - 1
    return int(one.worth[at]) if at >= 0 else int(one.worth[0]) - 1


def _highest_below(last: list[Swept], costs: Sequence[ClassTerms], credit: int, limit: int) -> int:
    """Return the highest limit within which all stages are worth less than *credit*; −1 or less if there is none."""
    stages = list(zip(last, costs, strict=True))
    ticks = np.unique(np.concatenate([terms.ticks(one.cost) for one, terms in stages]))
    low, high = 0, len(ticks)
    while low < high:
        middle = (low + high) // 2
        at = int(ticks[middle])
        if any(len(one.cost) == 0 or one.cost[0] > terms.room(at) for one, terms in stages):
            low = middle + 1  # a stage that nothing fits into
        elif sum(_most_within(one, terms.room(at)) for one, terms in stages) >= credit:
            high = middle
        else:
            low = middle + 1
    return limit if low == len(ticks) else int(ticks[low]) - 1
