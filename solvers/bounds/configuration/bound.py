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
from mtpp.solvers.threads import Threads

METHOD = "configuration"

LARGEST = 2000
"""Ops at most: the paths between all pairs are kept in memory."""

_FEWEST = 250
"""Ops after merges up to which the graph itself is all that is looked at."""

_APART = 0.9
"""A relaxation is another one if it has at most so many times the ops of the next larger one."""

_HANDY = 400
"""Ops after merges that a few seconds do for."""

_LEAST_TURN_S = 1.5
"""Seconds that a turn takes at least: with less time, fewer relaxations are tried."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the highest limit that the configuration LP rules out, plus 1; tier ``exact``.

    Where the graph is large and the time limited, relaxations of it take turns: the fewer ops, the sooner the limit
    rises, and the lower it stays. After each round the half that got less far is put off.

    Notes
    -----
    Solved if the limit after the last one ruled out, or one within 0.05 % of it, cannot be ruled out by such weights on
    the graph itself: no family is left to split there.
    """
    if instance.k < 2:
        return BoundResult(None, solved=False)
    views = _views(instance, limits)
    if not views:
        return BoundResult(None, solved=False)
    with Threads(limits.jobs) as threads:
        return _Race(views, limits, threads).run()


@dataclass(eq=False)
class _View:
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
    """Views in turns, each time half as many; when nothing is left to do in those, the others go on."""

    def __init__(self, views: list[_View], limits: BoundLimits, threads: Threads) -> None:
        self._views = views
        self._threads = threads
        self._limits = limits
        self._lower = limits.lower
        self._best: _View | None = None
        self._solved = False

    def run(self) -> BoundResult:
        views, rounds = self._views, _rounds(len(self._views))
        for later in range(rounds, 0, -1):
            turn = self._limits.deadline.share(1 / (later + 1))
            for i, view in enumerate(views):
                self._advance(view, turn.share(1 / (len(views) - i)))
            views.sort(key=lambda view: view.reached, reverse=True)
            views = views[: (len(views) + 1) // 2]
        for view in sorted(self._views, key=lambda view: view.reached, reverse=True):
            self._advance(view, self._limits.deadline)
        return BoundResult(None if self._best is None else self._best.lower_bound(), self._solved)

    def _advance(self, view: _View, deadline: Deadline) -> None:
        if self._solved or self._limits.ended():
            return
        if view.search is None:
            view.search = ConfigurationSearch(view.reduced.instance, self._limits, self._threads)
        view.search.run(deadline, self._lower)
        if view.reached >= self._lower:
            self._best, self._lower = view, view.reached + 1
        self._solved = self._lower >= self._limits.target or (view.relaxation is None and view.search.solved)


def _views(instance: Instance, limits: BoundLimits) -> list[_View]:
    """Return the graph itself and relaxations of it, as many as there is time for, those of a handy size."""
    whole = _View(ReducedInstance(instance), None)
    views = [whole] if whole.ops <= LARGEST else []
    seconds = limits.deadline.remaining_s()
    if whole.ops <= _FEWEST or (views and limits.deadline.limit_s is None):
        return views
    original = instance if limits.reduced is None else limits.reduced.original
    smallest = whole.ops
    for left_out in reversed(list(Candidates.of(original).levels(limits.upper))):
        if limits.ended():
            break
        with suppress(ValueError):  # too many paths
            relaxation = relax(original, left_out)
            view = _View(reduce_instance(relaxation.instance, ended=limits.ended), relaxation)
            if view.ops <= min(_APART * smallest, LARGEST):
                smallest = view.ops
                views.append(view)
    views.sort(key=lambda view: abs(log(view.ops / _HANDY)))
    return views[: max(1, sum(seconds >= _LEAST_TURN_S * n * (_rounds(n) + 1) for n in range(1, len(views) + 1)))]


def _rounds(count: int) -> int:
    """Return how often that many can be halved, rounded up, until one is left."""
    return (count - 1).bit_length()
