"""Seconds of a time limit that go to other things than the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph as CostGraph


class Overheads:
    """Estimates of the time lost before a search and after it; none here: a library returns what it has found.

    A program whose limits hold from its start until its result is written overrides what it knows better.
    """

    def spent_s(self) -> float:
        """Return the seconds of a limit on the first piece of work that are gone already."""
        return 0.0

    def writing_s(self, read_s: float, ops: int) -> float:
        """Return the seconds to write a result about so many ops, whose graph was read in *read_s*."""
        return 0.0

    def first_result_s(self, graph: CostGraph, start_s: float = 0) -> float:
        """Return the seconds from a graph at hand to a first result about it; *start_s* goes with large graphs."""
        return 0.0
