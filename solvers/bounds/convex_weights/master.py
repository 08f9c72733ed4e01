"""The linear programme of weights: as many as can be, of which no set of ops met so far holds more than a stage may.

On equal devices every stage has the capacity 1. On classes of devices each has a capacity of its own, which the
programme chooses too: as many of the largest ones as devices may be used add up to their number.

Weights are proposed in a box around the best ones known (Marsten, Hogan and Blankenship 1975). Its size is such that
the programme promises some of the way to more than all stages, and not much more: within a small box it knows nearly
all that there is to know, but there is little to gain. The programme is told of sets that break what it proposes only.

Weights are rounded to integers, so fine that roundings hide less than the box promises. Where fronts of a scan grow too
long by that, the tiny weights are swept together along its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from mtpp.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.convex_weights.pool import Pool
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.mip.highs import RowProgram, broken_rows

MOST_UNITS = 500_000
FEWEST_UNITS = 60
"""Weight of a full stage."""

HANDY_ENTRIES = 8_000_000
"""Entries of a scan up to which weights may become finer."""

_DUST, _RELIEF = 8, 1.05
"""Where there is no room, weights are swept together that would be 0 in so much coarser integers, at most; how fast
they come back. Many tiny weights make fronts long.
"""

_FIRST_BOX, _SMALLEST_BOX, _WIDEST_BOX = 0.5, 0.02, 2.0
"""Sizes of boxes, of which the last one has no bounds."""

_BOX_FLOOR = 0.1
"""A box reaches at least this share of an average weight beyond its centre, times its size."""

_STEP = 1.5
"""By how much boxes grow and shrink."""

_BEYOND = 0.002
"""Part by which more than all stages is to be filled."""

_LEAST_PROMISE, _MOST_PROMISE = 0.2, 0.9
"""Parts of the way there that a box promises, at least and at most."""

_NULLS = 3
"""Proposals without success after which a box shrinks."""

_NEAR = 2e-5
"""Gap of the linear programme that is not worth closing."""

_LEAST_LOOSE, _MOST_LOOSE, _LOOSE = 0.0005, 0.02, 0.5
"""By how much less than a full stage sets hold that are looked for: at least, at most, and as part of the gap."""

_REFINED = 6
"""Times that integers get finer where the same proposal comes again."""

_GLANCE, _GLANCE_SHARE = 8, 0.25
"""Proposals until the first look at the whole linear programme, after which it is looked at each time that there are
twice as many; share of the time left for such a look.
"""

_WINDOW, _WINDOWS, _MORE_WINDOWS, _HOPE = 12, 1.5, 8.0, 0.5
"""Proposals that have to come so near to the end that so many times as many would do, or weights are given up; more
where a box promises to get there, or the whole programme to go beyond by such a part of what is missing.
"""

_TOLERANCE = 1e-6
"""By how much more than its capacity a stage may hold in the programme."""

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Seats:
    """Devices by class, of which some may be used.

    Attributes
    ----------
    counts
        Devices of each class.
    most
        Devices that may be used at most.
    """

    counts: tuple[int, ...]
    most: int

    @classmethod
    def of(cls, instance: Instance, class_of: Sequence[int]) -> Seats:
        """Return the devices of an instance, given the class of each."""
        return cls(tuple(class_of.count(c) for c in range(max(class_of) + 1)), instance.most_used)

    def held(self, capacities: Sequence[N]) -> N:
        """Return what the devices that may be used hold at most, given the capacity of each class."""
        left, total = self.most, 0 * capacities[0]
        for capacity, count in sorted(zip(capacities, self.counts, strict=True), reverse=True):
            total += capacity * min(left, count)
            left -= min(left, count)
        return total


class Proposal(NamedTuple):
    """Weights of the ops, int64, and what a stage of each class may hold, about."""

    weights: Int64Array
    capacities: list[float]


class _Solution(NamedTuple):
    """Weights of the ops, float64, their sum, and what a stage of each class holds of them."""

    total: float
    weights: Float64Array
    capacities: list[float]


class Master:
    """The linear programme at one limit, and the best weights known there.

    Parameters
    ----------
    pools
        Sets met on devices of each class.
    rooms
        The most that a stage costs on each class.
    best
        Weights to begin with.
    rates
        Capacities to begin with, in proportion.
    units
        Weight of a full stage.
    entries
        That a scan may have for weights to become finer.
    patience
        How slow it may get before it is *slow*, 1 or more.
    order
        Ops as they are scanned, int32, shape (n,).

    Attributes
    ----------
    best
        Devices that may be used hold as many of them as there are at most, by sets within the limit, float64,
        shape (n,).
    total
        Their sum.
    slow
        Whether weights come nearer to filling more than all stages at all, but too slowly.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        seats: Seats,
        rooms: Sequence[int],
        best: Float64Array,
        rates: Sequence[float],
        units: int,
        entries: int,
        patience: float,
        order: Int32Array,
    ) -> None:
        self._pools, self._seats, self._rooms = pools, seats, rooms
        self._told: list[BoolArray] = [np.empty(0, dtype=np.bool_) for _ in pools]
        self._program = _program(len(best), seats)
        self.best, self.total = best, 0.0
        self._rates, self._patience, self._order = list(rates), patience, order
        self._box, self._nulls = _FIRST_BOX, 0
        self._possible = self._highest = np.inf  # in the box, and in all
        self._units, self._finest, self._finer = units, float(MOST_UNITS), 1
        self._entries, self._handy = 0, entries
        self._last: Int64Array = np.empty(0, dtype=np.int64)
        self._stuck = self.slow = False
        self._proposals, self._taken, self._glance, self._before = 0, 0, _GLANCE, 0.0

    @property
    def hopeless(self) -> bool:
        """Whether the sets that are known keep weights from filling more than all stages."""
        return self._highest <= self._seats.most * (1 + _TOLERANCE)

    @property
    def exhausted(self) -> bool:
        """Whether weights cannot be improved much more by these means."""
        return self._stuck or self._highest <= self.total * (1 + _NEAR)

    @property
    def loose(self) -> float:
        """By what part less than a full stage sets are to hold that are looked for."""
        return max(_LEAST_LOOSE, min(_MOST_LOOSE, _LOOSE * self._gap))

    @property
    def _gap(self) -> float:
        """By what part more the box promises than the best weights fill; 1 if there are none."""
        return max(_NEAR, self._possible / self.total - 1) if self.total > 0.0 and self._possible < np.inf else 1.0

    def propose(self, limits: BoundLimits) -> Proposal | None:
        """Return the next weights as integers; None where there was no time, or HiGHS failed."""
        if self.total == 0.0:
            return self._rounded(float(self.best.sum()), self.best, self._rates)
        self._proposals += 1
        if self._proposals >= self._glance and self._possible <= self._seats.most and not self.hopeless:
            self._solved(_WIDEST_BOX, replace(limits, deadline=limits.deadline.share(_GLANCE_SHARE)))
            self._glance = 2 * self._proposals
        solved = self._promising(limits)
        if solved is None:
            return None
        self._possible = solved.total
        handy = self._units * self._handy / max(1, self._entries)
        for _ in range(_REFINED):
            fine = self._finer * len(self.best) / self._seats.most / self._gap  # roundings of a stage are less than it
            self._units = int(max(FEWEST_UNITS, min(_DUST * self._finest, MOST_UNITS, fine, handy)))
            proposal = self._rounded(*solved)
            if not np.array_equal(proposal.weights, self._last):
                break
            self._finer *= 2
        else:
            self._stuck = True
        self._last = proposal.weights
        return proposal

    def _promising(self, limits: BoundLimits) -> _Solution | None:
        """Return the most weight in a box that promises some of the way to more than all stages, not all of it."""
        goal = max(self.total * (1 + _NEAR), min(self._seats.most * (1 + _BEYOND), self._highest))
        least, most = (self.total + part * (goal - self.total) for part in (_LEAST_PROMISE, _MOST_PROMISE))
        solved = self._solved(self._box, limits)
        while solved is not None and solved.total > most and self._box > _SMALLEST_BOX:
            self._box = max(_SMALLEST_BOX, self._box / _STEP)
            solved = self._solved(self._box, limits)
        while solved is not None and solved.total < least and self._box < _WIDEST_BOX:
            self._box *= _STEP
            solved = self._solved(self._box, limits)
        return solved

    def take(self, proposal: Proposal, share: float, entries: int) -> None:
        """Learn how many stages some weights fill at least, and how many entries their scans had."""
        self._entries = entries
        if 2 * entries < self._handy:
            self._finest = min(MOST_UNITS, _RELIEF * self._finest)
        if share > self.total:
            self.best, self.total = proposal.weights / proposal.weights.sum() * share, share
            self._nulls = 0
        else:
            self._nulls += 1
            if self._nulls % _NULLS == 0:
                self._box = max(_SMALLEST_BOX, self._box / _STEP)
        self._taken += 1
        if self._taken % _WINDOW == 0:
            self._look_back()

    def _look_back(self) -> None:
        """See whether weights still come nearer to filling more than all stages fast enough."""
        most = self._seats.most
        gained, missing = self.total - self._before, min(most, self._highest) - self.total
        hope = self._possible > most or _HOPE * missing < self._highest - most < np.inf
        self.slow = (_MORE_WINDOWS if hope else _WINDOWS) * self._patience * gained <= missing
        self._before = self.total

    def coarser(self) -> bool:
        """Use smaller integers from now on, for the scans had no room; return whether there are any."""
        if self._units <= FEWEST_UNITS:
            self._stuck = True
            return False
        self._finest = max(1.0, min(self._finest, self._units) / 2)
        self._units, self._entries = max(FEWEST_UNITS, self._units // 2), self._handy
        return True

    def _solved(self, box: float, limits: BoundLimits) -> _Solution | None:
        """Return the most weight in a box, of which no set known holds more than a stage may; None as in `propose`."""
        n, classes, most = len(self.best), len(self._pools), float(self._seats.most)
        reach = box * _BOX_FLOOR * most / n
        others = 0 if classes == 1 else 2 * classes + 1
        lowest, highest = np.zeros(n + others), np.full(n + others, most)
        if box < _WIDEST_BOX:
            lowest[:n] = np.maximum(0.0, self.best * (1 - box) - reach)
            highest[:n] = self.best * (1 + box) + reach
        while True:
            solved = None if limits.ended() else self._program.solve(lowest, highest, limits.deadline.remaining_s())
            if solved is None:
                return None
            found = np.maximum(0.0, solved[1])
            solution = _Solution(solved[0], found[:n], found[n : n + classes].tolist() if classes > 1 else [1.0])
            if not self._tell(solution):
                break
        if box >= _WIDEST_BOX:
            self._highest = solution.total
        return solution

    def _tell(self, solution: _Solution) -> bool:
        """Tell the programme of sets that hold more than a stage may; return whether there are any."""
        n, rows = len(self.best), 0
        for c, (pool, room, capacity) in enumerate(zip(self._pools, self._rooms, solution.capacities, strict=True)):
            new = np.zeros(len(pool.cost) - len(self._told[c]), dtype=np.bool_)
            told = self._told[c] = np.concatenate([self._told[c], new])
            held = np.where(pool.cost > room, -np.inf, pool.held(solution.weights))
            broken = broken_rows(held, told, capacity + _TOLERANCE)
            rows += len(broken)
            ops = [pool.ops(number) for number in broken.tolist()]
            if len(self._pools) == 1:
                self._program.add([(inside, np.ones(len(inside))) for inside in ops], 1.0)
                continue
            own = np.array([n + c], dtype=np.int32)
            self._program.add(
                [(np.concatenate([inside, own]), np.append(np.ones(len(inside)), -1.0)) for inside in ops], 0.0
            )
        return rows > 0

    def _without_dust(self, weights: Float64Array) -> Float64Array:
        """Return weights of which none is tiny: what ops along the scan have of those is given to one of them.

        Parameters
        ----------
        weights
            A full stage holds 1.
        """
        dust = weights * self._finest < 0.5
        swept = np.where(dust, weights, 0.0)[self._order]
        lumps = np.floor(np.cumsum(swept) * self._finest)
        swept[:] = np.diff(lumps, prepend=0.0) / self._finest
        found = np.where(dust, 0.0, weights)
        found[self._order] += swept
        return found

    def _rounded(self, total: float, weights: Float64Array, capacities: Sequence[float]) -> Proposal:
        held = self._seats.held([float(one) for one in capacities])
        if not total > 0 or not held > 0:
            return Proposal(np.zeros(len(weights), dtype=np.int64), [1.0] * len(capacities))
        weights = self._without_dust(weights / total * self._seats.most)
        whole = np.rint(weights * self._units).astype(np.int64)
        share = max(0, int(whole.sum()) - 1) / held
        return Proposal(whole, [one * share for one in capacities])


def _program(op_count: int, seats: Seats) -> RowProgram:
    """Return the programme without sets.

    The variables are the weights, and for several classes B of each, q, and r of each: what the *most* largest B of
    devices come to is the least most·q + Σ count·r with r ≥ 0 and q + r ≥ B.
    """
    classes = len(seats.counts)
    if classes == 1:
        return RowProgram(np.ones(op_count))
    program = RowProgram(np.concatenate([np.ones(op_count), np.zeros(2 * classes + 1)]))
    extra = op_count + classes + np.arange(classes + 1, dtype=np.int32)
    program.add([(extra, np.array([seats.most, *seats.counts], dtype=np.float64))], float(seats.most))
    program.add(
        [
            (np.array([op_count + c, extra[0], extra[1 + c]], dtype=np.int32), np.array([1.0, -1.0, -1.0]))
            for c in range(classes)
        ],
        0.0,
    )
    return program
