"""``memory``: ops by the share of each device in all memory."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.names import MEMORY
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners.engine_rules.ranges import memory_limits, ranges_result


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return ranges of the file's order that end at op round(n · M_1..i / M), M_i being the memory of device i.

    Raises
    ------
    InputError
        If a device has no limit on its memory.
    """
    sizes = [size for size in memory_limits(instance, MEMORY) if size is not None]
    if len(sizes) < instance.most_used:
        raise InputError("'memory' needs a limit on the memory of each device", parameter="algorithm")
    total = max(1, sum(sizes))
    ends = [round(Fraction(instance.op_count * size, total)) for size in accumulate(sizes)]
    return ranges_result(instance, [*ends[:-1], instance.op_count], MEMORY, limits)
