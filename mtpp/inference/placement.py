"""Stages on the devices of a machine: plans for some devices as plans for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mtpp.inference.partition import Partition

if TYPE_CHECKING:
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import Plan


def on_whole_machine(plan: Plan, whole: Instance) -> Plan:
    """Return a plan for some devices of a machine as one with a stage for each of them.

    In fixed order stages stand as the devices do. In free order those with ops come first, as in the pipeline, and
    devices without ops after them, in the order of the list.

    Parameters
    ----------
    whole
        Instance of all devices, in the order of the list.
    """
    count = whole.k
    devices = np.array(range(plan.partition.k) if plan.devices is None else plan.devices, dtype=np.int32)
    device_of = devices[plan.partition.assignment]
    if not whole.machine.free:
        return _placed(plan, whole, device_of, range(count))
    used = np.bincount(plan.partition.assignment, minlength=len(devices)) > 0
    busy = devices[used].tolist()
    order = [*busy, *(d for d in range(count) if d not in set(busy))]
    position = np.empty(count, dtype=np.int32)
    position[order] = np.arange(count, dtype=np.int32)
    return _placed(plan, whole.on(order), position[device_of], order)


def _placed(plan: Plan, instance: Instance, stage: Sequence[int] | np.ndarray, devices: Sequence[int]) -> Plan:
    partition = Partition.from_stages(instance, stage)
    return replace(plan, instance=instance, partition=partition, devices=tuple(devices))
