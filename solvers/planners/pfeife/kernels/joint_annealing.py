"""Simulated annealing of split points and warm-ups of a looped schedule together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.planners.pfeife.kernels.ordered_passes import looped_rows, ordered_passes
from mtpp.solvers.planners.pfeife.kernels.split_annealing import WIDEST, Cooling, move_split
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays
from mtpp.solvers.planners.pfeife.kernels.split_iteration import NEVER, iteration, split_room
from mtpp.solvers.planners.pfeife.kernels.split_memory import MemoryArrays, stage_bytes

_SCHEDULE = 0.08
"""Share of moves of the warm-up, each of which costs several times as much as one of the split."""


class LoopedWarmUp(NamedTuple):
    """A cell of looped schedules and one of them: the *least* forward passes before a backward one, and now; (D,)."""

    loops: int
    loop_batch: int
    least: Int64Array
    warm_up: Int64Array


@kernel
def anneal_together(
    arrays: SplitArrays, memory: MemoryArrays, limited: bool, looped: LoopedWarmUp, split: Int64Array, cooling: Cooling
) -> tuple[int, int]:
    """Anneal the iteration of a split under looped schedules; return the best one's ticks and its excess of memory.

    Parameters
    ----------
    arrays, memory, limited
        As :func:`~mtpp.solvers.planners.pfeife.kernels.split_annealing.anneal_split` takes them, for *looped*.
    looped, split
        Input and output, as for the warm-up; *split* has shape (S + 1,).

    Notes
    -----
    O(passes) a step. A warm-up that grows from a device to the next one, or whose passes wait for each other, is
    refused. Invariant: *split* and the warm-up of *looped* are the best met so far.
    """
    loops, loop_batch, least, warm_up = looped
    steps, hottest, coldest, seed = cooling
    np.random.seed(seed)
    devices, stages = len(warm_up), len(split) - 1
    micro_batches = memory.micro_batches
    reach = max(1.0, WIDEST * split[stages] / stages)
    room = split_room(arrays, stages)
    row_start = np.arange(devices + 1) * (2 * loops * micro_batches)
    nothing = np.zeros((0, 2), dtype=np.int64)
    order = np.empty(len(arrays.table), dtype=np.int64)
    table = arrays.table.copy()
    place, micro_batch = arrays.place, arrays.micro_batch
    rows = looped_rows(micro_batches, loops, loop_batch, warm_up)
    current, trial = split.copy(), split.copy()
    warm, tried = warm_up.copy(), warm_up.copy()
    excess = _excess(arrays, memory, rows, row_start, split) if limited else 0
    now = _scheduled(arrays, table, place, micro_batch)
    ticks = iteration(now, split, room, NEVER)
    best, best_excess = ticks, excess
    for step in range(steps):
        part = step / steps
        temperature = hottest * (coldest / hottest) ** part * best
        scheduled = np.random.random() < _SCHEDULE
        trial[:] = current
        if scheduled:
            tried[:] = warm
            if not _move_warm_up(tried, least, loops * micro_batches):
                continue
            new_rows = looped_rows(micro_batches, loops, loop_batch, tried)
            new_table = np.empty((len(new_rows), 5), dtype=np.int32)
            done = ordered_passes(row_start, new_rows, stages, micro_batches, nothing, order, new_table)
            if done < len(new_rows):
                continue
        else:
            if not move_split(trial, max(1.0, reach * (1.0 - part))):
                continue
            new_rows, new_table = rows, table
        over = _excess(arrays, memory, new_rows, row_start, trial) if limited else 0
        if over > excess:
            continue
        cutoff = NEVER - 1
        if over == excess:
            cutoff = ticks + int(-temperature * np.log(1.0 - np.random.random()))
        new_place, new_micro_batch = place, micro_batch
        if scheduled and arrays.direct:
            new_place, new_micro_batch = _places(new_rows, order, stages, micro_batches)
        found = iteration(_scheduled(arrays, new_table, new_place, new_micro_batch), trial, room, cutoff)
        if found > cutoff:
            continue
        ticks, excess = found, over
        if scheduled:
            warm[:] = tried
            rows, table, place, micro_batch = new_rows, new_table, new_place, new_micro_batch
        else:
            current[:] = trial
        if over < best_excess or (over == best_excess and found < best):
            best, best_excess = found, over
            split[:] = trial
            warm_up[:] = warm
    return best, best_excess


@subroutine
def _scheduled(arrays: SplitArrays, table: Int32Array, place: Int32Array, micro_batch: Int32Array) -> SplitArrays:
    """Return the arrays of another schedule of the same stages and micro-batches."""
    return SplitArrays(
        arrays.forward,
        arrays.backward,
        arrays.handover,
        arrays.speed_of,
        table,
        arrays.after,
        arrays.after_start,
        arrays.share,
        arrays.direct,
        place,
        micro_batch,
        arrays.producer,
        arrays.reader_start,
        arrays.readers,
        arrays.ticks,
        arrays.size_bytes,
        arrays.latency,
    )


@subroutine
def _places(rows: Int32Array, order: Int64Array, stages: int, micro_batches: int) -> tuple[Int32Array, Int32Array]:
    """Return the place of each pass in the precedence order, and the micro-batch of each in that order."""
    place = np.full((stages, 4, micro_batches), -1, dtype=np.int32)
    micro_batch = np.empty(len(order), dtype=np.int32)
    for k in range(len(order)):
        stage, kind, m = rows[order[k]]
        place[stage, kind, m] = k
        micro_batch[k] = m
    return place, micro_batch


@subroutine
def _move_warm_up(warm_up: Int64Array, least: Int64Array, most: int) -> bool:
    """Let a device, or all up to one or from one on, begin its backward passes a pass later or earlier."""
    devices = len(warm_up)
    step = 1 if np.random.random() < 0.5 else -1
    first = np.random.randint(devices)
    last = first
    kind = np.random.random()
    if kind < 0.5:
        last = np.random.randint(devices)
        if last < first:
            first, last = last, first
    for d in range(first, last + 1):
        warm_up[d] = min(warm_up[d] + step, most)
    moved = True
    for d in range(devices):
        moved &= warm_up[d] >= least[d] and (d == 0 or warm_up[d] <= warm_up[d - 1])
    return moved


@subroutine
def _excess(
    arrays: SplitArrays, memory: MemoryArrays, rows: Int32Array, row_start: Int64Array, split: Int64Array
) -> int:
    """Return the bytes by which devices go beyond their limits, from the rows of passes themselves."""
    need = np.empty(len(memory.limit), dtype=np.int64)
    flying = np.empty(len(split) - 1, dtype=np.int64)
    stage_bytes(arrays, memory, split, need, flying)
    excess = 0
    for d in range(len(need)):
        held = most = 0
        for i in range(row_start[d], row_start[d + 1]):
            size = flying[rows[i, 0]]
            held += size if rows[i, 1] == 0 else -size
            most = max(most, held)
        excess += max(0, need[d] + most - memory.limit[d])
    return excess
