"""Parts of a graph between two ops, each an edge or composed of others: what the decomposition makes its tree of."""

from __future__ import annotations

EDGE, SERIES, PARALLEL, CORE = range(4)
"""Kinds of parts: an edge of the graph, one part after the other, two side by side, an irreducible graph of parts."""


class Parts:
    """Parts in the order in which they were made, one list per field: millions of objects would take seconds.

    Attributes
    ----------
    kind
        Of each part.
    tail, head
        The ops that it lies between.
    first, second
        The two parts that a series or parallel part is made of, whatever for others.
    core_children
        The parts that each core is made of.
    """

    def __init__(self, tails: list[int], heads: list[int]) -> None:
        self.kind = [EDGE] * len(tails)
        self.tail, self.head = list(tails), list(heads)
        self.first, self.second = [0] * len(tails), [0] * len(tails)
        self.core_children: dict[int, list[int]] = {}

    def add(self, kind: int, tail: int, head: int, first: int = 0, second: int = 0) -> int:
        """Make a part and return its number."""
        self.kind.append(kind)
        self.tail.append(tail)
        self.head.append(head)
        self.first.append(first)
        self.second.append(second)
        return len(self.kind) - 1

    def columns(self) -> tuple[list[int], ...]:
        """Return kinds, tails, heads, first and second parts."""
        return self.kind, self.tail, self.head, self.first, self.second

    def add_core(self, tail: int, head: int, children: list[int]) -> int:
        """Make a core and return its number."""
        core = self.add(CORE, tail, head)
        self.core_children[core] = children
        return core
