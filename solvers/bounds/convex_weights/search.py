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
(:mod:`mtpp.solvers.bounds.convex_weights.master`). A set that is met once serves at each limit that it keeps to.
Nothing of the programme is trusted: weights are rounded to integers, and those are priced. They are small at first, for
fronts are no longer than a stage holds weight, and finer the less is missing.

**Limits.** The first is just below the target. One is out of reach where the sets that are known tell so. One that
takes too much is given up, and tried again with the weights known there when a limit close to it is ruled out.

**Devices that differ** have a capacity B for each class, of which the programme chooses the proportions. Where as many
of the largest ones as devices may be used come to less than Σ π, the limit is ruled out, in whatever order they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.convex_weights.master import (
    FEWEST_UNITS,
    HANDY_ENTRIES,
    MOST_UNITS,
    Master,
    Proposal,
    Seats,
)
from mtpp.solvers.bounds.convex_weights.pool import Pool
from mtpp.solvers.bounds.frontier.device_terms import DeviceTerms
from mtpp.solvers.bounds.frontier.kernels.fronts import Slope
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS
from mtpp.solvers.bounds.frontier.scan import LARGEST_WORTH, Priced, Scan, Sets, TooManyStates, scan_layers
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.frontier.scan_search import ScanProof, ScanSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.downsets.stage_shares import StageShares, shares_within

_UNITS = 250
"""Weight of a full stage, to begin with."""

_PER_STATE = 0.05
"""Entries of a state that there are for a unit of weight, about: fewer units where there are many states."""

_MORE_PATIENCE, _MOST_PATIENCE = 4.0, 64.0
"""By how much more patience a limit is tried again that took too much, and the most."""

_AGAIN = 0.003
"""Part of such a limit, over the patience, within which another one has to be ruled out before that."""

_STRIDE = 0.25
"""Part of the way from the limit ruled out to the one that could not be, to the next."""

_ALL_LABELS = 1 << BEFORE | 1 << INSIDE | 1 << AFTER


@dataclass(frozen=True, eq=False)
class StageShare(ScanProof):
    """That no partition into k stages stays within a limit: no stage holds its share of all weight.

    Attributes
    ----------
    weights
        Of each op, integers, int64, shape (n,).
    capacity
        No stage within the limit holds more; where that rules the limit out, k times this is less than all weight.
    slope
        Price of ticks that keeps the fronts of a re-check short.
    """

    weights: Int64Array
    capacity: int
    slope: Slope

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        return {**self.terms(), **self.terms_of_rule()}

    def terms_of_rule(self) -> dict[str, Any]:
        """Return as JSON values that no convex set within the limit, or a lower one, holds more than the capacity."""
        name = self.order.instance.first_members
        return {
            **self.terms_of_scan(),
            "weights": [[int(name[op]), int(y)] for op, y in enumerate(self.weights.tolist()) if y > 0],
            "capacity": self.capacity,
            "slope": [self.slope.price, self.slope.shift],
        }


@dataclass(frozen=True, eq=False)
class DeviceShares(ScanProof):
    """That no partition on devices that differ stays within a limit: together they do not hold all weight.

    Attributes
    ----------
    weights
        Of each op, integers, int64, shape (n,).
    capacities, slopes
        Of each class of devices: no stage within the limit holds more; price of ticks for a re-check.
    """

    weights: Int64Array
    capacities: list[int]
    slopes: list[Slope]

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        name = self.order.instance.first_members
        return {
            **self.terms(),
            "stages": self.order.instance.most_used,
            "weights": [[int(name[op]), int(y)] for op, y in enumerate(self.weights.tolist()) if y > 0],
            "capacities": self.capacities,
            "slopes": [[slope.price, slope.shift] for slope in self.slopes],
        }


class _GivenUp(NamedTuple):
    """A limit that took too much, the best weights there, and the highest one that was ruled out then."""

    limit: int
    weights: Float64Array
    low: int


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
        if instance.k * MOST_UNITS > LARGEST_WORTH:
            raise TooManyStates(f"{instance.k} stages are more than weights are counted for")
        labels = np.full(instance.op_count, _ALL_LABELS, dtype=np.int64)
        classes = len(self._steps)
        room = replace(self._room, states=self._room.states // classes, entries=self._room.entries // classes)
        self._room = room
        self._layers = [scan_layers(steps, labels, room, lazy=True) for steps in self._steps]
        self._position: Int32Array = np.argsort(order.order).astype(np.int32)
        self._seats = Seats.of(instance, self._terms.class_of)
        self._pools = [Pool() for _ in self._steps]
        self._best = first_weights(instance, self._terms)
        self._scans: list[Scan] | None = None
        self._master: Master | None = None
        self._shares: dict[int, StageShares] = {}
        self._out_of_reach = limits.target  # from here on, as sets known tell
        self._patience = 1.0
        self._given_up: list[_GivenUp] = []  # falling

    @property
    def shares(self) -> list[StageShares]:
        """The best weights at each limit that was tried and not ruled out here."""
        return [one for limit, one in self._shares.items() if limit > self._low]

    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now."""
        self._limits = limits
        if limits.lower - 1 > self._low:  # what was given up may be tried again
            self._low, self._patience = limits.lower - 1, 1.0
        if limits.target < self._target:
            self._target = limits.target
            self._out_of_reach = min(self._out_of_reach, limits.target)
            self._leave()
        self._forget_passed()
        while not self.ended and not self._limits.ended():
            if not self._low < self._at < self._failed:
                self._choose(self._best if self._master is None else self._master.best)
            if self._master is None:
                self._master = self._begin()
            if self._low < self._at:
                self._advance(self._master)

    def improve_at(self, limit: int, limits: BoundLimits, entries: int) -> int:
        """Improve the weights at a limit on equal devices until its scans had so many entries; return how many.

        It ends earlier where they rule the limit out, or are as good as they get.
        """
        self._limits = limits
        if self._at != limit:
            self._leave()
            self._at = limit
        if self._master is None:
            self._master = self._begin()
        master, done = self._master, 0
        while done < entries and self._low < limit and not master.exhausted and not limits.ended():
            proposal = master.propose(limits)
            if proposal is None or not proposal.weights.any():
                break
            done += self._price(master, proposal) + sum(scan.states for scan in self._scans_within())
        return done

    def shares_at(self, limit: int) -> StageShares | None:
        """Return the best weights known at a limit; they may rule it out. None if none are known."""
        proven = self.proven
        if isinstance(proven, StageShare) and proven.limit >= limit:
            return StageShares(proven.limit, proven.weights, proven.capacity, proven.terms_of_rule)
        return shares_within(self._shares.values(), limit)

    def _begin(self) -> Master:
        """Return the linear programme at the limit that is next."""
        scans = self._scans_within()
        rooms = [scan.limit for scan in scans]
        self._rule_out_by_one_op(scans)
        handy = min(HANDY_ENTRIES, self._room.entries // 2)
        units = int(handy / (_PER_STATE * max(1, sum(scan.states for scan in scans))))
        units = max(FEWEST_UNITS, min(_UNITS, units))
        for pool in self._pools:
            pool.keep(self._best)
        rates = [
            room * float(self._best.sum() / max(1.0, self._best @ one.weight))
            for room, one in zip(rooms, self._terms.classes, strict=True)
        ]
        return Master(
            self._pools, self._seats, rooms, self._best, rates, units, handy, self._patience, self._order.order
        )

    def _scans_within(self) -> list[Scan]:
        """Return the scans within the limit, one for each class of devices."""
        if self._scans is None:
            rooms = [one.room(self._at) for one in self._terms.classes]
            self._scans = [Scan.within(layers, room) for layers, room in zip(self._layers, rooms, strict=True)]
        return self._scans

    def _rule_out_by_one_op(self, scans: list[Scan]) -> None:
        """Rule the limit out where an op is in no set within it: all weight is its own then."""
        alone = set.intersection(*(set(scan.left_out.tolist()) for scan in scans))
        if alone:
            weights = np.zeros(self._instance.op_count, dtype=np.int64)
            weights[self._order.order[min(alone)]] = 1
            self._take(self._proof(self._at, weights, [0] * len(scans), [Slope(0, 0)] * len(scans)))

    def _proof(
        self, limit: int, weights: Int64Array, capacities: list[int], slopes: list[Slope]
    ) -> StageShare | DeviceShares:
        costs, order = self._terms, self._order
        if self._instance.uniform:
            return StageShare(limit, costs, order, weights, capacities[0], slopes[0])
        return DeviceShares(limit, costs, order, weights, capacities, slopes)

    def _keep_share(self, weights: Int64Array, capacity: int, slope: Slope) -> None:
        """Keep weights for the limit at hand if they fill more stages than those known, and do not rule it out."""
        claim = StageShare(self._at, self._terms, self._order, weights, capacity, slope)
        new = StageShares(self._at, weights, capacity, claim.terms_of_rule)
        known = self._shares.get(self._at)
        if self._at > self._low and (known is None or new.filled > known.filled):
            self._shares[self._at] = new

    def put_off(self) -> None:
        """Give the memory of the states back, until the next run."""
        self._scans = None

    def _leave(self) -> None:
        """Leave the limit, with the best weights there."""
        self._scans = None
        if self._master is not None:
            self._best, self._master = self._master.best, None

    def _advance(self, master: Master) -> None:
        """Price one proposal of weights, and go to another limit where that is called for."""
        proposal = master.propose(self._limits)
        if proposal is None or not proposal.weights.any() or master.hopeless:
            if not self._limits.ended():
                self._fail(master)
            return
        self._price(master, proposal)
        if self._low >= self._at:
            self._choose(master.best)
        elif master.exhausted or master.slow:
            self._fail(master)

    def _fail(self, master: Master) -> None:
        """Go on at a lower limit, or at one given up before."""
        if master.hopeless:
            self._out_of_reach = self._at
        else:
            self._given_up.append(_GivenUp(self._at, master.best, self._low))
        self._choose(master.best, int(self._at * min(1.0, master.total / self._seats.most)))

    def _choose(self, best: Float64Array, within_reach: int = 0) -> None:
        """Choose the limit to go on at: the lowest one given up, if another close to it has been ruled out since.

        Otherwise one between those ruled out and those that could not be, nearer to the former: what can be ruled out
        takes a fraction of the time that it takes to see of others that they cannot.
        """
        self._best, self._master, self._scans = best, None, None
        self._forget_passed()
        if self._given_up and self._patience < _MOST_PATIENCE:
            limit, weights, low = self._given_up[-1]
            closer = self._low > low and limit - self._low <= _AGAIN / self._patience * limit
            if closer or self._close:
                self._patience *= _MORE_PATIENCE
                self._at, self._best = limit, weights
                self._given_up.pop()
                self._forget_passed()
                return
        between = self._low + max(1, int(_STRIDE * (self._failed - self._low)))
        self._at = within_reach if self._low < within_reach < between else between

    def _forget_passed(self) -> None:
        """Forget limits given up that have been ruled out, or are out of reach."""
        self._given_up = [one for one in self._given_up if self._low < one.limit < self._out_of_reach]
        self._failed = self._given_up[-1].limit if self._given_up else self._out_of_reach

    @property
    def _near(self) -> bool:
        """Whether limits that could not be ruled out, with all patience, follow at once on those that were."""
        return self._close and (not self._given_up or self._patience >= _MOST_PATIENCE)

    def _price(self, master: Master, proposal: Proposal) -> int:
        """Scan for what stages hold at most of some weights, if there is room; return how many entries were made."""
        scans = self._scans_within()
        weights, total = proposal.weights, int(proposal.weights.sum())
        worth = np.zeros((len(weights), LABELS), dtype=np.int64)
        worth[:, INSIDE] = weights[self._order.order]
        floors = [int((1 - master.loose) * int(capacity)) + 1 for capacity in proposal.capacities]
        priced: list[Priced] = []
        for scan, floor in zip(scans, floors, strict=True):
            priced.append(scan.priced(worth, floor, self._room))
            if priced[-1].full:
                self._cramped |= not master.coarser()
                return self._room.entries
        ruled_out, held = self._ruled_out(priced, floors, total)
        spare = (total - 1 - self._seats.held(held)) // self._seats.most
        if spare >= 0:
            self._take(self._proof(ruled_out, weights, [one + spare for one in held], [one.slope for one in priced]))
        for c, (scan, one, floor) in enumerate(zip(scans, priced, floors, strict=True)):
            sets = scan.sets(worth, one, floor)
            self._pools[c].add(Sets(sets.inside[:, self._position], sets.cost))
        all_held = [_most(one, floor, len(one.cost)) for one, floor in zip(priced, floors, strict=True)]
        if self._instance.uniform:
            self._keep_share(weights, max(1, all_held[0]), priced[0].slope)
        most = self._seats.held(all_held)
        share = self._seats.most * total / most if most > 0 else 2.0 * self._seats.most
        entries = sum(len(one.fronts.cost) for one in priced)
        master.take(proposal, share, entries)
        return entries

    def _ruled_out(self, priced: list[Priced], floors: list[int], total: int) -> tuple[int, list[int]]:
        """Return the highest limit within which devices do not hold all weight, and what one of each class holds there.

        Where there is none, one below all costs.
        """
        classes = self._terms.classes

        def held(ticks: int) -> list[int]:
            return [
                _most(one, floor, int(np.searchsorted(one.cost, costs.room(ticks), side="right")))
                for costs, one, floor in zip(classes, priced, floors, strict=True)
            ]

        ticks = np.unique(np.concatenate([costs.ticks(one.cost) for costs, one in zip(classes, priced, strict=True)]))
        low, high = 0, len(ticks)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._seats.held(held(int(ticks[middle]))) >= total else (middle + 1, high)
        limit = self._at if low == len(ticks) else int(ticks[low]) - 1
        return limit, held(limit)


def _most(priced: Priced, floor: int, count: int) -> int:
    """Return the most worth of the first *count* labellings, or all that it can be where there is none."""
    return int(priced.worth[count - 1]) if count else floor - 1


def first_weights(instance: Instance, terms: DeviceTerms) -> Float64Array:
    """Return the cost of each op, and half of the transfers that it may be cut from, all summing to 1.

    They are those of a class of devices that pays for ticks, if one does.
    """
    costs = max(terms.classes, key=lambda one: one.per_tick)
    weight = costs.weight.astype(np.float64)
    touched = np.repeat(costs.transfer, np.diff(instance.pin_offsets))
    np.add.at(weight, instance.pins, 0.5 * touched)
    return weight / max(float(weight.sum()), 1.0)
