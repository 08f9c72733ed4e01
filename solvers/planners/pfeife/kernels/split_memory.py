"""Memory of devices under a split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays


class MemoryArrays(NamedTuple):
    """Sums along the order, and what a schedule keeps, from which the memory of each device follows.

    Attributes
    ----------
    fixed, kept
        Bytes of the first ops, whatever is in flight, and for each micro-batch in flight, int64, shape (n + 1,).
    received
        Bytes of one micro-batch received over each position, there or back, int64, shape (n + 1,).
    held
        Micro-batches in flight of each loop of a device at some moment, a row each, int64, shape (moments, N_l).
    held_start
        Where the moments of each device begin, int64, shape (D + 1,).
    limit
        Bytes of each device, int64, shape (D,).
    micro_batches
        B.
    buffered
        Whether all micro-batches have buffers of what is received, or only those in flight.
    """

    fixed: Int64Array
    kept: Int64Array
    received: Int64Array
    held: Int64Array
    held_start: Int64Array
    limit: Int64Array
    micro_batches: int
    buffered: bool


@kernel
def device_bytes(arrays: SplitArrays, memory: MemoryArrays, split: Int64Array, need: Int64Array) -> None:
    """Set the bytes that each device needs under a split, int64, shape (D,).

    Notes
    -----
    O(S · moments), and O(pins) where tensors go straight to their readers.
    """
    devices = len(memory.limit)
    stages = len(split) - 1
    flying = np.empty(stages, dtype=np.int64)
    stage_bytes(arrays, memory, split, need, flying)
    for d in range(devices):
        most = 0
        for i in range(memory.held_start[d], memory.held_start[d + 1]):
            held = 0
            for s in range(d, stages, devices):
                held += memory.held[i, s // devices] * flying[s]
            most = max(most, held)
        need[d] += most


@subroutine
def stage_bytes(
    arrays: SplitArrays, memory: MemoryArrays, split: Int64Array, need: Int64Array, flying: Int64Array
) -> None:
    """Set bytes of devices whatever is in flight, shape (D,), and of a micro-batch in flight in stages, shape (S,)."""
    devices, stages = len(need), len(split) - 1
    received = np.zeros(stages, dtype=np.int64)
    if arrays.direct:
        _add_received(arrays, split, received)
    need[:] = 0
    for s in range(stages):
        begin, end = split[s], split[s + 1]
        if not arrays.direct:
            received[s] = memory.received[begin] + memory.received[end]
        need[s % devices] += memory.fixed[end] - memory.fixed[begin]
        flying[s] = memory.kept[end] - memory.kept[begin]
        if memory.buffered:
            need[s % devices] += memory.micro_batches * received[s]
        else:
            flying[s] += received[s]


@subroutine
def _add_received(arrays: SplitArrays, split: Int64Array, received: Int64Array) -> None:
    """Add tensors that come straight from their producers, and gradients that come back, to the stages they come to."""
    stages, n = len(split) - 1, split[len(split) - 1]
    stage_of = np.empty(n, dtype=np.int32)
    for s in range(stages):
        stage_of[split[s] : split[s + 1]] = s
    for t in range(len(arrays.producer)):
        source = stage_of[arrays.producer[t]]
        last = source
        for r in range(arrays.reader_start[t], arrays.reader_start[t + 1]):
            target = stage_of[arrays.readers[r]]
            if target != last:
                last = target
                received[target] += arrays.size_bytes[t]
                received[source] += arrays.size_bytes[t]


@kernel
def excess_bytes(arrays: SplitArrays, memory: MemoryArrays, split: Int64Array) -> int:
    """Return the bytes by which devices go beyond their limits under a split, in sum."""
    need = np.empty(len(memory.limit), dtype=np.int64)
    device_bytes(arrays, memory, split, need)
    excess = 0
    for d in range(len(need)):
        excess += max(0, need[d] - memory.limit[d])
    return excess
