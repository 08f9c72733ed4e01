"""The convex-weights bound: weights of ops of which no stage can hold more than its share.

Let π ≥ 0 be integers, and let no convex set S of ops with f(S) ≤ L hold more than B of them. If Σ π > k·B, then no
partition into k stages has a bottleneck of at most L, so OPT ≥ L + 1: stages are convex, for no path leaves a stage and
comes back. The best weights are the dual of the linear programme that covers the ops by the fewest convex sets; any
other weights give a bound too (Farley 1990).

**Pricing.** The most weight of a convex set within L is found by a scan of the ops along an order in which few tensors
are live at once (:mod:`mtpp.solvers.bounds.frontier`): exactly, over all convex sets. All the limits below L are priced
with it: the last front says for each one how much a set within it can hold, so that any weights give the highest limit
that they rule out at once.

**Master.** A linear programme over the sets met so far proposes the next weights, in a box around the best ones known
that shrinks and grows with its success (Marsten, Hogan and Blankenship 1975). A set that is met once serves at each
limit that it keeps to. Nothing of the programme is trusted: weights are rounded to integers, and those are priced. They
are small at first, for fronts are no longer than a stage holds weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array
from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.frontier.kernels.fronts import Slope
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS
from mtpp.solvers.bounds.frontier.scan import LARGEST_WORTH, Scan, Sets, TooManyStates, scan_layers
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.frontier.scan_search import ScanProof, ScanSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.mip.highs import RowProgram

_UNITS = 250
"""Weight of a full stage, to begin with."""

_MOST_UNITS = 16_000
_FEWEST_UNITS = 60

_HANDY_ENTRIES = 3_000_000
"""Entries of a scan up to which weights may become finer."""

_PER_STATE = 0.05
"""Entries of a state that there are for a unit of weight, about: fewer units where there are many states."""

_GOOD = 0.95
"""Sets with so much of a stage's weight become rows."""

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

_TINY = 1e-9

_ALL_LABELS = 1 << BEFORE | 1 << INSIDE | 1 << AFTER


@dataclass(frozen=True, eq=False)
class StageShare(ScanProof):
    """That no partition into k stages stays within a limit: no stage holds its share of all weight.

    Attributes
    ----------
    weights
        Of each op, integers, int64, shape (n,).
    capacity
        No stage within the limit holds more; k times this is less than the sum of the weights.
    slope
        Price of ticks that keeps the fronts of a re-check short.
    """

    weights: Int64Array
    capacity: int
    slope: Slope

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        name = self.order.instance.first_members
        return {
            **self.terms(),
            "weights": [[int(name[op]), int(y)] for op, y in enumerate(self.weights.tolist()) if y > 0],
            "capacity": self.capacity,
            "slope": [self.slope.price, self.slope.shift],
        }


class ConvexWeightSearch(ScanSearch):
    """Limits from the target downwards, weights for each of them, and the highest limit ruled out on the way.

    Raises
    ------
    TooManyStates
        If the scan takes more memory than there is.
    """

    def __init__(self, order: ScanOrder, limits: BoundLimits) -> None:
        super().__init__(order, limits)
        instance = order.instance
        if instance.k * _MOST_UNITS > LARGEST_WORTH:
            raise TooManyStates(f"{instance.k} stages are more than weights are counted for")
        labels = np.full(instance.op_count, _ALL_LABELS, dtype=np.int64)
        self._layers = scan_layers(self._steps[0], labels, self._room, lazy=True)
        self._position: Int32Array = np.argsort(order.order).astype(np.int32)
        self._pool = _Pool(instance.op_count)
        self._best = _first_weights(instance, self._cost.weight)
        self._scan: Scan | None = None
        self._master: _Master | None = None

    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now."""
        self._limits = limits
        self._low = max(self._low, limits.lower - 1)
        if limits.target < self._target:
            self._target = limits.target
            self._failed = min(self._failed, limits.target)
            self.put_off()
        while not self.ended and not self._limits.ended():
            if self._master is None:
                self._at = min(max(self._at, self._low + 1), self._failed - 1)
                self._master = self._begin()
                if self._low >= self._at:
                    self._at, self._master = (self._low + self._failed) // 2, None
                    continue
            self._advance(self._master)

    def weights_at(self, limit: int, deadline: Deadline) -> Float64Array:
        """Return weights for a limit as good as the time allows, summing to 1, float64, shape (n,)."""
        self._limits = replace(self._limits, deadline=deadline)
        self._at = limit
        master = self._begin()
        while self._low < limit and not (master.exhausted or master.hopeless or self._limits.ended()):
            weights = master.propose(deadline.remaining_s())
            if weights is None or not weights.any():
                break
            share = self._price(master, weights)
            if share is not None:
                master.take(weights, share)
        return master.best / max(float(master.best.sum()), _TINY)

    def _begin(self) -> _Master:
        """Return the linear programme at the limit that is next."""
        room = self._at + self._cost.constant
        self._scan = scan = Scan.within(self._layers, room)
        self._rule_out_by_one_op(scan)
        handy = int(_HANDY_ENTRIES / (_PER_STATE * max(1, scan.states)))
        units = max(_FEWEST_UNITS, min(_UNITS, handy))
        return _Master(self._pool, self._instance.k, room, self._best, units)

    def _rule_out_by_one_op(self, scan: Scan) -> None:
        """Rule the limit out where an op is in no set within it: all weight is its own then."""
        alone = self._order.order[scan.left_out]
        if len(alone):
            weights = np.zeros(self._instance.op_count, dtype=np.int64)
            weights[alone[0]] = 1
            self._take(self._proof(self._at, weights, 0, Slope(0, 0)))

    def _proof(self, limit: int, weights: Int64Array, capacity: int, slope: Slope) -> StageShare:
        return StageShare(limit, self._cost.streamed, self._order, weights, capacity, slope)

    def put_off(self) -> None:
        """Give the memory of the linear programme and of the states back, until the next run."""
        self._scan = None
        if self._master is not None:
            self._best, self._master = self._master.best, None

    def _advance(self, master: _Master) -> None:
        """Price one proposal of weights, and go to another limit where that is called for."""
        weights = master.propose(self._limits.deadline.remaining_s())
        if weights is None:
            return
        if not weights.any() or master.hopeless:
            self._fail(master)
            return
        share = self._price(master, weights)
        if share is not None:
            master.take(weights, share)
        if self._low >= self._at:
            self._at, self._best, self._master = (self._low + self._failed) // 2, master.best, None
        elif master.exhausted:
            self._fail(master)

    def _fail(self, master: _Master) -> None:
        """Go on at a lower limit."""
        self._failed = self._at
        reached = max(1, int(self._at * min(1.0, master.total / self._instance.k)))
        self._at = max(self._low + 1, min((self._low + self._failed) // 2, reached))
        self._best, self._master = master.best, None

    def _price(self, master: _Master, weights: Int64Array) -> float | None:
        """Return how many stages the weights fill at least, None if that took too much memory."""
        k, total = self._instance.k, int(weights.sum())
        capacity = (total - 1) // k
        worth = np.zeros((len(weights), LABELS), dtype=np.int64)
        worth[:, INSIDE] = weights[self._order.order]
        floor = int(_GOOD * capacity) + 1
        assert self._scan is not None
        priced = self._scan.priced(worth, floor, self._room)
        if priced.full:
            self._cramped |= not master.coarser()
            return None
        master.entries = len(priced.fronts.cost)
        above = np.searchsorted(priced.worth, capacity, side="right")
        if len(self._scan.layers.target) == 0 or above == len(priced.worth):
            ruled_out = self._at
        else:
            ruled_out = int(priced.cost[above]) - self._cost.constant - 1
        self._take(self._proof(ruled_out, weights, capacity, priced.slope))
        sets = self._scan.sets(worth, priced, floor)
        master.add(Sets(sets.inside[:, self._position], sets.cost))
        most = int(priced.worth[-1]) if len(priced.worth) else floor - 1
        return total / most if most > 0 else 2.0 * k


class _Pool:
    """Sets of ops that have been met, each once."""

    def __init__(self, op_count: int) -> None:
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


class _Master:
    """The linear programme at one limit, and the best weights known there.

    Attributes
    ----------
    best
        No set met within the limit holds more than 1 of them, float64, shape (n,).
    total
        Their sum.
    entries
        Of the last scan.
    """

    def __init__(self, pool: _Pool, k: int, limit: int, best: Float64Array, units: int) -> None:
        self._pool, self._k, self._limit = pool, k, limit
        self._program = RowProgram(np.ones(len(best)))
        within = [i for i, cost in enumerate(pool.cost) if cost <= limit]
        self._add(within[-_MOST_ROWS:])
        self.best, self.total = best, 0.0
        self.entries = 0
        self._box, self._units = _FIRST_BOX, units
        self._failures = self._proposals = 0
        self._possible = np.inf
        self.hopeless = False

    @property
    def exhausted(self) -> bool:
        """Whether weights cannot be improved much more by these means."""
        return self._failures >= _PATIENCE or self._possible <= self.total * (1 + _NEAR)

    def propose(self, time_limit_s: float) -> Int64Array | None:
        """Return the next weights as integers; None where the time did not suffice."""
        if self.total == 0.0:
            return self._rounded(self.best)
        self._proposals += 1
        if self._proposals % _GLANCE == 0:
            highest = np.full(len(self.best), float(self._k))
            solved = self._program.solve(np.zeros(len(self.best)), highest, time_limit_s)
            self.hopeless = solved is not None and solved[0] <= self._k
            if self.hopeless:
                return self._rounded(self.best)
        reach = self._box * _BOX_FLOOR * self._k / len(self.best)
        lowest = np.maximum(0.0, self.best * (1 - self._box) - reach)
        solved = self._program.solve(lowest, self.best * (1 + self._box) + reach, time_limit_s)
        if solved is None:
            return None
        self._possible = solved[0]
        return self._rounded(np.maximum(0.0, solved[1]))

    def take(self, weights: Int64Array, share: float) -> None:
        """Learn how many stages some weights fill at least."""
        if share > self.total:
            if self.total and share - self.total > 0.5 * (self._possible - self.total):
                self._box = min(1.0, 1.5 * self._box)
            self.best, self.total = weights / weights.sum() * share, share
            self._failures = 0
            return
        if self._box > 0.2:
            self._box *= 0.6
        elif self._units < _MOST_UNITS and self.entries < _HANDY_ENTRIES:
            self._units *= 2
        elif self._box > _SMALLEST_BOX:
            self._box = max(_SMALLEST_BOX, 0.6 * self._box)
        else:
            self._failures += 1

    def coarser(self) -> bool:
        """Use smaller integers from now on; return whether there are any."""
        if self._units <= _FEWEST_UNITS:
            self._failures = _PATIENCE
            return False
        self._units = max(_FEWEST_UNITS, self._units // 2)
        return True

    def add(self, sets: Sets) -> None:
        """Take in sets within the limit."""
        self._add(self._pool.add(sets))

    def _add(self, numbers: list[int]) -> None:
        rows = [(self._pool.ops[i], np.ones(len(self._pool.ops[i]))) for i in numbers]
        self._program.add(rows, 1.0)

    def _rounded(self, weights: Float64Array) -> Int64Array:
        total = float(weights.sum())
        if not total > 0:
            return np.zeros(len(weights), dtype=np.int64)
        return np.rint(weights / total * (self._k * self._units)).astype(np.int64)


def _first_weights(instance: Instance, work: Int64Array) -> Float64Array:
    """Return the cost of each op, and half of the transfers that it may be cut from."""
    weight = work.astype(np.float64)
    touched = np.repeat(instance.transfer, np.diff(instance.pin_offsets))
    np.add.at(weight, instance.pins, 0.5 * touched)
    return weight / max(float(weight.sum()), 1.0)
