"""Lower bound of the iteration over all stage graphs: the least time in which some chain of downsets could run.

See :mod:`~mtpp.solvers.planners.graphpipe.chain_search` for the chains, and why any plan makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mtpp.solvers.planners.graphpipe.branches import cheap_layers, equal_branches
from mtpp.solvers.planners.graphpipe.chain_search import LARGEST, ChainSearch
from mtpp.solvers.planners.graphpipe.kernels.chain_arrays import NONE, UNKNOWN
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.threads import Threads
from mtpp.training.graph_problem import GraphProblem

_MOST_STEPS = 150_000
"""Of a search for the least ticks of one size of micro-batches."""

_RAISING_STEPS = 600_000
"""Of all searches that raise a bound, about."""

_PRECISION = 2_000
"""Parts of the bound that it is raised by at first."""

_TOGETHER = 2
"""Sizes of micro-batches that are searched at once."""

_QUICK_STEPS = 20_000
_QUICKLY_LEFT_OUT = (0.1,)
"""Of a search that only tells whether there is any chain, and parts of all work that may be left out of it."""

_LEFT_OUT = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Parts of all work that may be left out, one after the other."""


class PipelineBound(NamedTuple):
    """Lower bound of the iterations of all plans.

    Attributes
    ----------
    value
        Ticks: no plan takes less.
    method
        ``work``: the least work of all layers, spread evenly over the devices; ``chains``: there is no chain of
        downsets for *value* − 1 ticks.
    left_out
        Layers that those chains ignore, by their positions in the model, ascending.
    """

    value: int
    method: str
    left_out: tuple[int, ...] = ()


def iteration_bound(
    problem: GraphProblem, upper: int, stopped: Callable[[], bool] = lambda: False, *, threads: int = 1
) -> PipelineBound:
    """Return ticks that the iteration of no plan is below, at most *upper*, which may be that of a plan.

    Parameters
    ----------
    stopped
        Whether to end early, with a bound that is lower.
    threads
        At work on sizes of micro-batches; the bound does not depend on their number.

    Notes
    -----
    Exponential in the width of the model at worst; equal branches are interchangeable. Steps are limited: ever more
    layers are left out, which cannot raise the bound, until the least ticks of all chains are found. Steps that are
    left try to raise the bound with fewer layers left out.
    """
    costs = LeastCosts(problem)
    work = costs.work(costs.every)
    found = PipelineBound(min(upper, -(-sum(work) // problem.devices)), "work")
    if found.value >= upper or _too_large(problem, upper):
        return found
    choices = dict.fromkeys([frozenset(), *cheap_layers(problem.model, costs.kinds, work, _LEFT_OUT)])
    with Threads(threads) as pool:
        tried = []
        for left_out in choices:
            groups = equal_branches(problem.model, costs.kinds, left_out)
            searches = _Sizes(costs, groups, problem, upper, pool, stopped)
            value = searches.least()
            if value is not None:
                found = _better(found, value, left_out)
                break
            tried.append((left_out, searches))
        steps = _RAISING_STEPS
        for left_out, searches in reversed(tried):
            value, made = searches.raised(found.value, steps)
            steps -= made
            found = _better(found, value, left_out)
    return found


def none_below(problem: GraphProblem, ticks: int) -> bool:
    """Tell whether few steps prove that no plan takes less than so many ticks."""
    costs = LeastCosts(problem)
    work = costs.work(costs.every)
    if -(-sum(work) // problem.devices) >= ticks:
        return True
    if _too_large(problem, ticks):
        return False
    for left_out in dict.fromkeys([frozenset(), *cheap_layers(problem.model, costs.kinds, work, _QUICKLY_LEFT_OUT)]):
        groups = equal_branches(problem.model, costs.kinds, left_out)
        found = [
            ChainSearch(costs, groups, options, problem.devices, ticks, problem.memory_bytes).least(
                ticks - 1, problem.memory_bytes, _QUICK_STEPS
            )[0]
            for options in costs.options
        ]
        if UNKNOWN not in found:
            return all(one == NONE for one in found)
    return False


def _better(found: PipelineBound, ticks: int, left_out: frozenset[int]) -> PipelineBound:
    return PipelineBound(ticks, "chains", tuple(sorted(left_out))) if ticks > found.value else found


def _too_large(problem: GraphProblem, upper: int) -> bool:
    """Tell whether sums of costs up to these may not fit into 64 bits."""
    terms = len(problem.model.layers) + problem.devices + 3
    return terms * max(upper, problem.memory_bytes) >= LARGEST


class _Sizes:
    """Chains by size of micro-batches, where all stages have the same.

    Notes
    -----
    Those of the least work first, and later ones only up to what is known to be reached. What is asked of searches that
    run at once is set before, so that nothing depends on which thread is ahead.
    """

    def __init__(
        self,
        costs: LeastCosts,
        groups: Sequence[Sequence[Sequence[int]]],
        problem: GraphProblem,
        upper: int,
        pool: Threads,
        stopped: Callable[[], bool],
    ) -> None:
        searches = [
            ChainSearch(costs, groups, options, problem.devices, upper, problem.memory_bytes)
            for options in costs.options
        ]
        self._searches = sorted(searches, key=lambda search: search.least_ticks)
        self._memory_bytes, self._upper, self._pool, self._stopped = problem.memory_bytes, upper, pool, stopped

    def least(self) -> int | None:
        """Return the least ticks of a chain, at most the upper bound; None if that takes too many steps."""
        high = self._upper
        first, *others = self._searches
        waves = [others[s : s + _TOGETHER] for s in range(0, len(others), _TOGETHER)]
        for wave in [[first], *waves]:
            if self._stopped():
                return None
            for ticks, _ in self._ask(wave, high - 1):
                if ticks == UNKNOWN:
                    return None
                high = high if ticks == NONE else min(high, ticks)
        return high

    def raised(self, low: int, most_steps: int) -> tuple[int, int]:
        """Return *low*, or more ticks for one less than which there is no chain either; and the steps made.

        Notes
        -----
        A size that does not allow for more is the first to be asked about next time.
        """
        stride, made = 1 + low // _PRECISION, 0
        while low < self._upper and made < most_steps and not self._stopped():
            high = min(self._upper, low + stride)
            for s, search in enumerate(self._searches):
                ((ticks, steps),) = self._ask([search], high - 1)
                made += steps
                if ticks != NONE:
                    self._searches.insert(0, self._searches.pop(s))
                    return low, made
            low, stride = high, 2 * stride
        return low, made

    def _ask(self, searches: Sequence[ChainSearch], most_ticks: int) -> list[tuple[int, int]]:
        ask = partial(_least, most_ticks=most_ticks, memory_bytes=self._memory_bytes)
        return self._pool.map(ask, searches)


def _least(search: ChainSearch, most_ticks: int, memory_bytes: int) -> tuple[int, int]:
    return search.least(most_ticks, memory_bytes, _MOST_STEPS)
