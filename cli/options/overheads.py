"""Time that commands lose before a search and after it: their limits hold until the result is written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mtpp.api.cells.overheads import Overheads
from mtpp.host.deadline import process_age_s

if TYPE_CHECKING:
    from mtpp.api.cells.overheads import CostGraph

_WRITING_SHARE = 0.4
"""Of the seconds that a graph of many ops was read in, for stage costs, the plan's JSON and its table."""

_MANY_OPS = 20_000

_SHOWING_S = 0.15
"""Seconds of the processor for a table."""

_SLOWEST = 6.0

_FIRST_RESULT_S = 1e-5
"""Seconds of the processor per op, for a first partition, a simple bound and writing both."""

_PINS_PER_OP = 20
"""Readers of tensors that take as long as an op."""


class ProcessOverheads(Overheads):
    """Limits of the command line hold from the start of the process until its result is written."""

    def spent_s(self) -> float:
        """Return the age of this process."""
        return process_age_s()

    def writing_s(self, read_s: float, ops: int) -> float:
        """Return the seconds to write a result about so many ops, whose graph was read in *read_s*."""
        return _SHOWING_S * _slowness() + _WRITING_SHARE * read_s * min(1.0, ops / _MANY_OPS)

    def first_result_s(self, graph: CostGraph, start_s: float = 0) -> float:
        """Return the seconds from a graph at hand to a first result about it, written."""
        size = graph.op_count + graph.consumers.size / _PINS_PER_OP
        return _slowness() * (_FIRST_RESULT_S * size + start_s * min(1.0, size / _MANY_OPS))


def searching_s(time_limit_s: float | None, ops: int) -> float | None:
    """Return the end of a search, in seconds from process start, that leaves time to write what it has found.

    Writing takes a part of what reading took, which tells as well how fast this machine is just now.
    """
    if time_limit_s is None:
        return None
    return max(time_limit_s - ProcessOverheads().writing_s(process_age_s(), ops), 0.1 * time_limit_s)


def _slowness() -> float:
    """Return how much more slowly than alone this process gets on, as others compute on this machine as well."""
    return min(_SLOWEST, process_age_s() / max(1e-3, time.process_time()))
