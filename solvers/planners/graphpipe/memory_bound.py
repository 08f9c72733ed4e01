"""Lower bound of the memory over all stage graphs: the least that some chain of downsets needs, however long it takes.

See :mod:`~mtpp.solvers.planners.graphpipe.chain_search` for the chains; time does not limit them here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mtpp.solvers.planners.graphpipe.branches import equal_branches
from mtpp.solvers.planners.graphpipe.chain_search import LARGEST, ChainSearch
from mtpp.solvers.planners.graphpipe.kernels.downset_chains import NONE
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.training.graph_problem import GraphProblem

_MOST_STEPS = 150_000
"""Of one search."""

_ALL_STEPS = 1_500_000
"""Of all searches, about."""

_PRECISION = 2_000
"""Parts of the bound to which it is found."""


class MemoryBound(NamedTuple):
    """Lower bound of the bytes that the fullest device of any plan needs.

    Attributes
    ----------
    value
        Bytes: no plan needs less. More than the problem's ``most_bytes``: there is none, whatever memory there is.
    method
        ``layer``: some layer takes them in any stage; ``chains``: there is no chain of downsets, of whatever time, that
        needs *value* − 1 bytes.
    """

    value: int
    method: str


def memory_bound(problem: GraphProblem, stopped: Callable[[], bool] = lambda: False) -> MemoryBound:
    """Return bytes that the fullest device of no plan is below, whatever memory the problem has.

    Parameters
    ----------
    stopped
        Whether to end early, with a bound that is lower.

    Notes
    -----
    Bisection of the memory, one size of micro-batches after the other, each up to what another is known to do with. No
    layers are left out. Steps are limited; a search that takes too many counts as one that finds a chain.
    """
    costs = LeastCosts(problem)
    layer = costs.layer_bytes()
    whole = min(costs.whole_bytes(options) for options in costs.options)
    value = max(layer, min(whole, problem.most_bytes + 1))
    if value * (len(problem.model.layers) + problem.devices + 3) >= LARGEST:
        return MemoryBound(layer, "layer")
    groups = equal_branches(problem.model, costs.kinds)
    searches = [ChainSearch(costs, groups, options, problem.devices, None, value) for options in costs.options]
    steps_left = _ALL_STEPS
    for search in sorted(searches, key=lambda one: one.least_bytes):
        low, high = max(layer, search.least_bytes), value
        asked = high - 1  # first: whether this size does with less than those before
        while high - low > high // _PRECISION and steps_left > 0 and not stopped():
            ticks, steps = search.least(0, asked, min(_MOST_STEPS, steps_left))
            steps_left -= steps
            low, high = (asked + 1, high) if ticks == NONE else (low, asked)
            asked = (low + high) // 2
        value = min(value, low)
    return MemoryBound(value, "chains" if value > layer else "layer")
