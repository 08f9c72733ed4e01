"""Optimal cuts of one topological order where tensors pass from neighbour to neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.solvers.orders.device_labels import LEADING, WHOLE, devices_of
from mtpp.solvers.orders.device_slicing import LABELS, DeviceCut, DeviceSlicer
from mtpp.solvers.orders.kernels.neighbour_slicing import neighbour_prefixes
from mtpp.solvers.orders.neighbour_labels import NeighbourFronts, OrderBoundaries


@dataclass(frozen=True, eq=False)
class NeighbourSlicer(DeviceSlicer):
    """Cuts topological orders of one instance with transport by neighbours; safe to use from several threads.

    A cut is the best where no prefix has more than 64 labels.
    """

    def below(self, order: Int32Array, cutoff: int) -> DeviceCut | None:
        """Cut one topological order with every stage below *cutoff* ticks; None if that cannot be."""
        cutoff = min(cutoff, self.instance.most_ticks + 1)  # beyond that are the costs of what no memory holds
        if cutoff <= self._lower:
            return None
        shape = self.instance.op_count + 1, LABELS
        fronts = NeighbourFronts(
            np.zeros(shape[0], dtype=np.int32),
            np.empty(shape, dtype=np.int64),
            np.empty(shape, dtype=np.int32),
            np.empty(shape, dtype=np.int32),
            np.empty(shape, dtype=np.int32),
            np.empty(shape, dtype=np.int64),
            np.empty(shape, dtype=np.int32),
        )
        order = order.copy()  # the graph's own order is read-only, which would compile every kernel again
        rules, boundaries = self._rules(cutoff - 1), order_boundaries(self.instance, order)
        if neighbour_prefixes(order, cutoff, self._slicing, rules, self._rows, boundaries, fronts) != WHOLE:
            return None
        return self._placed(order, fronts)

    def _placed(self, order: Int32Array, fronts: NeighbourFronts) -> DeviceCut:
        """Return the cut that the first label of the whole order leads back to."""
        end, at = self.instance.op_count, 0
        stages: list[tuple[int, int, int]] = []
        while end > 0:
            device = int(fronts.class_of[end, at] if self.free else fronts.label[end, at] & LEADING)
            stages.append((int(fronts.begin[end, at]), end, device))
            end, at = int(fronts.begin[end, at]), int(fronts.parent[end, at])
        stages.reverse()
        stage = np.empty(len(order), dtype=np.int32)
        for i, (begin, end, device) in enumerate(stages):
            stage[order[begin:end]] = i if self.free else device - 1
        k = self.instance.k
        devices = devices_of(self.instance, [c for _, _, c in stages]) if self.free else tuple(range(k))
        partition = Partition.from_stages(self.instance, stage)
        return DeviceCut(partition, devices, bottleneck(self.instance.on(devices), partition))


def order_boundaries(instance: Instance, order: Int32Array) -> OrderBoundaries:
    """Return what tensors cost at each place of an order; O(links · (n + m) + pins)."""
    boundary, n = instance.cost.boundary, instance.op_count
    assert boundary is not None
    change = np.zeros((len(boundary.ticks), n + 2), dtype=np.int64)
    if instance.tensor_count:
        position = np.empty(n, dtype=np.int64)
        position[order] = np.arange(n)
        pins, begins = position[instance.pins], instance.pin_offsets[:-1]
        first, last = np.minimum.reduceat(pins, begins), np.maximum.reduceat(pins, begins)
        for row, ticks in zip(change, boundary.ticks, strict=True):
            np.add.at(row, first + 1, ticks)
            np.subtract.at(row, last + 1, ticks)
    return OrderBoundaries(np.cumsum(change, axis=1)[:, :-1].copy(), boundary.row_of.copy())


def slicer_of(instance: Instance, most: int | None = None, *, free: bool = False) -> DeviceSlicer:
    """Return a slicer of an instance on devices that differ, by its transport; O(classes · n + pins)."""
    if instance.cost.boundary is None:
        return DeviceSlicer.of(instance, most, free=free)
    return NeighbourSlicer.of(instance, most, free=free)
