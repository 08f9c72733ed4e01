"""Devices for given stages: the best that there are, in the machine's order or in any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER

_MOST_RECURSIVE = 256
"""Stages for which augmenting paths are followed by recursion."""


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


def best_devices(instance: Instance, partition: Partition) -> list[int] | None:
    """Return the device of each stage where devices may stand anywhere, for the least bottleneck of these stages.

    Parameters
    ----------
    instance
        On all devices of a machine in free order, with direct transport.
    partition
        Stages in order, as many as there are devices; empty ones get the devices that are left.

    Returns
    -------
    The devices, or None where the order of the list is as good, or no devices have the memory for these stages.
    """
    used, dense = np.unique(partition.assignment, return_inverse=True)
    class_of = instance.machine.class_of
    costs = ClassCosts(instance).of(dense.astype(np.int32), len(used))
    matched = match_devices(costs, class_of, free=True)
    listed = [int(costs[class_of[stage], i]) for i, stage in enumerate(used.tolist())]
    if matched is None or max(listed) <= matched[0]:
        return None
    device_of = dict(zip(used.tolist(), matched[1], strict=True))
    left = iter(sorted(set(range(instance.k)) - set(matched[1])))
    return [device_of[stage] if stage in device_of else next(left) for stage in range(instance.k)]


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
    Bisection over the costs; each step a greedy pass in fixed order; in free a bipartite
    matching (augmenting paths), or a maximum flow from stages to classes of devices.
    """
    values = np.unique(costs[costs < NEVER])
    low, high = 0, len(values)
    best: tuple[int, list[int]] | None = None
    while low < high:
        middle = (low + high) // 2
        cheap = costs <= values[middle]
        if free and costs.shape[1] > _MOST_RECURSIVE:
            found = _transported(cheap, class_of)
        else:
            allowed = cheap[list(class_of)].T
            found = _matched(allowed) if free else _leading(allowed)
        if found is None:
            low = middle + 1
        else:
            high = middle
            best = int(values[middle]), found
    return best


def _transported(cheap: np.ndarray, class_of: Sequence[int]) -> list[int] | None:
    """Do as :func:`_matched` does for any number of stages: a maximum flow from stages to classes of devices.

    Parameters
    ----------
    cheap
        Whether each class of devices may take each stage.
    """
    classes, stages = cheap.shape
    source, sink = stages + classes, stages + classes + 1
    of, to = np.nonzero(cheap)
    tails = np.concatenate((np.full(stages, source), to, stages + np.arange(classes)))
    heads = np.concatenate((np.arange(stages), stages + of, np.full(classes, sink)))
    counts = np.bincount(np.asarray(class_of), minlength=classes)
    capacities = np.concatenate((np.ones(stages + len(to), dtype=np.int32), counts)).astype(np.int32)
    network = csr_array((capacities, (tails, heads)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(network, source, sink)
    if flow.flow_value < stages:
        return None
    free = [iter(np.flatnonzero(np.asarray(class_of) == c).tolist()) for c in range(classes)]
    routed = flow.flow.tocoo()
    chosen = {
        int(i): int(j) - stages
        for i, j, f in zip(routed.row, routed.col, routed.data, strict=True)
        if f > 0 and i < stages
    }
    return [next(free[chosen[stage]]) for stage in range(stages)]


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
