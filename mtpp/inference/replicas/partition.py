"""Partitions whose stages stand on one or more devices each, all of which hold the stage whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition


@dataclass(frozen=True, eq=False)
class ReplicatedPartition(Partition):
    """A partition with the devices of each stage. Make one with :meth:`on`.

    Attributes
    ----------
    replicas
        Numbers of the devices, in the machine's list and ascending, of each of the k stages. Stages with ops come
        first; each device that is left stands alone after them.
    """

    replicas: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def on(
        cls, instance: Instance, stages: Sequence[int] | Int32Array, replicas: Sequence[Sequence[int]]
    ) -> ReplicatedPartition:
        """Take stages numbered in pipeline order, each with ops, and the devices of each of them.

        Raises
        ------
        InvalidPartition
            If a stage has no ops or no devices, a device is none of the machine's or has two stages, more devices are
            used than may be, or in fixed order they do not stand in the list's; and as
            :meth:`~mtpp.inference.partition.Partition.from_stages`.
        """
        plain = Partition.from_stages(instance, stages)
        if len(np.unique(plain.assignment)) != len(replicas) or int(plain.assignment.max()) >= len(replicas):
            raise InvalidPartition(f"devices are given for {len(replicas)} stages, and others have ops")
        sets = [tuple(sorted(one)) for one in replicas]
        used = [device for one in sets for device in one]
        if not all(sets) or len(set(used)) < len(used) or not set(used) <= set(range(instance.k)):
            raise InvalidPartition("stages stand on no device, or on ones that others stand on")
        if len(used) > instance.most_used:
            raise InvalidPartition(f"{len(used)} devices are used, at most {instance.most_used} may be")
        if not instance.machine.free and used != sorted(used):
            raise InvalidPartition("the order is fixed, and stages do not stand in the order of the devices")
        left = [(device,) for device in range(instance.k) if device not in set(used)]
        return cls(plain.assignment, len(sets) + len(left), (*sets, *left))

    @property
    def stage_count(self) -> int:
        """Number of stages with ops."""
        return int(self.assignment.max()) + 1

    def over(self, instance: Instance, stages: Int32Array) -> ReplicatedPartition:
        """Return the same stages, on the same devices, over the ops of another instance."""
        return ReplicatedPartition.on(instance, stages, self.replicas[: self.stage_count])


def with_single_devices(instance: Instance, partition: Partition) -> ReplicatedPartition:
    """Return a partition with a device for each stage as one whose stages may have several."""
    if isinstance(partition, ReplicatedPartition):
        return partition
    devices = partition.devices if isinstance(partition, PlacedPartition) else range(partition.k)
    used, dense = np.unique(partition.assignment, return_inverse=True)
    return ReplicatedPartition.on(instance, dense.astype(np.int32), [(devices[s],) for s in used.tolist()])


def replicating(instance: Instance) -> Instance:
    """Return the instance whose stages may have several devices each."""
    return replace(instance, replicas=True)
