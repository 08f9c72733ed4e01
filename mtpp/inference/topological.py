"""Topological order of small integers, first come first served, and the cycle that rules one out."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush


def first_come_order(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Order the nodes 0 … count − 1 so that every edge goes forward; of all ready nodes the least comes next.

    Parameters
    ----------
    edges
        Repeated edges do no harm.

    Returns
    -------
    The order; if there is a cycle, it lacks the nodes on cycles and behind them.

    Notes
    -----
    Kahn (1962) with a heap: O(n log n + m).
    """
    successors: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for u, v in edges:
        successors[u].append(v)
        waiting[v] += 1
    ready = [v for v in range(count) if waiting[v] == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        u = heappop(ready)
        order.append(u)
        for v in successors[u]:
            waiting[v] -= 1
            if waiting[v] == 0:
                heappush(ready, v)
    return order


def find_cycle(count: int, edges: Iterable[tuple[int, int]], order: list[int]) -> list[int]:
    """Return a cycle as the nodes along it, the first one again at the end.

    Parameters
    ----------
    order
        What :func:`first_come_order` returned for the same edges; shorter than *count*.
    """
    stuck = set(range(count)).difference(order)
    predecessor = {v: u for u, v in edges if u in stuck and v in stuck}
    walk: dict[int, int] = {}
    v = min(predecessor)
    while v not in walk:
        walk[v] = len(walk)
        v = predecessor[v]
    return [*list(walk)[walk[v] :], v][::-1]


def cycle_text(names: list[str]) -> str:
    """Write a cycle for a message, leaving out the middle of a long one."""
    if len(names) > 6:
        names = [*names[:3], f"… {len(names) - 5} more …", *names[-2:]]
    return " -> ".join(names)
