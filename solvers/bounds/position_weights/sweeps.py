"""Sweeps over the stages at one limit: weights moved from stage to stage, and labels that no partition has removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log2
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.device_terms import ClassTerms
from mtpp.solvers.bounds.frontier.kernels.fronts import FULL, NONE, Slope
from mtpp.solvers.bounds.frontier.kernels.layers import BEFORE, INSIDE, LABELS, Steps
from mtpp.solvers.bounds.frontier.kernels.marginals import WHOLE, Swept
from mtpp.solvers.bounds.frontier.scan import LARGEST_WORTH, Room, TooManyStates
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.position_weights.bundle import Bundle
from mtpp.solvers.bounds.position_weights.proof import Step
from mtpp.solvers.bounds.position_weights.stage_scan import StageScan
from mtpp.solvers.bounds.position_weights.windows import Windows

_MOST_UNITS = 500_000
_FEWEST_UNITS = 120

_STAGES_AT_ONCE = 4
"""Times the states of one scan that those of all stages may be together, without the arrays that make them."""

_REACH = 2.0
"""Times the slack that labellings may be worth less than the best of their stage to be looked at."""

_STEADY = 0.05
"""Part of the slack that a sweep has to take at least to count."""

_PATIENCE = 1
"""Sweeps in a row that take less, and remove few labels, before mixtures are tried."""

_FEW = 0.01
"""Part of the labels left that weights have to remove at least, or they are no step of the proof."""

_FINE_UNITS = 2000
"""Weight of a full stage at least, for mixtures."""

_SLACK_UNITS = 30
"""Weight of the slack of a stage at least, for mixtures, on average."""

_LOOKS = 8
"""Weights that mixtures come to between two looks at the labels that may be removed."""

_PAYS = 0.1
"""Part of the slack that mixtures have to take at least in that time to count."""

_MIXING_PATIENCE = 3
"""Times in a row that they take less, and remove few labels, before a limit is given up."""

_WIDE = 0.8
"""Part of the stages of all windows that are left where weights are kept for other limits."""

_THERE_AND_BACK = ((True, True), (False, True), (True, False))
_STILL = ((True, False),)
"""Passes, whether they go forwards, and whether weights move."""

_FEW_ENTRIES = 5000
"""Entries of a pass below which mixtures take longer than cases."""

_NOTHING = 1e-6
"""Slack, in full stages, from which on weights cannot be better, though limits may be too low."""

_FAR = 0.03
"""Slack for each stage, in full stages, from which on mixtures are not tried: a lower limit comes first."""

_TOO_FAR = 0.08
"""The same, from which on a limit is left at once: of graphs measured, limits that were ruled out had .044 at most."""


class Sweeps:
    """Sweeps at one limit.

    Attributes
    ----------
    weight
        a[j, v], row 0 being 0, int64, shape (k + 1, n).
    units
        Weight of a full stage, about.
    kept
        Weights for other limits, int64, shape (k, n), and their units: the last ones before windows got much narrower.
    last
        Of the last sweep, by stage.
    slack
        After it, in full stages.
    work, entries, checked
        Entries of all sweeps, of the last one, and of those whose weights are steps of the proof, about.
    done
        Steps that removed labels.
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
        mixtures: Bundle | None = None,
    ) -> None:
        self._order, self.windows, self._limit, self._room = order, windows, limit, room
        self._costs = costs
        self._scans = [StageScan(own, one.room(limit), room) for own, one in zip(steps, costs, strict=True)]
        self._without: list[bool] | None = None  # stages that have no labelling; None: not looked
        self._k = len(weight)
        self.weight = np.concatenate([np.zeros((1, weight.shape[1]), dtype=np.int64), weight])
        self.units = units
        self.cramped = False
        self.done: list[Step] = []
        self.last: list[Swept] = []
        self.slack = np.inf
        self._idle = 0
        self.kept = weight, units
        self._first_width = self._width()
        self._mixing = mixtures is not None
        self._mixtures = Bundle(self._k, mixtures)
        self.work = self.entries = self.checked = 0
        self._finest = _MOST_UNITS
        self._place = np.argsort(order.order)

    @property
    def exhausted(self) -> bool:
        """Whether sweeps and mixtures come to nothing more."""
        if self._mixing or self.slack < _NOTHING:
            return self._idle >= (_MIXING_PATIENCE if self.slack > _NOTHING else 1)
        return self._idle >= _PATIENCE and (self.slack > _FAR * self._k or self.entries < _FEW_ENTRIES)

    @property
    def hopeless(self) -> bool:
        """Whether the slack is more than weights are likely to take away."""
        return not self._mixing and self._k * _TOO_FAR < self.slack < np.inf

    @property
    def mixtures(self) -> Bundle | None:
        """Mixtures for cases to go on with, None if none have been made."""
        return self._mixtures if self._mixing else None

    @property
    def shares(self) -> Float64Array | None:
        """Part of the mixtures that has each op in the first j stages, float64, shape (k − 1, n); None without any."""
        return self._mixtures.shares

    def put_off(self) -> None:
        """Give the memory of the scans back."""
        self._without = None
        for one in self._scans:
            one.put_off()

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
        if self.windows.empty:
            return Found(self._limit, self.done)
        if self._without is None:
            try:
                self._without = self._look()
            except TooManyStates:
                self.put_off()
                self.cramped = True
                return None
        if any(self._without):
            return Found(self._limit, [*self.done, self._without_way(self._without)])
        last: list[Swept] | None = []
        slack = self._mix(ended) if self._mixing and _NOTHING < self.slack < np.inf else None
        for j, scan in self._stages:
            scan.fit(self._worth(j))
        if slack is None:
            slack = sum(scan.likely(self._worth(j)) for j, scan in self._stages) - self._credit()
        reach = max(1, int(_REACH * slack)) + 1 if slack >= 0 else WHOLE
        for forwards, moving in _STILL if self._mixing else _THERE_AND_BACK:
            last = self._passed(forwards, moving, reach, ended)
            if last is None:
                return None
        assert last is not None
        self.last = last
        for (j, scan), one in zip(self._stages, last, strict=True):
            scan.learn(self._worth(j), one)
        credit = self._credit()
        slack = sum(int(one.worth[-1]) for one in last) - credit
        ruled_out = _highest_below(last, self._costs, credit, self._limit)
        found = Found(ruled_out, [*self.done, self._final(ruled_out)] if ruled_out > low else None)
        if slack >= 0:
            self._draw(slack)
            if self.windows.empty:
                return Found(self._limit, self.done)
        return found

    @property
    def _stages(self) -> list[tuple[int, StageScan]]:
        """The scans of the stages, which count from 1."""
        return list(enumerate(self._scans, start=1))

    def _look(self) -> list[bool]:
        """Make the states of all stages; return of each whether it has no labelling within the limit."""
        without, states = [], 0
        for j, scan in self._stages:
            count = scan.look(self.windows.allowed(j)[self._order.order])
            without.append(count == 0)
            states += count
            if states > _STAGES_AT_ONCE * self._room.states:
                raise TooManyStates(f"states of {j} stages do not fit")
        return without

    def _worth(self, j: int, weight: Int64Array | None = None) -> Int64Array:
        """Return the worth of each label of each op at a stage, by position, int64, shape (n, 3)."""
        order, weight = self._order.order, self.weight if weight is None else weight
        worth = np.zeros((len(order), LABELS), dtype=np.int64)
        worth[:, INSIDE] = weight[j][order]
        worth[:, BEFORE] = (weight[j] - weight[j - 1])[order]
        return worth

    def _mix(self, ended: Callable[[], bool]) -> int | None:
        """Go to better weights by mixtures of labellings; return their slack, None if there are none."""
        enough = min(self._finest, max(_FINE_UNITS, int(_SLACK_UNITS * self._k / self.slack)))
        if self.units < enough:
            self._scale(2 ** floor(log2(enough / self.units)))
        self._mixtures.keep_to(self.windows.allowed)
        found = self._mixtures.improved(
            self.weight, lambda j, weight: None if ended() else self._labelled(j, weight), _LOOKS, ended
        )
        if found is None:
            return None
        self.weight = found.weight
        return found.slack

    def _labelled(self, j: int, weight: Int64Array) -> tuple[int, Int32Array] | None:
        """Return the most worth of a stage by some weights, and the labels that come to it, by op."""
        found = self._scans[j - 1].labelling(self._worth(j, weight), max(1, self.units // 200))
        if found is None:
            return None
        self.work += found.entries
        return found.worth, found.labels[self._place]

    def _movable(self, j: int) -> BoolArray:
        """Mark the ops, by position, that may be in the first *j* stages or not."""
        sides: BoolArray = ((self.windows.first <= j) & (j < self.windows.last))[self._order.order]
        return sides

    def _passed(self, forwards: bool, moving: bool, reach: int, ended: Callable[[], bool]) -> list[Swept] | None:
        """Go through all stages; return what each came to, None where that took too much time or memory."""
        found: list[Swept | None] = [None] * self._k
        order, entries = self._order.order, 0
        for j, scan in self._stages if forwards else reversed(self._stages):
            if ended():
                return None
            worth = self._worth(j)
            if int(np.abs(worth).sum()) > LARGEST_WORTH:
                self._coarsen()
                return None
            movable = self._movable(j if forwards else j - 1) if moving else np.zeros(len(order), dtype=np.bool_)
            one = scan.swept(worth, movable, forwards, reach)
            if one.state == FULL:
                self.cramped = self.units <= _FEWEST_UNITS
                self._coarsen()
                return None
            entries += one.entries
            if forwards:
                self.weight[j][order] -= one.moved
            else:
                self.weight[j - 1][order] += one.moved
            found[j - 1] = one
        self.entries = entries
        self.work += entries
        return [one for one in found if one is not None]

    def _coarsen(self) -> None:
        """Go on with half the units, and never with more."""
        self._scale(0.5)
        self._finest = self.units

    def _scale(self, factor: float) -> None:
        self.weight = np.rint(self.weight * factor).astype(np.int64)
        for one in self._scans:
            one.gap = round(one.gap * factor)
        self.units = int(self.units * factor)

    def _credit(self) -> int:
        return int(self.weight[-1].sum())

    def _draw(self, slack: int) -> None:
        """Remove the labels that no partition within the limit has, and see whether that helps."""
        place = self._place
        windows, removed, left = self.windows, 0, 0
        gone = []
        for j, one in enumerate(self.last, start=1):
            allowed = windows.allowed(j)
            labels = (allowed[:, None] >> np.arange(LABELS) & 1).astype(np.bool_)
            low = np.maximum(one.through[place], one.least - 1) < int(one.worth[-1]) - slack
            gone.append(labels & low)
            removed += int(gone[-1].sum())
            left += int(labels[labels.sum(axis=1) > 1].sum())
        many = removed > _FEW * left
        if many:
            self.done.append(self._step(slack))
            self.checked += self.entries
            for j, labels in enumerate(gone, start=1):
                windows.remove(j, labels)
            windows.close()
            self.put_off()
        share = slack / self.units
        if many or share < self.slack * (1 - (_PAYS if self._mixing else _STEADY)):
            self._idle = 0
        else:
            self._idle += 1
        self.slack = share
        if self._width() >= _WIDE * self._first_width:
            self.kept = self.weight[1:].copy(), self.units
        if self._idle >= _PATIENCE and not (self._mixing or self.exhausted):
            self._mixing, self._idle = True, 0

    def _width(self) -> int:
        return int((self.windows.last - self.windows.first).sum())

    def _step(self, slack: int) -> Step:
        """Return the weights at hand as a step of a proof that removes labels."""
        floors = [int(one.worth[-1]) - slack for one in self.last]
        return Step(self.weight[1:].copy(), floors, [scan.fit(self._worth(j)) for j, scan in self._stages])

    def _final(self, limit: int) -> Step:
        """Return the weights at hand as a step that rules out a limit of the last sweep."""
        rooms = [one.room(limit) for one in self._costs]
        most = [_most_within(one, room) for one, room in zip(self.last, rooms, strict=True)]
        spare = self._credit() - 1 - sum(most)
        if spare < 0:  # some stage has no labelling within the limit, and so none of any worth
            most[next(j for j, one in enumerate(self.last) if _is_too_much(one, rooms[j]))] += spare
            spare = 0
        floors = [value + 1 + spare // self._k for value in most]
        slopes = [scan.best_slope(self._worth(j), room) for (j, scan), room in zip(self._stages, rooms, strict=True)]
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
    """Return the most worth of a stage within a limit, or more; where nothing is, less than of any labelling."""
    at = int(np.searchsorted(one.cost, limit, side="right")) - 1
    if at >= 0:
        return int(one.worth[at])
    return int(one.worth[0]) - 1 if one.least == NONE else one.least - 1


def _is_too_much(one: Swept, limit: int) -> bool:
    """Tell whether no labelling of a stage keeps to a limit, as far as is known."""
    return one.least == NONE and (len(one.cost) == 0 or bool(one.cost[0] > limit))


def _highest_below(last: list[Swept], costs: Sequence[ClassTerms], credit: int, limit: int) -> int:
    """Return the highest limit within which all stages are worth less than *credit*; −1 or less if there is none."""
    stages = list(zip(last, costs, strict=True))

    def ruled_out(at: int) -> bool:
        if any(_is_too_much(one, terms.room(at)) for one, terms in stages):
            return True  # a stage that nothing fits into
        return sum(_most_within(one, terms.room(at)) for one, terms in stages) < credit

    ticks = np.unique(np.concatenate([terms.ticks(one.cost) for one, terms in stages]))
    low, high = 0, len(ticks)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ruled_out(int(ticks[middle])) else (low, middle)
    found = limit if low == len(ticks) else int(ticks[low]) - 1
    return found if low > 0 or ruled_out(found) else -1
