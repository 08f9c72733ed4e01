"""The capacity bound: the work that all devices together have room for in convex sets of ops within a time.

Let y(v) ≥ 0 be a measure of work. The stages of a partition are convex sets: no path leaves one and comes back. If
every stage costs at most T, the one of a device of class c has at most

    u_c = max { y(S) : S convex, f_c(S) ≤ T, S within the memory of c }.

At most k devices have a stage each, and the stages have all y: where the k largest u_c of the devices come to less than
Σ y, no partition has a bottleneck of T, in whatever order the devices stand. The bound is the least T that this allows.
On equal devices that is k · u ≥ Σ y. It is above the simple bound wherever stages pay for tensors.

Sets that keep to time alone, or to memory alone, are more, and their most work an upper bound on u_c. Where both make
for too many sets to look at, the smaller of the two takes its place.

With transport by neighbours a stage pays for each tensor that it cuts at least once, over the best link that its device
has to any other one: that is what f_c counts. Working memory in the graph's order is left out of f_c and of the memory,
and weights that several ops read count in shares, so that some u_c are larger than they need be.

A stage on several devices at once may cost any of them more than T, so nothing is said of replicas; nor of stages whose
time is given by their number of ops.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.names import CAPACITY
from mtpp.solvers.bounds.capacity.convex_sets import (
    BOTH,
    BYTES,
    TIME,
    ConvexSets,
    ScanLimits,
    Stair,
    tensors_beyond,
)
from mtpp.solvers.bounds.kernels.convex_sets import SLOTS
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult

_WIDTHS = (6, 12, SLOTS)
"""Tensors live together, at most, in passes that come one after the other."""

_WINDOW = 4
"""Part of the ticks between bound and bottleneck that the first pass looks at."""

_LARGER = 4
"""So many times more ticks the next pass looks at, where one has refuted all of its own."""

_SMALLER = 8
"""A pass with too many sets is tried again with so many times fewer ticks."""

_NARROWEST = 1 << 12
"""Of these ticks, a part too small to be tried."""

_PARTS = 1 << 20
"""Of what devices have time for beyond a known set: as finely it is shared out."""

_LABELS = (1 << 20, 1 << 23, 1 << 26, 1 << 62)
"""Of a pass, in rounds that come one after the other."""

_MORE_BY_BYTES = 8
"""So many times more labels than another one a pass over bytes alone may have: it serves for all ticks."""

_BYTES_PER_LABEL = 256
_DEFAULT_BYTES = 2**29
_MOST_LABELS = 1 << 21
"""At one op, however much memory there is: numpy's sorting is not interrupted."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the capacity bound, tier ``enumerated``; early ends leave the best T refuted so far.

    Notes
    -----
    Exponential in the number of tensors that are live together at worst, and in the number of different costs that sets
    have; linear in the ops. Ops count as they were before any merge: the proof needs none.
    """
    if instance.cost.counts_ops:
        return BoundResult(None, solved=False, left_out="for stages that pay for their ops and tensors")
    if instance.replicas:
        return BoundResult(None, solved=False, left_out="for stages on one device each")
    return capacity_bound(instance, limits.lower, limits.upper, Effort(limits.ended, 2**62, limits.memory_bytes))


@dataclass(frozen=True)
class Effort:
    """Limits of the work: when to end, labels in all, and bytes that they may take; None: :data:`_DEFAULT_BYTES`."""

    ended: Callable[[], bool]
    labels: int
    memory_bytes: int | None = None

    @property
    def width(self) -> int:
        """Labels at one op."""
        return max(1, min(_MOST_LABELS, (self.memory_bytes or _DEFAULT_BYTES) // _BYTES_PER_LABEL))


def capacity_bound(instance: Instance, lower: int, upper: int, effort: Effort) -> BoundResult:
    """Return a bound above *lower* ticks and at most *upper*, if there is one within the effort."""
    base = instance if instance.ground is None else instance.ground.instance
    measure = _measure(base)
    search = _Search(base, measure, instance.most_used, upper, effort)
    search.begin(lower)
    beyond = cache(lambda slots: tuple(tensors_beyond(base, slots)))
    for labels in _LABELS:
        for slots in _WIDTHS:
            forgotten = beyond(slots)
            closed = search.run(forgotten, labels)
            if search.lower >= upper or (closed and not forgotten):
                return BoundResult(search.found, solved=True)
            if not closed:
                break
        if closed or search.ended:
            break
    return BoundResult(search.found, solved=closed)


def _measure(instance: Instance) -> tuple[int | None, Int64Array]:
    """Return the class whose work is the measure, None for the least of all, and that.

    It is the graph's own work where some device has speed 1, or as fine a multiple of it as there is.
    """
    work, classes = instance.cost.work, instance.machine.classes
    plain = [c for c, device in enumerate(classes) if device.speed == 1]
    finest = int(work.sum(axis=1).argmax())
    for c in plain or [finest]:
        if (len(plain) == 1 or (work[plain] == work[c]).all()) and (work <= work[finest]).all():
            return c, work[c]
    return (None if len(work) > 1 else 0), work.min(axis=0)


@dataclass(frozen=True)
class _Room:
    """The most work within some ticks on a device of a class, or what was enough where that is more.

    Attributes
    ----------
    counted
        What limits the sets; where both ticks and memory do, they are met by real sets.
    """

    stair: Stair
    enough: int
    counted: str
    exact: bool

    def within(self, ticks: int) -> int:
        """Return it."""
        return max(self.stair.within(ticks), self.enough)

    def met(self, ticks: int) -> int:
        """Return the work of some set within the ticks and the memory."""
        return self.stair.within(ticks) if self.counted == BOTH else 0


_NONE = np.zeros(0, dtype=np.int64)
_NO_SETS = Stair(_NONE, _NONE, 0)


class _Search:
    """Ticks refuted so far, and what refutes them."""

    def __init__(
        self, instance: Instance, measure: tuple[int | None, Int64Array], most: int, upper: int, effort: Effort
    ) -> None:
        self._instance, self._effort, self._most = instance, effort, most
        self._class, self._measure = measure
        self._total = int(self._measure.sum())
        self._class_of = instance.cost.class_of(instance.k).tolist()
        self._upper = upper
        self._labels = 0
        self._without = cache(lambda forgotten: ConvexSets(instance, self._measure, forgotten))
        self._by_bytes: dict[tuple[int, ConvexSets, int], Stair | None] = {}
        self.found: LowerBound | None = None

    def begin(self, lower: int) -> None:
        """Take what is known, or a little less than what all devices have time for."""
        sets = self._without(())
        rates = [sets.rate(c) for c in range(len(self._instance.cost.work))]
        best = sorted((rates[c] for c in self._class_of), reverse=True)[: self._most]
        simple = 1 if min(rates) < 0 or not sum(best) else int(self._total / sum(best) * (1 - 1e-6))
        self.lower = max(1, lower, simple)

    def run(self, forgotten: tuple[int, ...], labels: int) -> bool:
        """Raise the bound with some tensors forgotten; return whether that came to its end.

        Parameters
        ----------
        labels
            Of one pass at most.
        """
        sets = self._without(forgotten)
        self._take_limits(sets, forgotten, labels)
        span, first = max(1, self._upper - self.lower), self.lower - 1
        window, exact = max(1, span // _WINDOW), True
        rooms = [sets.run(c, first) for c in range(len(self._instance.cost.work))]
        while first < self._upper:
            top = min(self._upper - 1, first + window)
            enough = rooms if exact else self._shared_out(sets, rooms, top, labels)
            found = self._rooms(sets, top, enough, labels)
            if found is None:
                if window <= span // _NARROWEST or self.ended:
                    return False
                window, exact = max(1, window // _SMALLER), False
                continue
            refuted = bisect_left(range(first, top + 1), True, key=lambda ticks: self._suffice(_within(found, ticks)))
            refuted += first - 1
            if refuted >= first:
                self._take(refuted, found, forgotten)
            if exact and refuted < top and (refuted < first or all(one.exact for one in found)):
                return all(one.exact for one in found)
            rooms = [max(one.met(refuted), room) for one, room in zip(found, rooms, strict=True)]
            exact = exact or refuted < first + window // 2
            first, window = refuted + 1, _LARGER * window if refuted == top else max(1, top - refuted - 1)
        return True

    @property
    def ended(self) -> bool:
        """Whether no more may be done."""
        return self._effort.ended() or self._labels > self._effort.labels

    def _take_limits(self, sets: ConvexSets, forgotten: Sequence[int], labels: int) -> None:
        """Take the ticks for which devices have too little time or memory, whatever the sets."""

        def enough(ticks: int) -> bool:
            return self._suffice([room.enough for room in self._limits(sets, ticks, labels)])

        refuted = bisect_left(range(self.lower, self._upper), True, key=enough) + self.lower - 1
        if refuted >= self.lower:
            self._take(refuted, self._limits(sets, refuted, labels), forgotten)

    def _limits(self, sets: ConvexSets, ticks: int, labels: int) -> list[_Room]:
        """Return rooms that the rate of work, or the memory alone, allows devices of each class at most."""
        rooms = []
        for c in range(len(self._instance.cost.work)):
            held, rate = self._held(sets, c, labels), sets.rate(c)
            busy = self._total if rate < 0 else min(self._total, 1 + int(ticks * rate))
            kept = self._total if held is None else held.within(ticks)
            rooms.append(_Room(_NO_SETS, min(busy, kept), TIME if busy <= kept else BYTES, exact=False))
        return rooms

    def _rooms(self, sets: ConvexSets, most: int, enough: Sequence[int], labels: int) -> list[_Room] | None:
        """Return the rooms of devices of each class for at most so many ticks; None where limits do not suffice."""
        rooms = []
        for c, least in enumerate(enough):
            room = self._room(sets, c, most, least, labels)
            if room is None:
                return None
            rooms.append(room)
        return rooms

    def _room(self, sets: ConvexSets, c: int, most: int, enough: int, labels: int) -> _Room | None:
        held = self._held(sets, c, labels)
        if held is not None and held.within(most) <= enough:
            return _Room(held, enough, BYTES, exact=True)
        stair = self._stair(sets, c, most, enough, labels)
        if stair is not None:
            return _Room(stair, enough, BOTH, exact=True)
        time = None if held is None else self._stair(sets, c, most, enough, labels, TIME)
        if held is None and time is None:
            return None
        if time is None or (held is not None and held.within(most) < time.within(most)):
            assert held is not None
            return _Room(held, enough, BYTES, exact=False)
        return _Room(time, enough, TIME, exact=False)

    def _stair(self, sets: ConvexSets, c: int, most: int, known: int, labels: int, counted: str = BOTH) -> Stair | None:
        """Return the sets of at most so many ticks, or bytes; None where the limits do not suffice."""
        effort = self._effort
        allowed = min(labels, max(0, effort.labels - self._labels))
        stair = sets.stair(c, ScanLimits(most, known, allowed, effort.width, effort.ended), counted)
        self._labels += allowed if stair is None else stair.labels
        return stair

    def _held(self, sets: ConvexSets, c: int, labels: int) -> Stair | None:
        """Return the most work that a device has memory for, in whatever time; None if it is not limited or known."""
        left = sets.bytes_left(c)
        if left is None:
            return None
        allowed = min(labels * _MORE_BY_BYTES, 2 * self._effort.labels, _LABELS[-1])
        key = c, sets, allowed
        if key not in self._by_bytes:
            known = sets.run(c, self._upper)
            stair = sets.stair(c, ScanLimits(left, known, allowed, self._effort.width, self._effort.ended), BYTES)
            most = None if stair is None else max(known, stair.within(left))
            self._by_bytes[key] = (
                None if most is None else Stair(np.zeros(1, dtype=np.int64), np.array([most], dtype=np.int64), 0)
            )
        return self._by_bytes[key]

    def _shared_out(self, sets: ConvexSets, rooms: Sequence[int], ticks: int, labels: int) -> list[int]:
        """Return larger rooms whose best ones are less than all work, the more so the more a device has time for."""
        most = [room.enough for room in self._limits(sets, ticks, labels)]

        def with_part(part: int) -> list[int]:
            pairs = zip(rooms, most, strict=True)
            return [room + max(0, time - room) * part // _PARTS for room, time in pairs]

        part = bisect_left(range(_PARTS + 1), True, key=lambda part: self._suffice(with_part(part))) - 1
        return with_part(part) if part > 0 else list(rooms)

    def _spare(self, rooms: Sequence[int]) -> int:
        """Return by how much each room may be larger for the best ones to be less than all work, 0 if they are not."""
        return max(0, (self._total - 1 - self._best(rooms)) // self._most)

    def _best(self, rooms: Sequence[int]) -> int:
        """Return the sum of the largest rooms of the devices that may be used."""
        return sum(sorted((rooms[c] for c in self._class_of), reverse=True)[: self._most])

    def _suffice(self, rooms: Sequence[int]) -> bool:
        return self._best(rooms) >= self._total

    def _take(self, ticks: int, found: Sequence[_Room], forgotten: Sequence[int]) -> None:
        """Take it that no partition costs so many ticks; what is to spare goes to all devices alike."""
        rooms = _within(found, ticks)
        spare = self._spare(rooms)
        self.lower = ticks + 1
        if self.found is None or self.lower > self.found.value:
            proof = {
                "cutoff": self.lower,
                "k": self._most,
                "order": self._instance.machine.order,
                "measure": self._class,
                "rooms": [room + spare for room in rooms],
                "counted": [one.counted for one in found],
                "forgotten": list(forgotten),
            }
            self.found = LowerBound(self.lower, CAPACITY, Tier.ENUMERATED, proof)


def _within(rooms: Sequence[_Room], ticks: int) -> list[int]:
    return [room.within(ticks) for room in rooms]
