"""The linear programme of weights: as many as can be, of which no set of ops met so far holds more than a stage may.

On equal devices every stage has the capacity 1. On classes of devices each has a capacity of its own, which the
programme chooses too: as many of the largest ones as devices may be used add up to their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.frontier.scan import Sets
from mtpp.solvers.bounds.mip.highs import RowProgram

MOST_UNITS = 16_000
FEWEST_UNITS = 60
"""Weight of a full stage."""

HANDY_ENTRIES = 3_000_000
"""Entries of a scan up to which weights may become finer."""

_FIRST_BOX, _SMALLEST_BOX = 0.5, 0.02
_BOX_FLOOR = 0.1
"""A box reaches at least this share of an average weight beyond its centre, times its size."""

_NEAR = 5e-4
"""Gap of the linear programme that is not worth closing."""

_PATIENCE = 6
"""Proposals at the smallest box without success, after which weights are as good as they get."""

_GLANCE = 8
"""Proposals between two looks at the whole linear programme."""

_MOST_ROWS = 8000

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


class Pool:
    """Sets of ops that have been met, each once."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self.ops: list[Int32Array] = []
        self.cost: list[int] = []

    def add(self, sets: Sets) -> list[int]:
        """Take in sets; return the numbers of the new ones."""
        new = []
        for inside, cost in zip(np.packbits(sets.inside, axis=1), sets.cost.tolist(), strict=True):
            key = inside.tobytes()
            if key not in self._known:
                self._known.add(key)
                new.append(len(self.ops))
                self.ops.append(np.flatnonzero(np.unpackbits(inside, count=sets.inside.shape[1])).astype(np.int32))
                self.cost.append(cost)
        return new


class Proposal(NamedTuple):
    """Weights of the ops, int64, and what a stage of each class may hold, about."""

    weights: Int64Array
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

    Attributes
    ----------
    best
        Devices that may be used hold as many of them as there are at most, by sets within the limit, float64,
        shape (n,).
    total
        Their sum.
    entries
        Of the last scans.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        seats: Seats,
        rooms: Sequence[int],
        best: Float64Array,
        rates: Sequence[float],
        units: int,
    ) -> None:
        self._pools, self._seats = pools, seats
        self.best, self.total = best, 0.0
        self._program = _program(len(best), seats)
        for c, (pool, room) in enumerate(zip(pools, rooms, strict=True)):
            self._add(c, [i for i, cost in enumerate(pool.cost) if cost <= room][-_MOST_ROWS:])
        self.entries = 0
        self._rates = list(rates)
        self._box, self._units = _FIRST_BOX, units
        self._failures = self._proposals = 0
        self._possible = np.inf
        self.hopeless = False

    @property
    def exhausted(self) -> bool:
        """Whether weights cannot be improved much more by these means."""
        return self._failures >= _PATIENCE or self._possible <= self.total * (1 + _NEAR)

    def propose(self, time_limit_s: float) -> Proposal | None:
        """Return the next weights as integers; None where the time did not suffice."""
        if self.total == 0.0:
            return self._rounded(self.best, self._rates)
        self._proposals += 1
        if self._proposals % _GLANCE == 0:
            highest = np.full(len(self.best), float(self._seats.most))
            solved = self._solved(np.zeros(len(self.best)), highest, time_limit_s)
            self.hopeless = solved is not None and solved[0] <= self._seats.most
            if self.hopeless:
                return self._rounded(self.best, self._rates)
        reach = self._box * _BOX_FLOOR * self._seats.most / len(self.best)
        lowest = np.maximum(0.0, self.best * (1 - self._box) - reach)
        solved = self._solved(lowest, self.best * (1 + self._box) + reach, time_limit_s)
        if solved is None:
            return None
        self._possible = solved[0]
        return self._rounded(*solved[1:])

    def take(self, proposal: Proposal, share: float) -> None:
        """Learn how many stages some weights fill at least."""
        if share > self.total:
            if self.total and share - self.total > 0.5 * (self._possible - self.total):
                self._box = min(1.0, 1.5 * self._box)
            self.best, self.total = proposal.weights / proposal.weights.sum() * share, share
            self._rates = proposal.capacities
            self._failures = 0
            return
        if self._box > 0.2:
            self._box *= 0.6
        elif self._units < MOST_UNITS and self.entries < HANDY_ENTRIES:
            self._units *= 2
        elif self._box > _SMALLEST_BOX:
            self._box = max(_SMALLEST_BOX, 0.6 * self._box)
        else:
            self._failures += 1

    def coarser(self) -> bool:
        """Use smaller integers from now on; return whether there are any."""
        if self._units <= FEWEST_UNITS:
            self._failures = _PATIENCE
            return False
        self._units = max(FEWEST_UNITS, self._units // 2)
        return True

    def add(self, c: int, sets: Sets) -> None:
        """Take in sets within the limit on devices of a class."""
        self._add(c, self._pools[c].add(sets))

    def _add(self, c: int, numbers: list[int]) -> None:
        ops = [self._pools[c].ops[i] for i in numbers]
        if len(self._pools) == 1:
            self._program.add([(inside, np.ones(len(inside))) for inside in ops], 1.0)
            return
        own = np.array([len(self.best) + c], dtype=np.int32)
        self._program.add(
            [(np.concatenate([inside, own]), np.append(np.ones(len(inside)), -1.0)) for inside in ops], 0.0
        )

    def _solved(
        self, lowest: Float64Array, highest: Float64Array, time_limit_s: float
    ) -> tuple[float, Float64Array, list[float]] | None:
        """Return the most weight between bounds, the weights, and the capacities of the classes."""
        n, classes = len(lowest), len(self._pools)
        if classes == 1:
            solved = self._program.solve(lowest, highest, time_limit_s)
            return None if solved is None else (solved[0], np.maximum(0.0, solved[1]), [1.0])
        others = 2 * classes + 1
        most = np.full(others, float(self._seats.most))
        solved = self._program.solve(
            np.concatenate([lowest, np.zeros(others)]), np.concatenate([highest, most]), time_limit_s
        )
        if solved is None:
            return None
        return solved[0], np.maximum(0.0, solved[1][:n]), np.maximum(0.0, solved[1][n : n + classes]).tolist()

    def _rounded(self, weights: Float64Array, capacities: Sequence[float]) -> Proposal:
        total, held = float(weights.sum()), self._seats.held([float(one) for one in capacities])
        if not total > 0 or not held > 0:
            return Proposal(np.zeros(len(weights), dtype=np.int64), [1.0] * len(capacities))
        whole = np.rint(weights / total * (self._seats.most * self._units)).astype(np.int64)
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
