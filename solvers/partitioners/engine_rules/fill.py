"""``fill``: devices filled one after the other."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.working_memory import peaks_in_order
from mtpp.names import FILL
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners.engine_rules.ranges import memory_limits, ranges_result


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return ranges of the file's order: each device takes ops while its memory holds them, the last takes the rest.

    A device without a limit takes all that are left. O(k · log n · (n + pins·log pins)).

    Raises
    ------
    InputError
        If no device has a limit on its memory.
    """
    ends: list[int] = []
    n = instance.op_count
    for i, limit in enumerate(memory_limits(instance, FILL)[:-1]):
        begin = ends[-1] if ends else 0
        if limit is None:
            ends.append(n)
        else:  # a range never needs less memory than a shorter one
            too_long = range(begin + 1, n + 1)
            ends.append(begin + bisect_left(too_long, limit + 1, key=lambda end: _held(instance, begin, end, i)))
    return ranges_result(instance, [*ends, n], FILL, limits)


def _held(instance: Instance, begin: int, end: int, device: int) -> int:
    """Return the bytes that the ops at positions *begin* … *end* − 1 of the file's order need on a device."""
    outside = np.ones(instance.op_count, dtype=np.int32)
    outside[instance.order[begin:end]] = 0
    held = int(instance.cost.held_bytes(outside, 2)[0])
    if instance.device.peak == "order":
        return held + int(peaks_in_order(instance, outside, 2)[0])
    return held + instance.machine.devices[device].activation_reserve_bytes
