"""The optimum of a relaxed instance, by downset searches from the known lower bound upwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation
from mtpp.solvers.downsets.enumeration import DownsetProblem, downset_problem
from mtpp.solvers.downsets.prover import Problem, Search
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER

METHOD = "relaxation"

_SLICE = 1 << 17
"""Steps between two looks at the clock."""

_FIRST_SHARE = 0.4
"""Of the steps, for a search just below the bottleneck: often nothing is left to be found there."""

_STEP = 2000
"""The first limit is one part in so many above the lower bound, and so is the least gap that is worth a search."""

_WEIGHED_AFTER = 1 << 21
"""Steps after which weights are looked for."""

_PER_WEIGHING = 4
"""Steps of searches for each one of weights, at least."""

_LESS_SLACK = 0.75
"""Part of the slack of the weights in use that better ones may have, for the search to begin again with them."""


class Rule(Protocol):
    """Weights for one instance, as of :class:`mtpp.solvers.bounds.convex_weights.search_rule.SearchRule`."""

    def improved(  # noqa: D102
        self, limit: int, steps: int, ended: Callable[[], bool]
    ) -> tuple[StageShares | None, int]: ...


class Rules(Protocol):
    """Weights for several, as of :class:`mtpp.solvers.bounds.convex_weights.search_rule.SearchRules`."""

    def begin(self, instance: Instance) -> Rule | None: ...  # noqa: D102


class RelaxedSearch:
    """Downset searches of a relaxed instance: the harder the higher their limit, so they come from below.

    Parameters
    ----------
    relaxation
        The instance to search.
    lower, upper
        Ticks that no partition of the original can beat, and that one takes.
    memory_bytes
        Of the downsets kept, at most.
    ended
        Tells whether the work has to end.
    problem_of
        Makes an instance ready for searches.
    rules
        Begins weights for the search of an instance that goes on for long; None: there are none.

    Attributes
    ----------
    lower
        What is known of the original's optimum at least.
    bound
        The proof that raised it last, None if none did.
    partition, cost
        The best partition of the relaxed instance below *upper*, and its bottleneck; None and *upper* if there is none.
    steps
        Steps made.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        lower: int,
        upper: int,
        memory_bytes: int,
        ended: Callable[[], bool],
        problem_of: Callable[[Instance], Problem] = downset_problem,
        rules: Rules | None = None,
    ) -> None:
        self.relaxation = relaxation
        self.lower = lower
        self.cost = upper
        self.bound: LowerBound | None = None
        self.partition: Partition | None = None
        self._ended = ended
        self._memory_bytes = memory_bytes
        self._reduced = reduce_instance(relaxation.instance, ended=ended, relays=True)
        self._problem = problem_of(self._reduced.instance)
        self.steps = len(self._reduced.instance.pins) + len(relaxation.original.pins)
        self._undecided = upper
        self._open: Search | None = None
        self._undecided_search: Search | None = None
        self._too_large = NEVER  # the least limit of a search that the memory did not suffice for
        self._step = max(1, upper // _STEP)
        self._rule = None if rules is None else rules.begin(self._reduced.instance)
        self._weighing = 0  # steps that weights took
        self._slack = float(self._reduced.instance.k)  # stages that the weights in use leave empty

    @property
    def closed(self) -> bool:
        """Whether no search is left: the relaxed instance has no partition below :attr:`cost`, or bounds say enough."""
        return self.lower >= self.cost

    def run(self, lower: int, upper: int, steps: int) -> None:
        """Search for about that many steps, given what is known of the original by now."""
        self.lower = max(self.lower, lower)
        if upper < self.cost:
            self.cost, self.partition = upper, None
        self._undecided = min(self.cost, self._too_large)
        last_step = self.steps + steps
        self._search_below_cost(self.steps + int(_FIRST_SHARE * steps))
        while not self.closed and not self._ended() and self.steps < last_step:
            least = max(1, self.cost // _STEP)
            highest = min(self.cost, self._undecided) - 1
            if highest < self.lower or (self._undecided < self.cost - 1 and highest < self.lower + least - 1):
                break
            search = self._next_search(highest)
            self._run(search, last_step)
            self._undecided_search = search if search.state == "open" else None
            self._settle(search)
        if self.closed:
            self._open = self._undecided_search = None

    def _next_search(self, highest: int) -> Search:
        """Return a search a little above the lower bound, or the last one if it was not decided."""
        last = self._undecided_search
        if last is not None and self.lower <= last.limit <= highest:
            return last
        self._undecided_search = None
        limit = min(self.lower + self._step, (self.lower + highest) // 2)
        search = self._problem.search(limit, self._memory_bytes)
        self.steps += search.steps
        return search

    def _search_below_cost(self, last_step: int) -> None:
        """Go on with the search just below the best cost: where it comes to its end, no other is needed."""
        if self.closed:
            return
        if self.cost > self._too_large:
            if not self._weighed(self.cost - 1):
                return
            self._too_large = NEVER  # of searches without these weights
        if self._open is None or self._open.limit >= self.cost:
            self._open = self._problem.search(self.cost - 1, self._memory_bytes)
            self.steps += self._open.steps
        search = self._open
        self._run(search, last_step)
        began = self.steps
        if search.state in ("open", "full") and self._weighed(search.limit):
            search = self._open = self._problem.search(search.limit, self._memory_bytes)
            self._run(search, max(last_step, 2 * self.steps - began))
        if search.state != "open":
            self._open = None
            self._settle(search)

    def _weighed(self, limit: int) -> bool:
        """Look for weights as a rule of the search at a limit; tell whether it is worth beginning again with them."""
        problem, rule, steps = self._problem, self._rule, self.steps - self._weighing
        if rule is None or not isinstance(problem, DownsetProblem):
            return False
        if steps < max(_WEIGHED_AFTER, _PER_WEIGHING * self._weighing) or self._ended():
            return False
        shares, made = rule.improved(limit, steps // _PER_WEIGHING, self._ended)
        self.steps += made
        self._weighing += made
        k = self._reduced.instance.k
        if shares is None or not shares.tells(k) or max(0.0, k - shares.filled) >= _LESS_SLACK * self._slack:
            return False
        self._slack = max(0.0, k - shares.filled)
        self._problem = replace(problem, shares=(shares,))
        return True

    def _run(self, search: Search, last_step: int) -> None:
        self.steps += search.advance(last_step - self.steps, _SLICE, self._ended)

    def _settle(self, search: Search) -> None:
        if search.state == "ended":
            self.lower = search.limit + 1
            proof = {"relaxed": self.relaxation.record(), **search.proof(self._reduced)}
            self.bound = LowerBound(self.lower, METHOD, Tier.ENUMERATED, proof)
            self._step *= 3
        elif search.state == "found":
            found = search.partition()
            self.cost = min(search.limit, self._problem.bottleneck(found))  # with relays it may cost more
            self.partition = self._reduced.lift(found)
            self._step = max(1, self._step // 3)
        else:
            if search.state == "full":
                self._too_large = min(self._too_large, search.limit)
            self._undecided = min(self._undecided, search.limit)
            self._step = max(1, self._step // 3)
