"""Bounds searched on a graph, and on relaxations of it, whichever gets further in the time there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import log
from typing import Any, Protocol

from mtpp.host.deadline import Deadline
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation, relax
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.relaxation.candidates import Candidates
from mtpp.solvers.relaxation.loop import MOST_OPS

_APART = 0.9
"""A relaxation is another one if it has at most so many times the ops of the next larger one."""

NO_ROOM = "for graphs with few live tensors, whose states fit into memory"

_LEAST_TURN_S = 1.5
"""Seconds that a turn takes at least: with less time, fewer graphs race."""

_TRAILING = 0.25
"""Part of a turn of a relaxation after which it ends if the graph itself has come further, and can go on."""


class LimitSearch(Protocol):
    """Search for the highest limit of ticks that can be ruled out."""

    @property
    def reached(self) -> int:
        """The highest limit that it has ruled out, in ticks; −1 if none was."""

    @property
    def ended(self) -> bool:
        """Whether no higher one can be ruled out here, or need be."""

    @property
    def solved(self) -> bool:
        """Whether it has ended, and that is certain of its means."""

    @property
    def partition(self) -> Partition | None:
        """The best partition found on the way that is better than the one known; None if there is none."""

    @property
    def shares(self) -> Sequence[StageShares]:
        """Weights for other searches, of limits that were not ruled out."""

    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now."""

    def put_off(self) -> None:
        """Give the memory of what need not be kept back, until the next run."""

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""


@dataclass(frozen=True)
class Course:
    """Graphs that take part in a race.

    Attributes
    ----------
    method, tier
        Of the bound.
    search
        Makes the search on an instance; None: it is not one for it.
    largest
        Ops at most.
    fewest
        Ops after merges up to which the graph itself is all that is looked at.
    handy
        Ops after merges of a graph that gets far within seconds.
    alone
        Share of each turn for the graph itself, before the others race, and all of the first turn where it raises the
        bound; 0 where it races with them.
    """

    method: str
    tier: Tier
    search: Callable[[Instance, BoundLimits], LimitSearch | None]
    largest: int
    fewest: int
    handy: int
    alone: float = 0.0


@dataclass(eq=False)
class _Contender:
    """A relaxation after merges, or with None the graph itself, and what was found on it."""

    reduced: ReducedInstance
    relaxation: Relaxation | None
    search: LimitSearch | None = None
    unfit: bool = False

    @property
    def ops(self) -> int:
        return self.reduced.instance.op_count

    @property
    def reached(self) -> int:
        """The highest limit that was ruled out on it, in ticks; −1 if none was."""
        return -1 if self.search is None else self.search.reached

    def lower_bound(self, course: Course) -> LowerBound:
        """Return the highest limit ruled out on it, plus 1."""
        assert self.search is not None
        proof = self.search.document()
        if self.relaxation is not None:
            proof = {"relaxed": self.relaxation.record(), "merges": self.reduced.record(), **proof}
        return LowerBound(self.reached + 1, course.method, course.tier, proof)


class Race:
    """Graphs in turns, each time half as many; when nothing is left to do on those, the others go on.

    Parameters
    ----------
    instance
        Of at least two stages.
    """

    def __init__(self, instance: Instance, course: Course, limits: BoundLimits) -> None:
        self._instance, self._course, self._limits = instance, course, limits
        self._whole = _Contender(ReducedInstance(instance), None)
        self._contenders: list[_Contender] | None = None
        self._lower = limits.lower
        self._best: _Contender | None = None
        self._solved = self._began = False

    def run(self, limits: BoundLimits) -> BoundResult:
        """Go on within some limits."""
        self._limits = limits
        self._lower = max(self._lower, limits.lower)
        if self._course.alone:
            self._advance(self._whole, limits.deadline.share(self._course.alone))
            if self._best is not None and not self._began:
                self._advance(self._whole, limits.deadline)
        self._began = True
        if not self._solved and not limits.ended():
            self._race()
            self._advance(self._whole, limits.deadline)
        lower = None if self._best is None else self._best.lower_bound(self._course)
        over = self._solved or self._left_over()
        partition = None if self._whole.search is None else self._whole.search.partition
        left_out = NO_ROOM if lower is None and self._unfit() else ""
        shares = () if self._whole.search is None else tuple(self._whole.search.shares)
        return BoundResult(lower, self._solved, partition, left_out, None if over else self.run, shares)

    def _unfit(self) -> bool:
        """Tell whether no graph is one for the search."""
        return self._whole.unfit and self._contenders is not None and all(one.unfit for one in self._contenders)

    def _left_over(self) -> bool:
        """Tell whether nothing is left to do on any graph."""
        made = self._contenders
        return made is not None and all(
            one.unfit or (one.search is not None and one.search.ended) for one in (*made, self._whole)
        )

    def _race(self) -> None:
        if self._contenders is None:
            made = self._made()
            if self._limits.ended():  # before all of them were made
                return
            self._contenders = made
        racing = self._contenders[: _affordable(len(self._contenders), self._limits)]
        for later in range(_rounds(len(racing)), 0, -1):
            turn = self._limits.deadline.share(1 / (later + 1))
            for i, one in enumerate(racing):
                self._advance(one, turn.share(1 / (len(racing) - i)))
            racing.sort(key=lambda one: one.reached, reverse=True)
            racing = racing[: (len(racing) + 1) // 2]
        last = [one for one in self._contenders if one not in racing]
        for one in racing + sorted(last, key=lambda one: one.reached, reverse=True):
            self._advance(one, self._limits.deadline)

    def _advance(self, one: _Contender, deadline: Deadline) -> None:
        """Let a graph go on until a deadline, a relaxation only for a part of it where the graph itself leads."""
        if self._solved or one.unfit or one.ops > self._course.largest or self._limits.ended():
            return
        start = self._limits.start if one.relaxation is None else None
        if one.search is None:
            one.search = self._course.search(
                one.reduced.instance, replace(self._limits, start=start, lower=self._lower)
            )
            if one.search is None:
                one.unfit = True
                return
        search, interrupted, due = one.search, self._limits.interrupted, deadline.share(_TRAILING)
        leader = self._whole if one.relaxation is not None and self._best is self._whole else None
        led = leader is not None and leader.search is not None and not leader.search.ended

        trails = False

        def ended() -> bool:
            nonlocal trails
            trails = trails or (led and due.expired() and search.reached < self._lower)
            return trails or interrupted()

        search.run(replace(self._limits, start=start, deadline=deadline, lower=self._lower, interrupted=ended))
        one.search.put_off()
        if one.reached >= self._lower:
            self._best, self._lower = one, one.reached + 1
        self._solved = self._lower >= self._limits.target or (one.relaxation is None and one.search.solved)

    def _made(self) -> list[_Contender]:
        """Return the graph itself and relaxations of it, graphs of a handy size first."""
        instance, limits, course = self._instance, self._limits, self._course
        fit = self._whole.ops <= course.largest and not self._whole.unfit
        found = [self._whole] if fit and not course.alone else []
        original = instance if limits.reduced is None else limits.reduced.original
        in_no_hurry = fit and limits.deadline.limit_s is None
        if self._whole.ops <= course.fewest or original.op_count > MOST_OPS or in_no_hurry:
            return found
        smallest = self._whole.ops
        boundary = original.cost.boundary
        if boundary is not None and not boundary.one_link:  # leaving out ops does not hold there
            return found
        candidates = Candidates.of(original if original.uniform else original.envelope)
        for left_out in reversed(list(candidates.levels(limits.upper, limits.ended, trees=False))):
            if limits.ended():
                break
            with suppress(ValueError):  # too many paths
                relaxation = relax(original, left_out)
                one = _Contender(reduce_instance(relaxation.instance, ended=limits.ended), relaxation)
                if one.ops <= min(_APART * smallest, course.largest):
                    smallest = one.ops
                    found.append(one)
        return sorted(found, key=lambda one: abs(log(one.ops / course.handy)))


def _affordable(count: int, limits: BoundLimits) -> int:
    """Return for how many of that many graphs there is time, at least one."""
    seconds = limits.deadline.remaining_s()
    return max(1, sum(seconds >= _LEAST_TURN_S * n * (_rounds(n) + 1) for n in range(1, count + 1)))


def _rounds(count: int) -> int:
    """Return how often that many can be halved, rounded up, until one is left."""
    return max(0, count - 1).bit_length()
