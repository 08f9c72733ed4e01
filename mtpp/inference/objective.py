"""Stage costs: the one definition of f(S), eq. 1-3 of Archer et al. (2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.working_memory import peaks_in_order
from mtpp.units import format_bytes


@dataclass(frozen=True, eq=False)
class StageCosts:
    """Cost of every stage and its parts, int64 arrays of shape (k,); times in ticks, sizes in bytes.

    Attributes
    ----------
    ops
        Number of ops.
    work
        Σ work.
    input, output
        Transfer of the tensors that come from other stages, and of those that others need; each once.
    overflow
        Time to stream what exceeds the fast memory (eq. 2).
    cost
        f(S), the sum of the four (eq. 3); 0 for an empty stage.
    param_bytes, peak_bytes
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

    @property
    def bottleneck(self) -> int:
        """The largest cost, in ticks."""
        return int(self.cost.max())


def stage_costs(instance: Instance, partition: Partition) -> StageCosts:
    """Evaluate eq. 3 for every stage of *partition*.

    Notes
    -----
    O(n + pins) time, apart from sorting the pins of the tensors that are cut, and memory. All sums are below 2^62 by
    the check in :meth:`Instance.build`.
    """
    stage = partition.assignment
    k = partition.k
    ops = np.bincount(stage, minlength=k).astype(np.int64)
    work = _sum_by(stage, instance.work, k)
    params = _sum_by(stage, instance.param_bytes, k)

    tensor, touching = _stages_of_cut_tensors(instance, stage)
    made_here = touching == stage[instance.producer[tensor]]
    moved = instance.transfer[tensor]
    arriving = _sum_by(touching[~made_here], moved[~made_here], k)
    leaving = _sum_by(touching[made_here], moved[made_here], k)

    if instance.device.peak == "order":
        peak = peaks_in_order(instance, stage, k)
    else:
        peak = np.where(ops > 0, np.int64(instance.device.activation_reserve_bytes), np.int64(0))
    overflow = np.array(
        [
            instance.overflow_ticks(p, a) if count else 0
            for count, p, a in zip(ops.tolist(), params.tolist(), peak.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    cost = work + arriving + leaving + overflow
    return StageCosts(ops, work, arriving, leaving, overflow, cost, params, peak)


def keeps_stage_memory(instance: Instance, costs: StageCosts) -> bool:
    """Tell whether no stage needs more than the stage memory."""
    limit = instance.device.memory_bytes
    return limit is None or int((costs.param_bytes + costs.peak_bytes).max()) <= limit


def check_stage_memory(instance: Instance, costs: StageCosts) -> None:
    """Raise :class:`~mtpp.errors.InvalidPartition` if a stage needs more than the stage memory; names the worst."""
    limit = instance.device.memory_bytes
    if limit is None or keeps_stage_memory(instance, costs):
        return
    worst = int((costs.param_bytes + costs.peak_bytes).argmax())
    params, peak = int(costs.param_bytes[worst]), int(costs.peak_bytes[worst])
    raise InvalidPartition(
        f"stage {worst} needs {params + peak:,} bytes ({params:,} for parameters, {peak:,} for activations), more "
        f"than the {limit:,} ({format_bytes(limit)}) allowed",
        parameter="stage_memory",
    )


def bottleneck(instance: Instance, partition: Partition) -> int:
    """Return the largest stage cost of *partition*, in ticks (eq. 4)."""
    return stage_costs(instance, partition).bottleneck


def crossing_tensors(instance: Instance, partition: Partition) -> Int32Array:
    """Return the tensors that cross a stage boundary, int32, in the graph's order."""
    tensor, _ = _stages_of_cut_tensors(instance, partition.assignment)
    return np.unique(tensor).astype(np.int32)


def _sum_by(group: np.ndarray, value: Int64Array, size: int) -> Int64Array:
    """Sum *value* per group in int64 (``np.bincount`` with weights would go through float64)."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, group, value)
    return total


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
