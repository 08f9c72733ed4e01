"""Devices by groups of equal ones, as cuts of a decomposition count them, and what ops and tensors cost on each group.

Where devices may stand in any order a group is a class. In fixed order it is a run of equal devices that stand one
after the other: stages of a run may take its devices in any order that the data flow allows, and no stage feeds one of
an earlier run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import LARGEST_MEMORY, Instance
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.orders.device_labels import LABEL_BITS, devices_of
from mtpp.solvers.series_parallel.kernels.pareto_fronts import (
    ALL,
    LEAST,
    MASK,
    MOST_GROUPS,
    PARAMS,
    SHIFT,
    TICKS,
    UNIT,
    WHOLE,
    Devices,
    Terms,
)
from mtpp.solvers.stage_cost.cost_arrays import memory_arrays


@dataclass(frozen=True, eq=False)
class DeviceGroups:
    """The groups of an instance's devices. Make them with :meth:`of`.

    Attributes
    ----------
    classes
        Class of the devices of each group.
    members
        Devices of each group, by their numbers.
    """

    instance: Instance
    classes: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, instance: Instance) -> DeviceGroups:
        """Group the devices of an instance whose transport is direct."""
        class_of = instance.cost.class_of(instance.k).tolist()
        devices = sorted(range(instance.k), key=class_of.__getitem__) if instance.machine.free else range(instance.k)
        runs = [(c, tuple(run)) for c, run in groupby(devices, key=class_of.__getitem__)]
        return cls(instance, tuple(c for c, _ in runs), tuple(run for _, run in runs))

    @property
    def countable(self) -> bool:
        """Whether one word has room for the counts of all groups."""
        return len(self.classes) <= MOST_GROUPS and sum(width for _, width in self._fields) <= LABEL_BITS

    @property
    def free(self) -> bool:
        """Whether devices that differ may stand in any order."""
        return self.instance.machine.free and not self.instance.equal_devices

    @cached_property
    def costs(self) -> Int64Array:
        """Costs of each op by the columns of :mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`.

        Parameters are all that an op reads, so that no piece holds more than is counted.

        Raises
        ------
        InputError
            If weights that many ops read are so large that their sum over ops leaves the integers of kernels.
        """
        instance = self.instance
        params = instance.param_bytes
        if instance.memory_matters:
            params = instance.cost.read_bytes
            if sum(params.tolist()) >= LARGEST_MEMORY:
                raise InputError(
                    "series-parallel pieces count a weight at each op that reads it, and these reach 2^61 bytes "
                    "together",
                    parameter="algorithm",
                    remedy="use another ‹algorithm›",
                )
        work = instance.cost.work[list(self.classes)]
        columns = np.empty((instance.op_count, TICKS + len(work)), dtype=np.int64)
        columns[:, PARAMS], columns[:, LEAST], columns[:, TICKS:] = params, work.min(axis=0), work.T
        return columns

    @cached_property
    def transfer(self) -> Int64Array:
        """Ticks by group and tensor."""
        cost = self.instance.cost
        return cost.transfer[cost.link_of[list(self.classes)]]

    def terms(self, cutoff: int, most_points: int) -> Terms:
        """Return the terms of a cut with every stage below *cutoff*."""
        total = int(self.costs[:, LEAST].sum())
        return Terms(cutoff, self._devices, total, memory_arrays(self.instance), most_points)

    @cached_property
    def _fields(self) -> list[tuple[int, int]]:
        """Devices that the field of each group counts, and its width with the guard; last that of all, if it is one."""
        most = self.instance.most_used
        counts = [min(len(devices), most) for devices in self.members]
        if sum(counts) > most:
            counts.append(most)
        return [(count, count.bit_length() + 1) for count in counts]

    @cached_property
    def _devices(self) -> Devices:
        groups = []
        allowed, guards, shift = 0, 0, 0
        for count, width in self._fields:
            groups.append((1 << shift, shift, (1 << (width - 1)) - 1))
            allowed |= count << shift
            guards |= 1 << (shift + width - 1)
            shift += width
        extra = groups[-1][0] if len(groups) > len(self.classes) else 0
        kinds = [*self.classes, ALL][: len(groups)]
        rates = [*self._rates.tolist(), WHOLE][: len(groups)]
        rows = [
            (unit + extra, kind, place, mask, rate)
            for (unit, place, mask), kind, rate in zip(groups, kinds, rates, strict=True)
        ]
        return Devices(
            np.array(rows, dtype=np.int64),
            allowed | guards,
            guards,
            ordered=not self.instance.machine.free,
            equal=len(groups) == 1,
        )

    @cached_property
    def _rates(self) -> Int64Array:
        """What part of the least work a device of each group does in a tick at most, in parts of :data:`WHOLE`."""
        least, ticks = self.costs[:, LEAST], self.costs[:, TICKS:]
        some = least > 0
        shares = (least[some, np.newaxis] / ticks[some]).max(axis=0, initial=0.0)
        rates: Int64Array = np.minimum(np.ceil(shares * WHOLE + 1), WHOLE).astype(np.int64)
        return rates

    def least_counts(self, points: Int64Array) -> Int64Array:
        """Return the fewest stages in each field of any of the counts in *points*."""
        shifts, masks = self._devices.groups[:, SHIFT], self._devices.groups[:, MASK]
        counts: Int64Array = (points[:, np.newaxis] >> shifts & masks).min(axis=0)
        return counts

    def packed(self, counts: Int64Array) -> int:
        """Return counts by field as one word, those of too many devices as one too many."""
        most = [count for count, _ in self._fields]
        shifts = self._devices.groups[:, SHIFT].tolist()
        return sum(min(c, m + 1) << shift for c, m, shift in zip(counts.tolist(), most, shifts, strict=True))

    def group_of(self, unit: int) -> int:
        """Return the group of the one stage that is counted by *unit*."""
        units: list[int] = self._devices.groups[:, UNIT].tolist()
        return units.index(unit)

    def placed(self, labels: Sequence[int], group_of: Sequence[int]) -> Partition:
        """Return the partition whose stage of each op has a label, on a device of the group of the label."""
        instance = self.instance
        used, dense = np.unique(np.asarray(labels), return_inverse=True)
        plain = Partition.from_labels(instance, dense.tolist())
        if instance.equal_devices:
            return plain
        group = np.zeros(len(used), dtype=np.int64)
        group[plain.assignment] = np.array(group_of)[used][dense]
        if self.free:
            devices = devices_of(instance, [self.classes[g] for g in group.tolist()])
            return PlacedPartition.on(instance, plain.assignment, devices)
        left = [iter(devices) for devices in self.members]
        stages = np.array([next(left[g]) for g in group.tolist()], dtype=np.int32)
        return Partition.from_stages(instance, stages[plain.assignment])
