"""Lower bound of the iteration over all stage graphs: the least time in which some chain of downsets could run.

See :mod:`~mtpp.solvers.planners.graphpipe.chain_search` for the chains, and why any plan makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mtpp.solvers.planners.graphpipe.branches import cheap_layers, equal_branches
from mtpp.solvers.planners.graphpipe.chain_search import LARGEST, ChainSearch
from mtpp.solvers.planners.graphpipe.kernels.downset_chains import NO
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.threads import Threads
from mtpp.training.graph_problem import GraphProblem

_MOST_STEPS = 400_000
"""Of one search, and"""
_ALL_STEPS = 4_000_000
"""of all searches together, about."""

_PRECISION = 2_000
"""Parts of the bound to which it is found."""

_FIRST_STRIDE = 32
"""Parts of the bound that it is raised by at first."""

_LEFT_OUT = (0.1, 0.05, 0.02, 0.005, 0.0)
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
    Exponential in the width of the model at worst; equal branches are interchangeable. Steps are limited: first with
    cheap layers left out, which cannot raise the bound, then with ever fewer.
    """
    costs = LeastCosts(problem)
    work = costs.work([one for options in costs.options for one in options])
    low = min(upper, -(-sum(work) // problem.devices))
    if low >= upper or _too_large(problem, upper):
        return PipelineBound(low, "work")
    found = PipelineBound(low, "work")
    with Threads(threads) as pool:
        bisection = _Bisection(len(costs.options), low, upper, pool, stopped)
        for left_out in dict.fromkeys(cheap_layers(problem.model, costs.kinds, work, _LEFT_OUT)):
            groups = equal_branches(problem.model, costs.kinds, left_out)
            value = bisection.value_of(
                [
                    ChainSearch(costs, groups, options, problem.devices, upper, problem.memory_bytes)
                    for options in costs.options
                ],
                problem.memory_bytes,
            )
            if value > found.value:
                found = PipelineBound(value, "chains", tuple(sorted(left_out)))
    return found


def _too_large(problem: GraphProblem, upper: int) -> bool:
    """Tell whether sums of costs up to these may not fit into 64 bits."""
    terms = len(problem.model.layers) + problem.devices + 3
    return terms * max(upper, problem.memory_bytes) >= LARGEST


def _ask(search: ChainSearch, ticks: int, memory_bytes: int) -> tuple[int, int]:
    return search.exists(ticks, memory_bytes, _MOST_STEPS)


class _Bisection:
    """Bisection of the iteration, size by size of micro-batches.

    Parameters
    ----------
    sizes
        Number of searches, whose bounds are at least *low* each.

    Notes
    -----
    One size at a time, that of the least work first, up to what a size before is known to reach at most: one search
    settles most of the others.
    """

    def __init__(self, sizes: int, low: int, upper: int, pool: Threads, stopped: Callable[[], bool]) -> None:
        self._lows = [low] * sizes
        self._upper, self._pool, self._stopped = upper, pool, stopped
        self._steps_left = _ALL_STEPS

    def value_of(self, searches: Sequence[ChainSearch], memory_bytes: int) -> int:
        """Return ticks for one less than which no search finds a chain, where each leaves out no more than before."""
        for s, search in enumerate(searches):
            self._lows[s] = min(self._upper, max(self._lows[s], search.least_ticks))
        high = self._upper
        pending = sorted(range(len(searches)), key=self._lows.__getitem__)
        while pending and self._goes_on():
            first, *others = pending
            self._raise(searches[first], first, high, memory_bytes)
            high = self._lows[first]
            others = [s for s in others if self._lows[s] < high]
            ask = partial(_ask, ticks=high - 1, memory_bytes=memory_bytes)
            done = self._pool.map(ask, [searches[s] for s in others])
            self._steps_left -= sum(steps for _, steps in done)
            pending = []
            for s, (answer, _) in zip(others, done, strict=True):
                if answer == NO:
                    self._lows[s] = high
                else:
                    pending.append(s)
        return min(self._lows)

    def _raise(self, search: ChainSearch, s: int, high: int, memory_bytes: int) -> None:
        low = self._lows[s]
        stride = 1 + low // _FIRST_STRIDE  # less ticks take fewer steps
        while high - low > 1 + high // _PRECISION and self._goes_on():
            middle = min(low + stride, (low + high) // 2)
            answer, steps = search.exists(middle - 1, memory_bytes, min(_MOST_STEPS, self._steps_left))
            self._steps_left -= steps
            low, high = (middle, high) if answer == NO else (low, middle)
            stride *= 2
        self._lows[s] = low

    def _goes_on(self) -> bool:
        return self._steps_left > 0 and not self._stopped()
