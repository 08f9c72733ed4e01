"""Scans for the most worth of a stage's labelling within a limit of ticks, and for good sets of ops on the way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.kernels.fronts import (
    FULL,
    NONE,
    Arcs,
    Fronts,
    Slope,
    arcs_of,
    best_way,
    closings,
    fronts_behind,
    values_ahead,
    way_to,
)
from mtpp.solvers.bounds.frontier.kernels.layers import (
    INSIDE,
    Layers,
    Steps,
    build_layers,
    costs_ahead,
    most_cost,
    trimmed,
    within_cost,
)

LARGEST_WORTH = 2**36
"""Largest sum of the worths of all ops; slopes that :func:`best_slope` makes for them leave values far below 2^63."""

_VALUE_BITS = 58
"""Bits of the largest values, of all worths and of the price of all ticks: int64 kernels wrap silently."""

_MOST_SHIFT = 40
"""Bits after the point of a slope at most."""

_STATE_BYTES, _ENTRY_BYTES = 1024, 128
"""Bytes of a state and of an entry, arrays that grow included, for two scans at once."""

_TRIALS = 30
"""Slopes that are tried at most."""


class TooManyStates(ValueError):
    """More states than there is room for."""


@dataclass(frozen=True)
class Room:
    """Limits of a scan.

    Attributes
    ----------
    states
        In all.
    entries
        In all.
    """

    states: int = 1 << 21
    entries: int = 1 << 24


def room_within(memory_bytes: int | None) -> Room:
    """Return the room for a scan in some memory; None: about a gigabyte."""
    room = Room()
    if memory_bytes is None:
        return room
    states, entries = memory_bytes // _STATE_BYTES, memory_bytes // _ENTRY_BYTES
    return Room(min(room.states, states), min(room.entries, entries))


class Sets(NamedTuple):
    """Convex sets of ops.

    Attributes
    ----------
    inside
        By position, bool, shape (count, n).
    cost
        Ticks of each, int64, shape (count,).
    """

    inside: BoolArray
    cost: Int64Array


class Priced(NamedTuple):
    """Result of a scan.

    Attributes
    ----------
    cost, worth
        Whole labellings that are worth the floor at least, of which none beats another in both, in increasing ticks and
        worth, int64.
    fronts
        Of all states; with the state :data:`~mtpp.solvers.bounds.frontier.kernels.fronts.FULL`, none, and of no use.
    slope
        Price of ticks at which the Lagrangian bound is least.
    """

    cost: Int64Array
    worth: Int64Array
    fronts: Fronts
    slope: Slope

    @property
    def full(self) -> bool:
        """Whether there was no room for the fronts."""
        return bool(self.fronts.state == FULL)


@dataclass(eq=False)
class Scan:
    """States of one stage along an order, within a limit of ticks.

    Attributes
    ----------
    layers
        Of ways within the limit alone.
    """

    layers: Layers
    limit: int

    @classmethod
    def within(cls, layers: Layers, limit: int) -> Scan:
        """Return the states on ways that cost at most *limit* ticks; O(states)."""
        return cls(trimmed(layers, within_cost(layers, limit)), limit)

    @cached_property
    def _arcs(self) -> Arcs:
        return arcs_of(self.layers)

    @cached_property
    def _costs_ahead(self) -> Int64Array:
        return costs_ahead(self.layers, False)

    @cached_property
    def _closing(self) -> Int64Array:
        return costs_ahead(self.layers, True)

    @property
    def states(self) -> int:
        """Number of states; none where no labelling keeps to the limit."""
        return len(self.layers.target)

    @property
    def left_out(self) -> Int32Array:
        """Positions of ops that are in no set within the limit, int32."""
        ends = self.layers.offsets
        inside = np.concatenate([[0], np.cumsum(self.layers.target[:, INSIDE] >= 0)])
        return np.flatnonzero(inside[ends[1:-1]] == inside[ends[:-2]]).astype(np.int32)

    def priced(self, worth: Int64Array, floor: int, room: Room) -> Priced:
        """Return the labellings within the limit that are worth *floor* at least.

        Parameters
        ----------
        worth
            Of each label of each op, by position, int64, shape (n, 3); :data:`LARGEST_WORTH` in all at most.
        """
        slope = best_slope(self.layers, worth, self.limit)
        fronts = fronts_behind(
            self.layers,
            self._arcs,
            worth,
            slope,
            self._costs_ahead,
            self.limit,
            floor,
            room.entries,
        )
        last = self.states - 1
        rows = slice(0, 0) if last < 0 or fronts.state == FULL else slice(*fronts.offsets[last : last + 2])
        good = fronts.worth[rows] >= floor
        return Priced(fronts.cost[rows][good], fronts.worth[rows][good], fronts, slope)

    def sets(self, worth: Int64Array, priced: Priced, least: int) -> Sets:
        """Return for each op the best set that ends with it, of those worth *least* at least; of exact fronts."""
        n = len(worth)
        best, paid, where, which = closings(self.layers, worth, priced.fronts, self._closing, self.limit)
        ends = np.flatnonzero(best >= least)
        inside = np.zeros((len(ends), n), dtype=np.bool_)
        labels = np.zeros(n, dtype=np.int32)
        for row, i in enumerate(ends.tolist()):
            labels[:] = 0
            labels[i] = INSIDE
            way_to(self.layers, self._arcs, worth, priced.fronts, int(where[i]), int(which[i]), labels)
            inside[row] = labels == INSIDE
        return Sets(inside, paid[ends])


def scan_layers(steps: Steps, allowed: Int64Array, room: Room, *, lazy: bool) -> Layers:
    """Return all states of a scan, whatever they cost.

    Parameters
    ----------
    allowed
        Labels of each op, by position, as a sum of 1 << label, int64.
    lazy
        As in :func:`~mtpp.solvers.bounds.frontier.kernels.layers.build_layers`.

    Raises
    ------
    TooManyStates
        If there are more than there is room for.
    """
    count, layers = build_layers(steps, allowed, lazy, room.states)
    if count < 0:
        raise TooManyStates(f"{room.states} states do not suffice")
    return layers


class Labelling(NamedTuple):
    """The best labelling of a stage.

    Attributes
    ----------
    labels
        By position, int32, shape (n,).
    gap
        Of the Lagrangian bound on its worth.
    entries
        That it was found among.
    """

    worth: int
    labels: Int32Array
    gap: int
    entries: int


def best_labelling(
    layers: Layers,
    arcs: Arcs,
    worth: Int64Array,
    slope: Slope,
    least_ahead: Int64Array,
    limit: int,
    gap: int,
    reach: int,
    most_entries: int,
) -> Labelling | None:
    """Return a labelling within a limit that is worth most, None if that took more entries than there may be.

    Parameters
    ----------
    gap, reach
        By how much the Lagrangian bound is likely to be too high, give or take.
    """
    ahead = values_ahead(layers, worth, slope)
    upper = (int(ahead[0]) + slope.price * limit) >> slope.shift
    last, floor = len(layers.target) - 1, upper - gap - reach
    while True:
        fronts = fronts_behind(layers, arcs, worth, slope, least_ahead, limit, floor, most_entries)
        if fronts.state == FULL:
            return None
        at = int(fronts.offsets[last + 1]) - 1
        if at >= fronts.offsets[last] and fronts.worth[at] >= floor:
            break
        reach *= 2
        floor -= reach
    labels: Int32Array = np.zeros(len(worth), dtype=np.int32)
    way_to(layers, arcs, worth, fronts, last, at, labels)
    return Labelling(int(fronts.worth[at]), labels, upper - int(fronts.worth[at]), len(fronts.cost))


def fits(slope: Slope, worth: Int64Array) -> bool:
    """Tell whether int64 holds values of some worths by a slope that was made for others."""
    return _total(worth).bit_length() + slope.shift <= _VALUE_BITS + 1


def _total(worth: Int64Array) -> int:
    """Return no less than any labelling is worth, of either sign."""
    return int(np.abs(worth).max(axis=1).sum()) if len(worth) else 0


def best_slope(layers: Layers, worth: Int64Array, limit: int) -> Slope:
    """Return the price of ticks at which the Lagrangian bound on the worth within a limit is least.

    Between a labelling that costs too much and one that does not, the price at which both have the same value is tried
    next, as long as it is a better one. O(trials · states).
    """
    total = _total(worth)
    shift = max(0, min(_MOST_SHIFT, _VALUE_BITS - total.bit_length()))
    if len(layers.target) == 0:
        return Slope(0, shift)
    highest = (1 << _VALUE_BITS) // max(1, limit, most_cost(layers))
    labels: Int32Array = np.zeros(len(worth), dtype=np.int32)
    least, best = -NONE, 0

    def met_at(price: int) -> tuple[int, int]:
        nonlocal least, best
        slope = Slope(price, shift)
        ahead = values_ahead(layers, worth, slope)
        met = best_way(layers, worth, slope, ahead, labels)
        bound = int(ahead[0]) + price * limit
        if bound < least:
            least, best = bound, price
        return met

    expensive = met_at(0)
    if expensive[0] <= limit:
        return Slope(0, shift)
    high = max(1, min(highest, (total << shift) // max(1, limit)))
    cheap = met_at(high)
    while cheap[0] > limit and high < highest:
        high = min(16 * high, highest)
        cheap = met_at(high)
    low = 0
    for _ in range(_TRIALS):
        if cheap[0] >= expensive[0]:
            break
        price = ((expensive[1] - cheap[1]) << shift) // (expensive[0] - cheap[0])
        if not low < price < high:
            break
        met = met_at(price)
        if met in (expensive, cheap):
            break
        if met[0] > limit:
            expensive, low = met, price
        else:
            cheap, high = met, price
    return Slope(best, shift)
