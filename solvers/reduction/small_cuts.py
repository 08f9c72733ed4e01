"""Minimum cuts in networks of some hundred nodes, in plain Python."""

from __future__ import annotations

SOURCE, SINK = 0, 1

UNCUT = 2**62
"""Capacity of what must not be cut: more than all else together."""


class SmallNetwork:
    """A network with capacities; nodes are numbers."""

    def __init__(self) -> None:
        self._arcs: list[list[int]] = [[], []]
        self._head: list[int] = []
        self._residual: list[int] = []

    def add_node(self) -> int:
        """Add a node beside source and sink and return its number."""
        self._arcs.append([])
        return len(self._arcs) - 1

    def add_arc(self, tail: int, head: int, capacity: int) -> None:
        """Add an arc."""
        self._arcs[tail].append(len(self._head))
        self._head.append(head)
        self._residual.append(capacity)
        self._arcs[head].append(len(self._head))
        self._head.append(tail)
        self._residual.append(0)

    def add_hyperedge(self, ends: list[int], capacity: int) -> None:
        """Add what is cut once if the source's side has some of its ends, but not all (Lawler 1973)."""
        touched, left = self.add_node(), self.add_node()
        self.add_arc(touched, left, capacity)
        for end in ends:
            self.add_arc(end, touched, UNCUT)
            self.add_arc(left, end, UNCUT)

    def minimum_cut(self) -> int:
        """Return the least capacity of arcs that separate the sink from the source; once.

        Notes
        -----
        Shortest augmenting paths (Edmonds and Karp 1972), O(nodes·arcs²).
        """
        total = 0
        while (path := self._path()) is not None:
            flow = min(self._residual[arc] for arc in path)
            for arc in path:
                self._residual[arc] -= flow
                self._residual[arc ^ 1] += flow
            total += flow
        return total

    def _path(self) -> list[int] | None:
        """Return the arcs of a shortest path along which more can flow."""
        entered = [-1] * len(self._arcs)
        queue = [SOURCE]
        for node in queue:
            for arc in self._arcs[node]:
                head = self._head[arc]
                if head != SOURCE and entered[head] < 0 and self._residual[arc] > 0:
                    entered[head] = arc
                    queue.append(head)
                    if head == SINK:
                        return self._back(entered)
        return None

    def _back(self, entered: list[int]) -> list[int]:
        path = [entered[SINK]]
        while (tail := self._head[path[-1] ^ 1]) != SOURCE:
            path.append(entered[tail])
        return path
