"""The configuration bound of a graph, and of relaxations of it, whichever gets further in the time there is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import log

from mtpp.host.deadline import Deadline
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.relaxation import Relaxation, relax
from mtpp.solvers.bounds.configuration.search import ConfigurationSearch
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.relaxation.candidates import Candidates
from mtpp.solvers.relaxation.loop import MOST_OPS
from mtpp.solvers.threads import Threads

METHOD = "configuration"

LARGEST = 2000
"""Ops at most: the paths between all pairs are kept in memory."""

_FEWEST = 250
"""Ops after merges up to which the graph itself is all that is looked at."""

_APART = 0.9
"""A relaxation is another one if it has at most so many times the ops of the next larger one."""

_HANDY = 400
"""Ops after merges of a graph that gets far within seconds."""

_LEAST_TURN_S = 1.5
"""Seconds that a turn takes at least: with less time, fewer graphs race."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the highest limit that the configuration LP rules out, plus 1; tier ``exact``.

    Where the graph is large and the time limited, it races against relaxations of it: the fewer ops, the sooner the
    limit rises, and the lower it stays. After each round of turns the half that got less far is put off.

    Notes
    -----
    Solved if the limit after the last one ruled out, or one within 0.05 % of it, cannot be ruled out by such weights on
    the graph itself: no family is left to split there.
    """
    if instance.k < 2:
        return BoundResult(None, solved=False)
    contenders = _contenders(instance, limits)
    with Threads(limits.jobs) as threads:
        return _Race(contenders, limits, threads).run()


@dataclass(eq=False)
class _Contender:
    """A relaxation after merges, or with None the graph itself, and what was found on it."""

    reduced: ReducedInstance
    relaxation: Relaxation | None
    search: ConfigurationSearch | None = None

    @property
    def ops(self) -> int:
        return self.reduced.instance.op_count

    @property
    def reached(self) -> int:
        """The highest limit that was ruled out on it, in ticks; −1 if none was."""
        return -1 if self.search is None or self.search.proven is None else self.search.proven.limit

    def lower_bound(self) -> LowerBound:
        """Return the highest limit ruled out on it, plus 1."""
        assert self.search is not None
        proof = self.search.document()
        if self.relaxation is not None:
            proof = {"relaxed": self.relaxation.record(), "merges": self.reduced.record(), **proof}
        return LowerBound(self.reached + 1, METHOD, Tier.EXACT, proof)


class _Race:
    """Graphs in turns, each time half as many; when nothing is left to do on those, the others go on.

    Parameters
    ----------
    contenders
        Those for which there is time first.
    """

    def __init__(self, contenders: list[_Contender], limits: BoundLimits, threads: Threads) -> None:
        self._contenders = contenders
        self._threads = threads
        self._limits = limits
        self._lower = limits.lower
        self._best: _Contender | None = None
        self._solved = False

    def run(self) -> BoundResult:
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
        return BoundResult(None if self._best is None else self._best.lower_bound(), self._solved)

    def _advance(self, one: _Contender, deadline: Deadline) -> None:
        if self._solved or self._limits.ended():
            return
        if one.search is None:
            one.search = ConfigurationSearch(one.reduced.instance, self._limits, self._threads)
        one.search.run(deadline, self._lower)
        one.search.put_off()
        if one.reached >= self._lower:
            self._best, self._lower = one, one.reached + 1
        self._solved = self._lower >= self._limits.target or (one.relaxation is None and one.search.solved)


def _contenders(instance: Instance, limits: BoundLimits) -> list[_Contender]:
    """Return the graph itself and relaxations of it, those of a handy size first."""
    whole = _Contender(ReducedInstance(instance), None)
    found = [whole] if whole.ops <= LARGEST else []
    original = instance if limits.reduced is None else limits.reduced.original
    in_no_hurry = bool(found) and limits.deadline.limit_s is None
    if whole.ops <= _FEWEST or original.op_count > MOST_OPS or in_no_hurry:
        return found
    smallest = whole.ops
    for left_out in reversed(list(Candidates.of(original).levels(limits.upper, limits.ended, trees=False))):
        if limits.ended():
            break
        with suppress(ValueError):  # too many paths
            relaxation = relax(original, left_out)
            one = _Contender(reduce_instance(relaxation.instance, ended=limits.ended), relaxation)
            if one.ops <= min(_APART * smallest, LARGEST):
                smallest = one.ops
                found.append(one)
    return sorted(found, key=lambda one: abs(log(one.ops / _HANDY)))


def _affordable(count: int, limits: BoundLimits) -> int:
    """Return for how many of that many graphs there is time, at least one."""
    seconds = limits.deadline.remaining_s()
    return max(1, sum(seconds >= _LEAST_TURN_S * n * (_rounds(n) + 1) for n in range(1, count + 1)))


def _rounds(count: int) -> int:
    """Return how often that many can be halved, rounded up, until one is left."""
    return max(0, count - 1).bit_length()
