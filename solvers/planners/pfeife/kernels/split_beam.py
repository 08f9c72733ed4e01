"""Beam search of split points under a fixed schedule (Jhoo et al. 2025, algorithm 1)."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays
from mtpp.solvers.planners.pfeife.kernels.split_iteration import iteration, split_room
from mtpp.solvers.planners.pfeife.kernels.split_memory import MemoryArrays, excess_bytes

_FARTHEST = 10
"""Ops by which a split point is moved, at most: the paper's."""


@kernel
def extend_beam(
    arrays: SplitArrays, memory: MemoryArrays, limited: bool, split: Int64Array, beam: Int64Array, ticks: Int64Array
) -> bool:
    """Take neighbours of a split into a beam, in place; return whether there were any.

    Parameters
    ----------
    beam, ticks
        Input and output: splits, int64, shape (L_K, S + 1), and their iterations, ascending, int64;
        :data:`~mtpp.solvers.planners.pfeife.kernels.split_iteration.NEVER` where there is none.

    Notes
    -----
    Lines 8 to 25 for one split: each of its points moves by 1 to 10 ops, alone, or with all others in proportion; what
    is faster than the last of the beam and fits comes in. O(S) evaluations of 40 splits.
    """
    width, stages = len(beam), beam.shape[1] - 1
    room = split_room(arrays, stages)
    trial = np.empty(stages + 1, dtype=np.int64)
    changed = False
    for s in range(1, stages):
        for step in range(-_FARTHEST, _FARTHEST + 1):
            for together in range(2):
                if step == 0 or not _moved(split, s, step, together == 1, trial):
                    continue
                if limited and excess_bytes(arrays, memory, trial) > 0:
                    continue
                found = iteration(arrays, trial, room, ticks[width - 1] - 1)
                if found < ticks[width - 1]:
                    changed |= _insert(beam, ticks, trial, found)
    return changed


@subroutine
def _moved(split: Int64Array, s: int, step: int, together: bool, trial: Int64Array) -> bool:
    """Set *trial* to a split with one point moved, and the others in proportion; return whether it is a split."""
    stages = len(split) - 1
    n = split[stages]
    trial[:] = split
    trial[s] += step
    if trial[s] <= 0 or trial[s] >= n:
        return False
    if together:
        for i in range(1, s):
            trial[i] = round(split[i] * trial[s] / split[s])
        for i in range(s + 1, stages):
            trial[i] = n - round((n - split[i]) * (n - trial[s]) / (n - split[s]))
    in_order = True
    for i in range(stages):
        in_order &= trial[i] < trial[i + 1]
    return in_order


@subroutine
def _insert(beam: Int64Array, ticks: Int64Array, split: Int64Array, found: int) -> bool:
    """Put a split where it belongs by its ticks, unless it is there; return whether it was not."""
    width = len(beam)
    for row in range(width):
        if ticks[row] == found and np.all(beam[row] == split):
            return False
    row = width - 1
    while row > 0 and ticks[row - 1] > found:
        beam[row] = beam[row - 1]
        ticks[row] = ticks[row - 1]
        row -= 1
    beam[row] = split
    ticks[row] = found
    return True


@kernel
def best_of_all_splits(arrays: SplitArrays, memory: MemoryArrays, limited: bool, best: Int64Array, cutoff: int) -> int:
    """Return the least iteration below *cutoff* of a split within the memory, which *best* is set to, or *cutoff*.

    Notes
    -----
    O(C(n − 1, S − 1) · passes).
    """
    stages, n = len(best) - 1, arrays.forward.shape[1] - 1
    room = split_room(arrays, stages)
    split = np.arange(stages + 1)
    split[stages] = n
    while True:
        if not limited or excess_bytes(arrays, memory, split) == 0:
            found = iteration(arrays, split, room, cutoff - 1)
            if found < cutoff:
                cutoff = found
                best[:] = split
        s = stages - 1
        while s > 0 and split[s] == n - (stages - s):
            s -= 1
        if s == 0:
            return cutoff
        split[s] += 1
        for later in range(s + 1, stages):
            split[later] = split[later - 1] + 1
