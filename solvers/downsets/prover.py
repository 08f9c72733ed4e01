"""Closing the gap between a partition and its lower bound, from both sides, by searches over downsets."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Protocol

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.partition import Partition
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.feasibility import proven_infeasible
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER

DEFAULT_MEMORY_BYTES = 2**30
"""What the downsets of a search may take where nobody says otherwise."""

_SLICE = 1 << 20
"""Steps between two looks at the clock."""

_MAIN_MEMORY = 0.5
"""Of the memory, for the downsets of the search just below the bottleneck; half as much again while they grow, and as
much again while their digest is made."""

_LIFT_MEMORY = 0.1

_LIFT_SHARE = 0.25
"""Of the steps, for limits halfway down to the bound, while the search just below the bottleneck stays open."""

_PROBE_SHARE = 0.5
"""Of the steps left for that, for each of those limits."""

_CLOSE = 1000
"""A limit that is closer to the bound than one part in so many is not worth a search of its own."""


class Search(Protocol):
    """A search for a partition within a limit, as :class:`~mtpp.solvers.downsets.enumeration.DownsetSearch`."""

    limit: int
    state: str
    finds_best: bool

    @property
    def steps(self) -> int: ...  # noqa: D102
    def advance(self, steps: int, piece: int, ended: Callable[[], bool]) -> int: ...  # noqa: D102
    def partition(self) -> Partition: ...  # noqa: D102
    def proof(self, reduced: ReducedInstance) -> dict[str, Any]: ...  # noqa: D102


class Problem(Protocol):
    """An instance made ready for searches, as :class:`~mtpp.solvers.downsets.enumeration.DownsetProblem`."""

    @property
    def first_steps(self) -> int: ...  # noqa: D102
    @property
    def most_ticks(self) -> int: ...  # noqa: D102
    def search(self, limit: int, memory_bytes: int) -> Search: ...  # noqa: D102
    def bottleneck(self, partition: Partition) -> int: ...  # noqa: D102


class Prover:
    """Raises the lower bound on an instance's optimum, and finds better partitions, until the two meet.

    A search over downsets decides whether any partition stays within a limit. If none does, the bound rises above the
    limit; else the partition found is a better one. The first limit is just below the bottleneck at hand.

    Parameters
    ----------
    reduced
        The searches run on it after all merges; the proof speaks of it before them.
    limits
        Of the whole search: ``lower_bound`` is where the bound begins, ``memory_bytes`` is for the downsets kept.
    problem
        That the searches are of; None: of the reduced instance on equal devices.
    strictly
        Whether a search is only begun where the steps suffice for a look at crossings; else the last one may take that
        many more.

    Attributes
    ----------
    inner
        The instance after all merges.
    lower
        Ticks that no partition can beat, as far as is known.
    bound
        The proof, None as long as no search has raised the bound.
    found
        The best partition of :attr:`inner` found here, None if none was.
    steps
        Steps made.
    """

    def __init__(
        self, reduced: ReducedInstance, limits: SearchLimits, problem: Problem | None = None, *, strictly: bool = False
    ) -> None:
        self.inner = reduced.instance
        self.lower = limits.lower_bound
        self.bound: LowerBound | None = None
        self.found: Partition | None = None
        self.steps = 0
        self._reduced = reduced
        self._limits = limits
        self._strictly = strictly
        self._problem: Problem = problem or downset_problem(self.inner)
        self._memory_bytes = DEFAULT_MEMORY_BYTES if limits.memory_bytes is None else limits.memory_bytes
        self._main: Search | None = None
        self._undecided: int | None = None  # the least limit at which a search came to no end
        self._halve = False
        self._not_by_crossings = NEVER  # the least limit at which crossings alone showed nothing; nor do they above
        self._lift_by = NEVER // 8  # above the bound, the next limit to raise it at; longer after a success
        self._upper = NEVER  # bottleneck of the best partition found here

    def any_partition(self, steps: int) -> Partition | None:
        """Search for that many steps for a partition of :attr:`inner` that keeps to the stage memory, at any cost."""
        last_step = self.steps + steps
        if not self._may_begin(last_step):
            return None
        search = self._begun(self._problem.most_ticks, _MAIN_MEMORY)
        self._run(search, last_step)
        if search.state == "ended":
            raise proven_infeasible(self._reduced.original)
        return search.partition() if search.state == "found" else None

    def exhausted(self, upper: int) -> bool:
        """Tell whether more steps are of no use as long as *upper* is the best bottleneck known."""
        if self.lower >= upper:
            return True
        undecided = self._undecided
        return undecided is not None and undecided < upper and not self._worth_lifting(undecided)

    def close(self, upper: int, steps: int) -> int:
        """Search for that many steps, given a partition with bottleneck *upper*; return the bottleneck known then.

        Where it is below *upper*, :attr:`found` has it. Stops early when bound and bottleneck meet, when the memory
        does not suffice for more, or when the limits say so.
        """
        last_step = self.steps + steps
        while self.lower < upper and self.steps < last_step and self._limits.stop is None:
            if self._main is not None and self._main.limit >= upper:
                self._main = None
            if self._main is None:
                limit = self._next_limit(upper)
                if limit is None or not self._may_begin(last_step):
                    break
                self._main = self._begun(limit, _MAIN_MEMORY)
            search = self._main
            left = last_step - self.steps
            self._run(search, last_step - (int(_LIFT_SHARE * left) if self._worth_lifting(search.limit) else 0))
            if search.state == "open":
                self._lift(search.limit, last_step)
                break
            self._main = None
            self._settle(search)
            upper = min(upper, self._upper)
        return min(upper, self._upper)

    def accept(self, bound: LowerBound) -> None:
        """Take in a bound that was proven elsewhere."""
        if bound.value > self.lower:
            self.lower, self.bound = bound.value, bound
            self._limits.keeper.prove(bound)
            if self._main is not None and self._main.limit < self.lower:  # it would show less than is known
                self._main = None
            if self._undecided is not None and self._undecided < self.lower:
                self._undecided = None

    def _next_limit(self, upper: int) -> int | None:
        undecided = self._undecided
        if undecided is not None and undecided < upper:
            return (self.lower + undecided) // 2 if self._worth_lifting(undecided) else None
        # Just below the bottleneck, which is often optimal; halfway to the bound after a success.
        return (self.lower + upper - 1) // 2 if self._halve else upper - 1

    def _worth_lifting(self, undecided: int) -> bool:
        return undecided - self.lower > max(1, self.lower // _CLOSE)

    def _goes_on(self, last_step: int) -> bool:
        """Tell whether there are steps left for one more search."""
        return self.steps < last_step and self._may_begin(last_step) and self._limits.stop is None

    def _may_begin(self, last_step: int) -> bool:
        return not self._strictly or self.steps + self._problem.first_steps <= last_step

    def _begun(self, limit: int, memory_share: float) -> Search:
        """Return a search at its beginning; what it takes to look at crossings counts as steps."""
        search = self._problem.search(limit, int(memory_share * self._memory_bytes))
        self.steps += search.steps
        return search

    def _run(self, search: Search, last_step: int) -> None:
        """Let a search go on until it is decided, the steps are made, or the limits say so."""
        self.steps += search.advance(last_step - self.steps, _SLICE, self._limits.ended)

    def _settle(self, search: Search) -> None:
        """Take in what a search has decided."""
        if search.state == "found":
            self.found = search.partition()
            self._halve = not search.finds_best
            self._upper = self._problem.bottleneck(self.found)
            self._limits.observer.incumbent(self._upper)
            found = self.found
            self._limits.keeper.offer(self._upper, "downset", lambda: self._reduced.lift(found))
        elif search.state == "ended":
            self.lower = search.limit + 1
            self._halve = False
            self._limits.observer.bound(self.lower)
            self.bound = LowerBound(self.lower, "downset", Tier.ENUMERATED, search.proof(self._reduced))
            self._limits.keeper.prove(self.bound)
        else:
            self._undecided = search.limit

    def _lift(self, undecided: int, last_step: int) -> None:
        """Raise the bound at limits not far above it while the search at *undecided* stays open."""
        self._lift_by_crossings(undecided, last_step)
        while self._worth_lifting(undecided) and self._goes_on(last_step):
            least = max(1, self.lower // _CLOSE)
            limit = min(self.lower + max(self._lift_by, least), (self.lower + undecided) // 2)
            search = self._begun(limit, _LIFT_MEMORY)
            self._run(search, self.steps + ceil(_PROBE_SHARE * (last_step - self.steps)))
            if search.state == "ended":
                self._settle(search)
                self._lift_by = min(2 * self._lift_by, NEVER // 8)
            elif search.state == "found":  # below all that the open search could find
                self._settle(search)
                self._main = None
                return
            elif self._lift_by <= least:
                return
            else:
                self._lift_by = max(least, (limit - self.lower) // 4)

    def _lift_by_crossings(self, undecided: int, last_step: int) -> None:
        """Raise the bound as far as that takes no search: by what has to cross between the stages."""
        highest: Search | None = None
        low, high = self.lower, min(undecided, self._not_by_crossings)
        while high - low > max(1, low // _CLOSE) and self._goes_on(last_step):
            search = self._begun((low + high) // 2, 0)
            if search.state == "ended":
                highest, low = search, search.limit + 1
            else:
                high = self._not_by_crossings = search.limit
        if highest is not None:
            self._settle(highest)
