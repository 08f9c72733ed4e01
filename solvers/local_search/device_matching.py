"""Devices for given stages: the best that there are, in the machine's order or in any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER


class ClassCosts:
    """Costs of stages on each class of devices; O(classes · (n + pins)) for each partition."""

    def __init__(self, instance: Instance) -> None:
        self._on_class = [instance.of_class(c) for c in range(len(instance.machine.classes))]

    def of(self, stage: Int32Array, count: int) -> Int64Array:
        """Return the ticks of *count* stages, :data:`NEVER` above a memory limit; int64, shape (classes, count)."""
        rows = []
        for instance in self._on_class:
            costs = stage_costs(instance, Partition.from_stages(instance, stage))
            limit = instance.device.memory_bytes
            fits = True if limit is None else costs.held_bytes <= limit
            rows.append(np.where(fits, costs.cost, NEVER)[:count])
        return np.array(rows)


def match_devices(costs: Int64Array, class_of: Sequence[int], *, free: bool) -> tuple[int, list[int]] | None:
    """Give each stage a device of its own, such that the most expensive stage costs least.

    Parameters
    ----------
    costs
        Ticks by class of devices and stage, int64, shape (classes, stages).
    class_of
        Class of each device.
    free
        Whether devices may stand in any order; else each stage stands after the one before it.

    Returns
    -------
    The bottleneck and the device of each stage, or None if there are none within the memory limits.

    Notes
    -----
    Bisection over the costs; each step a greedy pass in fixed order, a bipartite matching (augmenting paths) in free.
    """
    values = np.unique(costs[costs < NEVER])
    low, high = 0, len(values)
    best: tuple[int, list[int]] | None = None
    while low < high:
        middle = (low + high) // 2
        allowed = (costs <= values[middle])[list(class_of)].T
        found = _matched(allowed) if free else _leading(allowed)
        if found is None:
            low = middle + 1
        else:
            high = middle
            best = int(values[middle]), found
    return best


def _leading(allowed: np.ndarray) -> list[int] | None:
    """Return for each stage in turn the first allowed device after the last one; None if they do not suffice."""
    devices: list[int] = []
    for row in allowed:
        after = devices[-1] + 1 if devices else 0
        later = np.flatnonzero(row[after:])
        if not len(later):
            return None
        devices.append(after + int(later[0]))
    return devices


def _matched(allowed: np.ndarray) -> list[int] | None:
    """Return a different allowed device for each stage; None if there are none."""
    stage_of: dict[int, int] = {}

    def seat(stage: int, seen: set[int]) -> bool:
        for device in np.flatnonzero(allowed[stage]).tolist():
            if device not in seen:
                seen.add(device)
                if device not in stage_of or seat(stage_of[device], seen):
                    stage_of[device] = stage
                    return True
        return False

    if not all(seat(stage, set()) for stage in range(len(allowed))):
        return None
    return [device for _, device in sorted((stage, device) for device, stage in stage_of.items())]
