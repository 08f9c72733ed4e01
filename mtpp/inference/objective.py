"""Costs of the stages of a partition, by their parts (:mod:`mtpp.inference.stage_cost`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.weights import sum_by
from mtpp.inference.working_memory import peaks_in_order
from mtpp.machine.boundary_cost import BoundaryCost
from mtpp.units import format_bytes


@dataclass(frozen=True, eq=False)
class StageCosts:
    """Cost of every stage and its parts, int64 arrays of shape (k,); times in ticks, sizes in bytes.

    Attributes
    ----------
    ops
        Number of ops.
    work
        Σ work; on a device with times of stages that of so many ops.
    input, output
        Transfer of the tensors that come from other stages, and of those that others need; each once. Of neighbours
        that of all tensors that pass the boundary to the stage before, and to the one after.
    overflow
        Time to stream what exceeds the fast memory (eq. 2).
    cost
        f(S), the sum of the four (eq. 3); 0 for an empty stage.
    param_bytes, state_bytes, peak_bytes
        Memory for parameters, and peak(S): the activation reserve or the working memory of the stage run in order.
    """

    ops: Int64Array
    work: Int64Array
    input: Int64Array
    output: Int64Array
    overflow: Int64Array
    cost: Int64Array
    param_bytes: Int64Array
    peak_bytes: Int64Array
    state_bytes: Int64Array

    @property
    def bottleneck(self) -> int:
        """The largest cost, in ticks."""
        return int(self.cost.max())

    @property
    def latency(self) -> int:
        """Time of one request on an idle pipeline: the sum of the stages' costs, in ticks."""
        return int(self.cost.sum())

    @property
    def held_bytes(self) -> Int64Array:
        """Bytes that count in the memory limit: parameters, states and activations."""
        return self.param_bytes + self.state_bytes + self.peak_bytes


def stage_costs(instance: Instance, partition: Partition) -> StageCosts:
    """Evaluate eq. 3 for every stage of *partition*.

    Notes
    -----
    O(n + pins) time, apart from sorting the pins of the tensors that are cut, and memory. All sums are below 2^62 by
    the check in :meth:`Instance.build`.
    """
    stage, k, parts = partition.assignment, partition.k, instance.cost
    class_of = parts.class_of(k)
    devices = [parts.machine.classes[c] for c in class_of.tolist()]
    ops = np.bincount(stage, minlength=k).astype(np.int64)
    work = sum_by(stage, _rows_at(parts.work, class_of[stage]), k)
    if parts.counts_ops:
        work += _times_of_stages(instance, ops, class_of)
    params = parts.held_bytes(stage, k)

    if parts.boundary is None:
        tensor, touching = _stages_of_cut_tensors(instance, stage)
        made_here = touching == stage[instance.producer[tensor]]
        moved = parts.transfer[parts.link_of[class_of[touching]], tensor]
        if parts.counts_ops:
            moved = moved * parts.moves[class_of[touching]]
        arriving = sum_by(touching[~made_here], moved[~made_here], k)
        leaving = sum_by(touching[made_here], moved[made_here], k)
    else:
        arriving, leaving = _at_boundaries(instance, parts.boundary, stage, class_of)

    if instance.device.peak == "order":
        peak = peaks_in_order(instance, stage, k)
    else:
        reserves = np.array([device.activation_reserve_bytes for device in devices], dtype=np.int64)
        peak = np.where(ops > 0, reserves, 0)
    rows = zip(ops.tolist(), params.tolist(), peak.tolist(), devices, strict=True)
    overflow = np.array([parts.overflow(p, a, device) if n else 0 for n, p, a, device in rows], dtype=np.int64)
    cost = work + arriving + leaving + overflow
    return StageCosts(ops, work, arriving, leaving, overflow, cost, params, peak, parts.state_bytes(stage, k))


def _times_of_stages(instance: Instance, ops: Int64Array, class_of: Int64Array) -> Int64Array:
    """Return the time of each stage on a device with times of stages, 0 on others.

    Raises
    ------
    InvalidPartition
        If a stage has more ops than its device has times.
    """
    times = np.zeros(len(ops), dtype=np.int64)
    for c, ticks in enumerate(instance.cost.stage_ticks):
        if ticks is None:
            continue
        here = np.flatnonzero(class_of == c)
        longest = int(ops[here].max(initial=0))
        if longest >= len(ticks):
            stage = int(here[ops[here].argmax()])
            raise InvalidPartition(
                f"stage {stage} has {longest:,} ops, and its device has stage_times for at most {len(ticks) - 1:,}"
            )
        times[here] = ticks[ops[here]]
    return times


def keeps_stage_memory(instance: Instance, costs: StageCosts) -> bool:
    """Tell whether no stage needs more than the memory of its device."""
    return _excess(instance, costs) is None


def check_stage_memory(instance: Instance, costs: StageCosts) -> None:
    """Raise :class:`~mtpp.errors.InvalidPartition` if a stage needs more than the stage memory; names the worst."""
    found = _excess(instance, costs)
    if found is None:
        return
    worst, limit = found
    params, states, peak = (int(part[worst]) for part in (costs.param_bytes, costs.state_bytes, costs.peak_bytes))
    kept = f", {states:,} for states" if states else ""
    named = bool(instance.machine.groups[0].name)
    on = f" on device {instance.machine.names[worst]!r}" if named else ""
    raise InvalidPartition(
        f"stage {worst}{on} needs {params + states + peak:,} bytes ({params:,} for parameters{kept}, {peak:,} for "
        f"activations), more than the {limit:,} ({format_bytes(limit)}) allowed",
        parameter="machine" if named else "stage_memory",
    )


def _excess(instance: Instance, costs: StageCosts) -> tuple[int, int] | None:
    """Return the stage that exceeds the memory of its device by most, and that memory in bytes; None if none does."""
    classes = instance.machine.classes
    if all(device.memory_bytes is None for device in classes):
        return None
    held = costs.held_bytes.tolist()
    limits = [classes[c].memory_bytes for c in instance.cost.class_of(len(held)).tolist()]
    over = [0 if limit is None else size - limit for size, limit in zip(held, limits, strict=True)]
    worst = max(range(len(over)), key=over.__getitem__)
    return (worst, limits[worst] or 0) if over[worst] > 0 else None


def bottleneck(instance: Instance, partition: Partition) -> int:
    """Return the largest stage cost of *partition*, in ticks (eq. 4)."""
    return stage_costs(instance, partition).bottleneck


def crossing_tensors(instance: Instance, partition: Partition) -> Int32Array:
    """Return the tensors that cross a stage boundary, int32, in the graph's order."""
    tensor, _ = _stages_of_cut_tensors(instance, partition.assignment)
    return np.unique(tensor).astype(np.int32)


def _at_boundaries(
    instance: Instance, boundary: BoundaryCost, stage: Int32Array, class_of: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return what each stage pays for tensors that pass its left and its right boundary, int64, shape (k,).

    O(n + pins + links · m).
    """
    arriving, leaving = np.zeros(len(class_of), dtype=np.int64), np.zeros(len(class_of), dtype=np.int64)
    busy, place = np.unique(stage, return_inverse=True)
    if len(busy) < 2 or not instance.tensor_count:
        return arriving, leaving
    of_pin, begins = place.reshape(-1)[instance.pins], instance.pin_offsets[:-1]
    first, last = np.minimum.reduceat(of_pin, begins), np.maximum.reduceat(of_pin, begins)
    row = boundary.row_of[class_of[busy[:-1]], class_of[busy[1:]]]
    for link in np.unique(row):
        change = sum_by(first, boundary.ticks[link], len(busy)) - sum_by(last, boundary.ticks[link], len(busy))
        passing = np.cumsum(change)[:-1]
        here = np.flatnonzero(row == link)
        leaving[busy[here]] = passing[here]
        arriving[busy[here + 1]] = passing[here]
    return arriving, leaving


def _rows_at(by_row: Int64Array, row: Int64Array) -> Int64Array:
    """Return each column's value in the given row; of one row that row itself."""
    values: Int64Array = by_row[0] if len(by_row) == 1 else by_row[row, np.arange(by_row.shape[1])]
    return values


def _stages_of_cut_tensors(instance: Instance, stage: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Return every distinct (tensor, stage that touches it) pair of the tensors that several stages touch, sorted."""
    if not instance.tensor_count:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    k = int(stage.max()) + 1
    stage_of_pin = stage[instance.pins]
    begins = instance.pin_offsets[:-1]
    cut = np.minimum.reduceat(stage_of_pin, begins) < np.maximum.reduceat(stage_of_pin, begins)
    pins = np.diff(instance.pin_offsets)
    tensor = np.repeat(np.flatnonzero(cut), pins[cut])
    pairs = np.unique(tensor * k + stage_of_pin[np.repeat(cut, pins)])
    return pairs // k, pairs % k


class OneDevice(NamedTuple):
    """Ticks that the whole graph takes on a device, and the device by its number in a list."""

    ticks: int
    device: int


def fastest_alone(instance: Instance, numbers: Sequence[int]) -> OneDevice | None:
    """Return the device that takes least for all ops, the first of several; None if no memory holds them.

    Parameters
    ----------
    numbers
        Of the instance's devices in the list.

    Notes
    -----
    O(classes · n + pins). A device with times of stages holds no more ops than it has times.
    """
    cost, machine, n = instance.cost, instance.machine, instance.op_count
    stage = np.zeros(n, dtype=np.int32)
    params, states = int(cost.held_bytes(stage, 1)[0]), int(cost.state_bytes(stage, 1)[0])
    in_order = int(peaks_in_order(instance, stage, 1)[0]) if instance.device.peak == "order" else None
    found: OneDevice | None = None
    for c, device in enumerate(machine.classes):
        peak = device.activation_reserve_bytes if in_order is None else in_order
        times = cost.stage_ticks[c]
        if device.memory_bytes is not None and params + states + peak > device.memory_bytes:
            continue
        if times is not None and n >= len(times):
            continue
        work = int(cost.work[c].sum()) if times is None else int(times[n])
        ticks = work + cost.overflow(params, peak, device)
        first = min(number for number, own in zip(numbers, machine.class_of, strict=True) if own == c)
        found = min(one for one in (found, OneDevice(ticks, first)) if one is not None)
    return found
