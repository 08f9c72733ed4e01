"""Partitions whose stages stand on devices in an order of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition


@dataclass(frozen=True, eq=False)
class PlacedPartition(Partition):
    """A partition with the device of each stage. Make one with :meth:`on`.

    Attributes
    ----------
    devices
        Number of the device, in the machine's list, of each of the k stages.
    """

    devices: tuple[int, ...] = ()

    @classmethod
    def on(cls, instance: Instance, stages: Sequence[int] | Int32Array, devices: Sequence[int]) -> PlacedPartition:
        """Take stages numbered in pipeline order, and a device for each of the k stages.

        Raises
        ------
        InvalidPartition
            As :meth:`~mtpp.inference.partition.Partition.from_stages`.
        """
        plain = Partition.from_stages(instance, stages)
        return cls(plain.assignment, plain.k, tuple(devices))

    def over(self, instance: Instance, stages: Int32Array) -> PlacedPartition:
        """Return the same stages, on the same devices, over the ops of another instance."""
        return PlacedPartition.on(instance, stages, self.devices)


def as_placed(instance: Instance, partition: Partition) -> Instance:
    """Return the instance with the stages of a partition on the devices that it names, if it names any."""
    return instance.on(partition.devices) if isinstance(partition, PlacedPartition) else instance
