"""``even``: as many ops for each device, the rule of engines that count layers."""

from __future__ import annotations

from itertools import accumulate

from mtpp.inference.instance import Instance
from mtpp.names import EVEN
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners.engine_rules.ranges import ranges_result


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return ranges of ⌈n / k⌉ or ⌊n / k⌋ ops in the file's order, the longer ones first.

    Ops that must share a stage count as one. O(n + pins).
    """
    shorter, longer = divmod(instance.op_count, instance.most_used)
    ends = accumulate(shorter + (i < longer) for i in range(instance.most_used))
    return ranges_result(instance, list(ends), EVEN, limits)
