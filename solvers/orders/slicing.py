"""Optimal cuts of one topological order, over the kernels in ``kernels/slicing.py``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.arrays import SlicingArrays, slicing_arrays
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.orders.device_slicing import DeviceCut
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE, best_segmentation, fewest_stages
from mtpp.solvers.orders.neighbour_slicing import slicer_of


class Segmentation(NamedTuple):
    """A partition into consecutive segments of an order, with its bottleneck in ticks."""

    partition: Partition
    bottleneck: int


def slice_order(
    instance: Instance, order: Int32Array, cutoff: int | None = None, *, arrays: SlicingArrays | None = None
) -> Segmentation | None:
    """Cut one topological order into at most k stages with the least bottleneck.

    Parameters
    ----------
    order
        Permutation of the ops, int32, shape (n,); must be topological.
    cutoff
        Only partitions strictly below this many ticks are of interest.
    arrays
        :func:`~mtpp.solvers.arrays.slicing_arrays` of the instance, if at hand.

    Returns
    -------
    The best segmentation of *order*, or None if none beats *cutoff* and keeps to the stage memory. On devices that
    differ see :meth:`~mtpp.solvers.orders.device_slicing.DeviceSlicer.best`; in free order the partition has its own,
    and is none worse than the best with devices as they are listed.

    Notes
    -----
    O(n·w·k + pins) time and O(n + m + w·k) memory, w being the longest run of ops whose work fits under the cutoff
    (n / k on average). Archer et al. (2024), Algorithm 1, with a window in place of the table of segment costs.
    Without a cutoff one is found first, by growing a guess from the simple bound until few enough stages do.
    """
    if not instance.equal_devices:
        free = instance.machine.free
        best = slicer_of(instance, free=free).best(order, cutoff)
        if free:  # labels may have been left out
            best = slicer_of(instance).best(order, best.bottleneck if best else cutoff) or best
        return best and Segmentation(placed(instance, best), best.bottleneck)
    arrays = arrays or slicing_arrays(instance)
    order = order.copy()  # the graph's own order is read-only, which would compile every kernel again
    if cutoff is None:
        cutoff = _reachable_cutoff(instance, order, arrays)
        if cutoff is None:
            return None
    found = int(best_segmentation(order, min(instance.k, instance.op_count), cutoff, arrays))
    if found == INFEASIBLE:
        return None
    return Segmentation(segment_below(instance, order, found + 1, arrays=arrays), found)


def segment_below(
    instance: Instance, order: Int32Array, cutoff: int, *, arrays: SlicingArrays | None = None
) -> Partition:
    """Return the partition with the fewest segments of *order* that all cost less than *cutoff* ticks.

    Notes
    -----
    O(n·w + pins).
    """
    if not instance.equal_devices:
        free = instance.machine.free
        cut = slicer_of(instance, free=free).below(order, cutoff) or (
            slicer_of(instance).below(order, cutoff) if free else None
        )
        if cut is None:
            raise ValueError(f"no cut of this order for these devices stays below {cutoff} ticks")
        return placed(instance, cut)
    arrays = arrays or slicing_arrays(instance)
    parent = np.empty(instance.op_count + 1, dtype=np.int32)
    count = int(fewest_stages(order.copy(), cutoff, instance.k, arrays, parent))
    if count > instance.k:
        raise ValueError(f"no cut of this order into {instance.k} segments stays below {cutoff} ticks")
    stage = np.empty(instance.op_count, dtype=np.int32)
    end = instance.op_count
    for index in range(count - 1, -1, -1):
        start = int(parent[end])
        stage[order[start:end]] = index
        end = start
    return Partition.from_stages(instance, stage)


def placed(instance: Instance, cut: DeviceCut) -> Partition:
    """Return the partition of a cut on devices that differ, with its devices where they may stand in any order."""
    if not instance.machine.free:
        return cut.partition
    return PlacedPartition.on(instance, cut.partition.assignment, cut.devices)


def _reachable_cutoff(instance: Instance, order: Int32Array, arrays: SlicingArrays) -> int | None:
    """Return a cutoff below which *order* can be cut, growing the gap to the simple bound twofold each time.

    None if it cannot be cut at all, which only a stage memory can make happen: one stage with everything in it costs
    at most :attr:`~mtpp.inference.instance.Instance.most_ticks`.
    """
    parent = np.empty(instance.op_count + 1, dtype=np.int32)

    def reaches(cutoff: int) -> bool:
        return bool(fewest_stages(order, cutoff, instance.k, arrays, parent) <= instance.k)

    loosest = instance.most_ticks + 1
    if instance.device.memory_bytes is not None and not reaches(loosest):
        return None
    bound = simple_bound(instance).value
    gap = max(1, bound // 64)
    cutoff = bound + 1
    while cutoff < loosest:
        if reaches(cutoff):
            return cutoff
        cutoff = bound + 1 + gap
        gap *= 2
    return loosest
