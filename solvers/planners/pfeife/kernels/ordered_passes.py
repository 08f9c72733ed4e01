"""Passes of a schedule in an order in which all can run, with their messages; rows of looped schedules."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine


@kernel
def ordered_passes(
    row_start: Int64Array,
    rows: Int32Array,
    stages: int,
    micro_batches: int,
    dependencies: Int64Array,
    order: Int64Array,
    table: Int32Array,
) -> int:
    """Set the precedence order of passes, and what a sweep over it needs; return how many passes can run.

    Parameters
    ----------
    row_start
        Where the passes of each device begin in *rows*, int64, shape (D + 1,).
    rows
        Stage, kind (0 forward, 1 backward, 2 and 3 its halves for inputs and weights) and micro-batch of each pass,
        int32, shape (passes, 3).
    dependencies
        Positions in *rows* of a pass and of one that waits for it, int64, shape (dependencies, 2).
    order
        Output: positions in *rows* in an order in which each pass comes after those that it waits for, int64.
    table
        Output, by position in that order, int32, shape (passes, 5): device, 4 · stage + kind, channel of the message
        that the pass sends (−1: none), stage behind the position that it crosses, place of the pass that waits for it.
        Channel D · a + b leads from device a to b.

    Notes
    -----
    A pass waits for the pass before it in its row and for one message at most; if fewer than all can run, the others
    wait for each other. O(passes).
    """
    devices = len(row_start) - 1
    passes = len(rows)
    at = np.full((stages, 4, micro_batches), -1, dtype=np.int64)
    for i in range(passes):
        at[rows[i, 0], rows[i, 1], rows[i, 2]] = i
    receiver = np.full(passes, -1, dtype=np.int64)
    waiting = np.zeros(passes, dtype=np.int64)
    for i in range(passes):
        stage, kind, m = rows[i, 0], rows[i, 1], rows[i, 2]
        to = -1
        if kind == 0 and stage < stages - 1:
            to = at[stage + 1, 0, m]
        elif (kind == 1 or kind == 2) and stage > 0:
            to = at[stage - 1, 1, m]
            if to < 0:
                to = at[stage - 1, 2, m]
        receiver[i] = to
        if to >= 0:
            waiting[to] += 1
    half = np.full(passes, -1, dtype=np.int64)
    for i in range(passes):
        own = -1
        if rows[i, 1] == 0:  # a backward pass behind its forward pass, which rows may contradict
            own = at[rows[i, 0], 1, rows[i, 2]]
            if own < 0:
                own = at[rows[i, 0], 2, rows[i, 2]]
        elif rows[i, 1] == 2:
            own = at[rows[i, 0], 3, rows[i, 2]]
        half[i] = own
        if own >= 0:
            waiting[own] += 1
    first = np.full(passes, -1, dtype=np.int64)
    following = np.full(max(1, len(dependencies)), -1, dtype=np.int64)
    for i in range(len(dependencies)):
        following[i] = first[dependencies[i, 0]]
        first[dependencies[i, 0]] = i
        waiting[dependencies[i, 1]] += 1
    device = np.empty(passes, dtype=np.int64)
    for d in range(devices):
        device[row_start[d] : row_start[d + 1]] = d
    head = row_start[:devices].copy()
    stack = np.empty(passes + devices, dtype=np.int64)
    left = 0
    for d in range(devices - 1, -1, -1):
        stack[left] = d
        left += 1
    done = 0
    place = np.empty(passes, dtype=np.int64)
    while left > 0:
        left -= 1
        d = stack[left]
        while head[d] < row_start[d + 1] and waiting[head[d]] == 0:
            i = head[d]
            head[d] += 1
            order[done] = i
            place[i] = done
            done += 1
            for j in (receiver[i], half[i]):
                if j >= 0:
                    waiting[j] -= 1
                    if waiting[j] == 0 and head[device[j]] == j:
                        stack[left] = device[j]
                        left += 1
            e = first[i]
            while e >= 0:
                j = dependencies[e, 1]
                waiting[j] -= 1
                if waiting[j] == 0 and head[device[j]] == j:
                    stack[left] = device[j]
                    left += 1
                e = following[e]
    if done < passes:
        return done
    for k in range(passes):
        i = order[k]
        stage, kind = rows[i, 0], rows[i, 1]
        table[k, 0] = device[i]
        table[k, 1] = 4 * stage + kind
        table[k, 2] = table[k, 3] = table[k, 4] = -1
        j = receiver[i]
        if j >= 0:
            table[k, 2] = device[i] * devices + device[j]
            table[k, 3] = stage + 1 if kind == 0 else stage
            table[k, 4] = place[j]
    return done


@kernel
def looped_rows(micro_batches: int, loops: int, loop_batch: int, warm_up: Int64Array) -> Int32Array:
    """Return the stage, the kind (0 forward, 1 backward) and the micro-batch of each pass, device by device.

    Parameters
    ----------
    warm_up
        Forward passes of each device before its first backward pass, int64, shape (D,).

    Returns
    -------
    int32, shape (2 · D · N_l · B, 3): every device has 2 · N_l · B passes.

    Notes
    -----
    The same rows as :attr:`mtpp.training.pfeife.looped.LoopedSchedule.schedule`. O(passes).
    """
    devices = len(warm_up)
    each = loops * micro_batches
    rows = np.empty((2 * devices * each, 3), dtype=np.int32)
    at = 0
    for d in range(devices):
        forward = backward = 0
        while backward < each:
            count = warm_up[d] if backward == 0 else 1
            for _ in range(min(count, each - forward)):
                _set_pass(rows[at], forward, d, devices, micro_batches, loops, loop_batch, 0)
                forward += 1
                at += 1
            _set_pass(rows[at], backward, d, devices, micro_batches, loops, loop_batch, 1)
            backward += 1
            at += 1
    return rows


@subroutine
def _set_pass(
    row: Int32Array,
    number: int,
    device: int,
    devices: int,
    micro_batches: int,
    loops: int,
    loop_batch: int,
    kind: int,
) -> None:
    """Set the pass of a kind that comes after *number* others: batch by batch, loop by loop."""
    batch = number // (loops * loop_batch)
    size = min(loop_batch, micro_batches - batch * loop_batch)
    rest = number - batch * loops * loop_batch
    loop = rest // size
    if kind == 1:
        loop = loops - 1 - loop
    row[0] = device + loop * devices
    row[1] = kind
    row[2] = batch * loop_batch + rest % size
