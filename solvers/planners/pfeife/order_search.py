"""Search for an order of ops along which stages are cut: many are tried quickly, the best is planned for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.search import SplitSearch
from mtpp.solvers.planners.topological_orders import random_orders, topological_orders
from mtpp.solvers.threads import Threads
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.positions import LinePlace

_DRAWN = 20
"""Random orders that are tried, besides a dozen that walk along branches or across them."""

_MOST_OPS = 5_000
"""Of graphs for which the narrowest order is made, at a cost of ops by ops that are ready."""


def best_order(
    problem: SplitProblem, cell: tuple[int, int], threads: Threads, limits: Limits
) -> Sequence[LinePlace] | None:
    """Return the best of some topological orders, by a short search of splits; None if that is the line's own.

    Parameters
    ----------
    cell
        Loops and loop batch of the schedules that are tried, where none is given.
    """
    orders = list(dict.fromkeys(map(tuple, _orders(problem.line))))
    tried = threads.map(lambda order: _tried(problem, order, cell, limits), orders)
    best = min(range(len(orders)), key=lambda i: (tried[i], i))
    return orders[best] if best else None


def _orders(line: ModelLine) -> Iterator[Sequence[LinePlace]]:
    """Go through orders, the line's own first."""
    yield line.order
    if line.costs.ops <= _MOST_OPS:
        yield _narrow(line)
    yield from chain(topological_orders(line), random_orders(line, _DRAWN))


def _narrow(line: ModelLine) -> Sequence[LinePlace]:
    """Return an order that takes next the op after which least has to be handed over, and earlier ones among equals."""
    costs = line.costs
    made: list[list[int]] = [[] for _ in range(costs.ops)]
    read: list[list[int]] = [[] for _ in range(costs.ops)]
    left = [len(one.consumers) for one in costs.tensors]
    waiting = [0] * costs.ops
    for t, one in enumerate(costs.tensors):
        made[one.producer].append(t)
        for v in one.consumers:
            read[v].append(t)
            waiting[v] += 1
    ready = [v for v in line.order if not waiting[v]]
    order: list[LinePlace] = []
    while ready:
        v = min(
            ready,
            key=lambda op: (
                sum(costs.tensors[t].ticks for t in made[op] if left[t])
                - sum(costs.tensors[t].ticks for t in read[op] if left[t] == 1),
                op,
            ),
        )
        ready.remove(v)
        order.append(v)
        for t in read[v]:
            left[t] -= 1
        for t in made[v]:
            for w in costs.tensors[t].consumers:
                waiting[w] -= 1
                if not waiting[w]:
                    ready.append(w)
    return order


def _tried(problem: SplitProblem, order: Sequence[LinePlace], cell: tuple[int, int], limits: Limits) -> tuple[int, int]:
    """Return the rank of a short search of splits along an order."""
    if limits.ended():
        return 2**62, 2**62
    return SplitSearch(problem.reordered(order), limits).quick(*cell).rank
