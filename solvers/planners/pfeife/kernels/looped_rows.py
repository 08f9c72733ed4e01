"""Rows of passes of a looped 1F1B schedule."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine


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
