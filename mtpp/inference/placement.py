"""Stages on the devices of a machine: plans for some devices as plans for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.inference.replicas.partition import ReplicatedPartition, replicating

if TYPE_CHECKING:
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import FrontierPoint, Plan


def stages_on_devices(partition: Partition, count: int, free: bool) -> tuple[list[int], tuple[int, ...]]:
    """Return the stage of each op where each of so many devices has one, and the device of each stage.

    In fixed order stages stand as the devices do. In *free* order those with ops come first, as in the pipeline, and
    devices without ops after them, in the order of the list.
    """
    own = partition.devices if isinstance(partition, PlacedPartition) else range(partition.k)
    devices = np.array(own, dtype=np.int32)
    device_of = devices[partition.assignment]
    if not free:
        return device_of.tolist(), tuple(range(count))
    used = np.bincount(partition.assignment, minlength=len(devices)) > 0
    busy: list[int] = devices[used].tolist()
    order = [*busy, *sorted(set(range(count)) - set(busy))]
    position = np.empty(count, dtype=np.int32)
    position[order] = np.arange(count, dtype=np.int32)
    return position[device_of].tolist(), tuple(order)


def replicas_on_devices(partition: ReplicatedPartition, count: int | None) -> tuple[tuple[int, ...], ...]:
    """Return the devices of each stage, and after them each device that is left of so many; None: of those there are.

    Stages are those of the partition.
    """
    busy = partition.replicas[: partition.stage_count]
    used = {device for devices in busy for device in devices}
    every = {device for devices in partition.replicas for device in devices} if count is None else range(count)
    return (*busy, *((device,) for device in sorted(every) if device not in used))


def on_whole_machine(plan: Plan, whole: Instance) -> Plan:
    """Return a plan for some devices of a machine as one with a stage for each; *whole* is of all, as listed.

    With replicas as one with a stage for each device that is left.
    """
    partition = plan.partition
    if isinstance(partition, ReplicatedPartition):
        every = replicating(whole)
        return replace(plan, instance=every, partition=partition.over(every, partition.assignment))
    if plan.devices is not None:
        partition = PlacedPartition(partition.assignment, partition.k, plan.devices)
    stages, devices = stages_on_devices(partition, whole.k, whole.machine.free)
    instance = whole.on(devices) if whole.machine.free else whole
    points = tuple(_point_on_whole_machine(point, whole) for point in plan.frontier)
    placed = Partition.from_stages(instance, stages)
    return replace(plan, instance=instance, partition=placed, devices=devices, frontier=points)


def _point_on_whole_machine(point: FrontierPoint, whole: Instance) -> FrontierPoint:
    """Return a point of a frontier for some devices as one with a stage for each."""
    partition = point.partition
    if point.devices is not None:
        partition = PlacedPartition(partition.assignment, partition.k, point.devices)
    stages, devices = stages_on_devices(partition, whole.k, whole.machine.free)
    return replace(point, partition=Partition.from_stages(whole, stages), devices=devices)
