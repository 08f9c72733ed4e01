"""The state of a search over assignments of ops to stages, as arrays that kernels change in place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.arrays import grouped
from mtpp.solvers.orders.kernels.random_stream import UInt64Array
from mtpp.solvers.stage_cost.cost_arrays import (
    NO_GROUND,
    GroundArrays,
    MemoryArrays,
    cost_arrays,
    ground_arrays,
    shared_weights,
)


class MoveArrays(NamedTuple):
    """What the kernels that move ops between stages need of an instance.

    Tensors that no partition pays for are left out: those with one pin and those that take no time. After the others
    come the weights that several ops read: tensors that take memory in place of time.

    Attributes
    ----------
    class_of, work, work_row, transfer, transfer_row, param_bytes, memory, mode
        Costs of stages, by the ops and the tensors that are kept: the fields of
        :class:`~mtpp.solvers.stage_cost.cost_arrays.CostArrays`. They stand here one by one since taking a tuple out of
        another counts references to each of its arrays, in every move.
    pin_counts
        Number of ops of each tensor that is kept, int32.
    op_tensor_offsets, op_tensors
        Tensors that are kept of each op, CSR, int64, shape (n + 1,), and int32.
    predecessor_offsets, predecessors, successor_offsets, successors
        Distinct neighbours of each op, CSR.
    ground
        What the memory of stages depends on when their ops run in the graph's order.
    """

    class_of: Int64Array | None
    work: Int64Array
    work_row: Int64Array | None
    transfer: Int64Array
    transfer_row: Int64Array | None
    param_bytes: Int64Array
    memory: MemoryArrays
    mode: int
    pin_counts: Int32Array
    op_tensor_offsets: Int64Array
    op_tensors: Int32Array
    predecessor_offsets: Int64Array
    predecessors: Int32Array
    successor_offsets: Int64Array
    successors: Int32Array
    ground: GroundArrays


class AssignmentState(NamedTuple):
    """An assignment, what its stages cost, and the best one seen.

    Attributes
    ----------
    stage
        Stage of each op, int32, shape (n,).
    held
        Pins of each kept tensor in each stage, int32, shape (m, k).
    moved, params, cost
        Work and transfer in ticks, parameters in bytes, and f(S) in ticks of each stage, int64, shape (k,).
    inside
        Places of the graph's ops in each stage, a bitset, uint64, shape (k, words); without words unless peaks are
        those of running in order.
    places, pins_left
        Scratch for peaks in order, int32.
    best_stage, best
        The best assignment seen, int32, shape (n,), and its bottleneck in ticks, int64, shape (1,).
    journal, journal_length
        Ops moved since then, int32, shape (n,), and their number, int64, shape (1,); −1 if too many to note.
    stream
        Random stream, uint64, shape (1,).
    """

    stage: Int32Array
    held: Int32Array
    moved: Int64Array
    params: Int64Array
    cost: Int64Array
    inside: UInt64Array
    places: Int32Array
    pins_left: Int32Array
    best_stage: Int32Array
    best: Int64Array
    journal: Int32Array
    journal_length: Int64Array
    stream: UInt64Array


def move_arrays(instance: Instance, stage_count: int) -> MoveArrays:
    """Return what the moving kernels need of *instance* for that many stages; O(n + pins), do it once per search."""
    counts = np.diff(instance.pin_offsets)
    kept = (counts >= 2) & (instance.cost.transfer > 0).any(axis=0)
    renumbered = (np.cumsum(kept) - 1).astype(np.int32)
    tensor_of_pin = instance.tensor_of_pin
    pin_kept = kept[tensor_of_pin]
    weights = shared_weights(instance)
    op_tensor_offsets, op_tensors = grouped(
        np.concatenate([instance.pins[pin_kept], weights.readers]),
        np.concatenate([renumbered[tensor_of_pin[pin_kept]], np.count_nonzero(kept) + weights.weight_of_reader]).astype(
            np.int32
        ),
        instance.op_count,
    )
    successor_offsets, successors = instance.successors
    sources = np.repeat(np.arange(instance.op_count, dtype=np.int32), np.diff(successor_offsets))
    predecessor_offsets, predecessors = grouped(successors, sources, instance.op_count)
    return MoveArrays(
        **cost_arrays(instance, stage_count, np.flatnonzero(kept))._asdict(),
        pin_counts=np.concatenate([counts[kept], np.diff(weights.offsets)]).astype(np.int32),
        op_tensor_offsets=op_tensor_offsets,
        op_tensors=op_tensors,
        predecessor_offsets=predecessor_offsets,
        predecessors=predecessors,
        successor_offsets=successor_offsets,
        successors=successors,
        ground=ground_arrays(instance) if instance.peaks_in_order else NO_GROUND,
    )


def assignment_state(moves: MoveArrays, stage_count: int, seed: int) -> AssignmentState:
    """Return an empty state for k stages; O(n + m·k) memory. Call ``kernels.moves.start_from`` next."""
    n, m = len(moves.op_tensor_offsets) - 1, len(moves.pin_counts)
    ground_ops, ground_tensors = len(moves.ground.places), len(moves.ground.sizes)
    return AssignmentState(
        stage=np.zeros(n, dtype=np.int32),
        held=np.zeros((m, stage_count), dtype=np.int32),
        moved=np.zeros(stage_count, dtype=np.int64),
        params=np.zeros(stage_count, dtype=np.int64),
        cost=np.zeros(stage_count, dtype=np.int64),
        inside=np.zeros((stage_count, -(-ground_ops // 64)), dtype=np.uint64),
        places=np.zeros(ground_ops, dtype=np.int32),
        pins_left=np.zeros(ground_tensors, dtype=np.int32),
        best_stage=np.zeros(n, dtype=np.int32),
        best=np.zeros(1, dtype=np.int64),
        journal=np.zeros(n, dtype=np.int32),
        journal_length=np.zeros(1, dtype=np.int64),
        stream=np.array([seed], dtype=np.uint64),
    )
