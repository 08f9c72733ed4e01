"""Consecutive ranges of ops in the file's order, device by device in the machine's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.errors import Infeasible, InputError
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.limits import SearchLimits, SearchResult


def ranges_result(instance: Instance, ends: Sequence[int], rule: str, limits: SearchLimits) -> SearchResult:
    """Return the partition whose i-th stage ends before position ``ends[i]`` of the instance's order.

    Raises
    ------
    Infeasible
        If a stage exceeds the memory of its device: the rule has no other answer.
    """
    stage = np.empty(instance.op_count, dtype=np.int32)
    stage[instance.order] = np.searchsorted(ends, np.arange(instance.op_count), side="right")
    partition = Partition.from_stages(instance, stage)
    costs = stage_costs(instance, partition)
    if not keeps_stage_memory(instance, costs):
        raise Infeasible(f"none found: a stage of the rule {rule!r} exceeds the memory of its device", source=rule)
    limits.observer.evaluated(1)
    result = SearchResult(partition, costs.bottleneck, rule, 1, StopReason.FINISHED)
    limits.tell(result)
    return result


def memory_limits(instance: Instance, rule: str) -> list[int | None]:
    """Return the memory limit of each device that may be used, in bytes; None: no limit.

    Raises
    ------
    InputError
        If no device has one.
    """
    sizes = [device.memory_bytes for device in instance.machine.devices[: instance.most_used]]
    if all(size is None for size in sizes):
        raise InputError(
            f"{rule!r} divides ops by the memory of devices, and none has a limit",
            parameter="algorithm",
            remedy="give ‹stage_memory›, or take even",
        )
    return sizes
