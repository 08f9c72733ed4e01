"""The least that a choice of ops can cost, by a maximum flow in plain Python integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

Capacities = dict[Hashable, dict[Hashable, int]]
_SOURCE, _SINK = "source", "sink"


class Hyperedge(NamedTuple):
    """What costs *cost* if it has ends both among the chosen and elsewhere.

    Attributes
    ----------
    ends
        Those of its ends that may be chosen or not.
    always, never
        Whether it has an end that is chosen in any case, and one that is not in any case.
    """

    cost: int
    ends: Sequence[int]
    always: bool
    never: bool


def least_cost(weight: Mapping[int, int], edges: Iterable[Hyperedge], needs: Iterable[tuple[int, int]]) -> int:
    """Return the least cost of any choice of ops: the weight of those chosen, and the hyperedges that the choice cuts.

    Parameters
    ----------
    weight
        Of each op that may be chosen, at least 0.
    needs
        Pairs of ops: the first may be chosen only with the second.

    Notes
    -----
    A minimum cut (Picard 1976, Lawler 1973): chosen ops are on the source's side. Hyperedges that are cut by every
    choice are left out.
    """
    edges = list(edges)
    unlimited = sum(weight.values()) + sum(edge.cost for edge in edges) + 1
    capacity: Capacities = {_SOURCE: {}, _SINK: {}}

    def connect(tail: Hashable, head: Hashable, amount: int) -> None:
        capacity.setdefault(tail, {})[head] = capacity.setdefault(tail, {}).get(head, 0) + amount
        capacity.setdefault(head, {}).setdefault(tail, 0)

    for op, cost in weight.items():
        connect(op, _SINK, cost)
    for op, other in needs:
        connect(op, other, unlimited)
    for number, edge in enumerate(edges):
        if edge.always and edge.never:
            continue
        some_chosen: Hashable = _SOURCE if edge.always else ("some", number)
        some_left: Hashable = _SINK if edge.never else ("not all", number)
        connect(some_chosen, some_left, edge.cost)
        for op in edge.ends:
            if not edge.always:
                connect(op, some_chosen, unlimited)
            if not edge.never:
                connect(some_left, op, unlimited)
    return _maximum_flow(capacity)


def _maximum_flow(capacity: Capacities) -> int:
    """Return the maximum flow by shortest augmenting paths (Edmonds and Karp 1972); *capacity* is used up."""
    total = 0
    while True:
        came_from: dict[Hashable, Hashable] = {_SOURCE: _SOURCE}
        queue: deque[Hashable] = deque([_SOURCE])
        while queue and _SINK not in came_from:
            tail = queue.popleft()
            for head, left in capacity[tail].items():
                if left > 0 and head not in came_from:
                    came_from[head] = tail
                    queue.append(head)
        if _SINK not in came_from:
            return total
        steps: list[tuple[Hashable, Hashable]] = []
        node: Hashable = _SINK
        while node != _SOURCE:
            steps.append((came_from[node], node))
            node = came_from[node]
        amount = min(capacity[a][b] for a, b in steps)
        for tail, head in steps:
            capacity[tail][head] -= amount
            capacity[head][tail] += amount
        total += amount
