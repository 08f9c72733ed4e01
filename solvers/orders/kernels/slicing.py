"""Cutting a topological order into stages with a sliding window of segment costs.

A segment whose work alone reaches the cutoff can never be part of a better partition. So for each right end only a
window of left ends matters, and the costs of the segments that end there follow from those that ended one op
earlier: an op that joins touches the cost of a segment only through its own tensors. This replaces the O(n²) table of
Archer et al. (2024), Algorithms 4 and 5, and gives the same costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, RESERVE, RESERVE_BYTES
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, most_held, stage_ticks, transfer_ticks, work_ticks
from mtpp.solvers.stage_cost.kernels.working_memory import PeakScratch, peak_scratch, window_peaks

if TYPE_CHECKING:
    from mtpp.solvers.arrays import SlicingArrays

INFEASIBLE = np.iinfo(np.int64).max
"""Stands for "no segmentation has all its costs below the cutoff"."""


@subroutine
def _extend_segments(
    right: int,
    left: int,
    op: int,
    slicing: SlicingArrays,
    first_pin: Int64Array,
    last_pin: Int64Array,
    pins_seen: Int64Array,
    change: Int64Array,
    cost: Int64Array,
) -> None:
    """Let *op*, at position *right*, join the segments that start at *left* … *right*.

    A segment [l, right] pays for a tensor if it holds some of its pins but not all. When a pin arrives at *right*,
    the segments that start after the previous pin begin to pay; when it is the last pin, those that start at or
    before the first pin (the producer) hold all of them and stop. Both are ranges of l, added up in one pass.
    """
    for e in range(slicing.op_tensor_offsets[op], slicing.op_tensor_offsets[op + 1]):
        t = slicing.op_tensors[e]
        pins = slicing.pin_offsets[t + 1] - slicing.pin_offsets[t]
        if pins < 2:
            continue
        paid = transfer_ticks(t, EQUAL, slicing.costs)
        change[right] += paid
        if pins_seen[t] == 0:
            first_pin[t] = right
        elif last_pin[t] >= left:
            change[last_pin[t]] -= paid
        last_pin[t] = right
        pins_seen[t] += 1
        if pins_seen[t] == pins and first_pin[t] >= left:
            change[first_pin[t]] -= paid
    cost[right] = 0
    added = work_ticks(op, EQUAL, slicing.costs)
    for begin in range(right, left - 1, -1):
        added += change[begin]
        change[begin] = 0
        cost[begin] += added


@subroutine
def add_weights(
    op: int, left: int, slicing: SlicingArrays, last_pin: Int64Array, pins_seen: Int64Array, prefix_params: Int64Array
) -> int:
    """Return the bytes of the weights that *op* shares, which segments that have met them already do not hold again.

    A segment holds the difference of two of *prefix_params*, at its end and at its start. So the bytes are added to the
    start of each segment that begins at or before the last op that reads the weight.
    """
    total: int = np.int64(0)  # type: ignore[assignment]  # 0 is another type to numba
    ops, tensors = len(slicing.op_tensor_offsets) - 1, len(slicing.pin_offsets) - 1
    first = tensors - (len(slicing.costs.param_bytes) - ops)
    for e in range(slicing.op_tensor_offsets[op], slicing.op_tensor_offsets[op + 1]):
        t = slicing.op_tensors[e]
        if t >= first:
            size = slicing.costs.param_bytes[ops + t - first]
            total += size
            if pins_seen[t] > 0:
                for begin in range(left, last_pin[t] + 1):
                    prefix_params[begin] += size
    return total


@subroutine
def _add_memory_in_order(
    order: Int32Array,
    left: int,
    right: int,
    cutoff: int,
    slicing: SlicingArrays,
    prefix_params: Int64Array,
    scratch: PeakScratch | None,
    cost: Int64Array,
    total: Int64Array,
) -> None:
    """Set *total* to *cost* and what memory adds to it, for the segments that start at *left* … *right*.

    Does nothing without scratch for peaks in order. Segments that cost *cutoff* or more anyhow need no addition.
    """
    if scratch is None:
        return
    memory = slicing.costs.memory
    start = left
    while start <= right and cost[start] >= cutoff:
        total[start] = cost[start]
        start += 1
    window_peaks(order, start, right, most_held(cutoff, EQUAL, memory), slicing, slicing.ground, scratch)
    for begin in range(start, right + 1):
        params = prefix_params[right + 1] - prefix_params[begin]
        total[begin] = stage_ticks(cost[begin], params, scratch.peaks[begin], EQUAL, memory)


@kernel
def fewest_stages(
    order: Int32Array,
    cutoff: int,
    most: int,
    slicing: SlicingArrays,
    parent: Int32Array,
) -> int:
    """Return the least number of segments of *order* that all cost less than *cutoff*.

    Parameters
    ----------
    order
        Topological order, int32, shape (n,).
    cutoff
        Ticks, above 0.
    most
        Give up above this many segments.
    slicing
        The instance, :func:`mtpp.solvers.arrays.slicing_arrays`.
    parent
        Filled for the caller, int32, shape (n + 1,): the last segment of the best segmentation of the first r ops
        starts at position ``parent[r]``; valid along the chain from n if the result is at most *most*.

    Returns
    -------
    The number of segments, or *most* + 1 if more are needed or none will do.

    Notes
    -----
    O(n·w + pins) time, w being the longest run of ops whose work is below the cutoff, and O(n + m) memory. Where
    peaks in order matter, the pins of such a run times log n for each of the n right ends are added.
    """
    n = len(order)
    work, param_bytes, memory = slicing.costs.work, slicing.costs.param_bytes, slicing.costs.memory
    reserve = memory.figures[EQUAL, RESERVE_BYTES]
    heaviest = most_held(cutoff, EQUAL, memory)
    scratch = peak_scratch(n, slicing.ground)
    m = len(slicing.pin_offsets) - 1
    limit = cutoff - 1 if cutoff > 1 else 1
    first_pin = np.zeros(m, dtype=np.int64)
    last_pin = np.zeros(m, dtype=np.int64)
    pins_seen = np.zeros(m, dtype=np.int64)
    change = np.zeros(n, dtype=np.int64)
    cost = np.zeros(n, dtype=np.int64)
    total = np.zeros(n, dtype=np.int64) if memory.mode == IN_ORDER else cost
    prefix_params = np.zeros(n + 1, dtype=np.int64)
    stages = np.empty(n + 1, dtype=np.int64)
    stages[0] = 0
    for end in range(1, n + 1):
        stages[end] = most + 1
    left = 0
    window_work = np.int64(0)
    rest = np.int64(0)
    for v in range(n):
        rest += work[v]
    last_reached = 0
    for right in range(n):
        op = order[right]
        window_work += work[op]
        rest -= work[op]
        prefix_params[right + 1] = prefix_params[right] + param_bytes[op]
        if len(param_bytes) > n:
            prefix_params[right + 1] += add_weights(op, left, slicing, last_pin, pins_seen, prefix_params)
        params = prefix_params[right + 1]
        while left <= right and (window_work >= cutoff or params - prefix_params[left] + reserve > heaviest):
            window_work -= work[order[left]]
            left += 1
        if left > last_reached:  # every segment that ends here starts where no segmentation does
            return most + 1
        _extend_segments(right, left, op, slicing, first_pin, last_pin, pins_seen, change, cost)
        room = most - (rest + limit - 1) // limit
        best = room + 1
        start = left
        _add_memory_in_order(order, left, right, cutoff, slicing, prefix_params, scratch, cost, total)
        for begin in range(left, right + 1):
            if stages[begin] + 1 < best and total[begin] < cutoff:
                paid = total[begin]
                if memory.mode == RESERVE:
                    paid = stage_ticks(paid, params - prefix_params[begin], reserve, EQUAL, memory)
                if paid < cutoff:
                    best = stages[begin] + 1
                    start = begin
        if best <= room:
            stages[right + 1] = best
            parent[right + 1] = start
            last_reached = right + 1
    return int(stages[n])


@kernel
def best_segmentation(order: Int32Array, stage_count: int, cutoff: int, slicing: SlicingArrays) -> int:
    """Return the least bottleneck of any cut of *order* into at most *stage_count* segments, if below *cutoff*.

    The dynamic programme of Archer et al. (2024), Algorithm 1, over a window: best[r][j] is the least bottleneck
    of the first r ops in at most j segments, and best[r][j] = min over l of max(best[l][j − 1], cost(l … r)). Only
    those j are computed with which the work before r, and the work after it, can still stay below the cutoff.

    Returns
    -------
    Ticks, or :data:`INFEASIBLE` if every cut reaches the cutoff.

    Notes
    -----
    O(n·w·k + pins) time and O(n + m + w·k) memory: a ring of w rows of the table. Peaks in order add as much as in
    :func:`fewest_stages`.
    """
    n = len(order)
    work, param_bytes, memory = slicing.costs.work, slicing.costs.param_bytes, slicing.costs.memory
    reserve = memory.figures[EQUAL, RESERVE_BYTES]
    heaviest = most_held(cutoff, EQUAL, memory)
    scratch = peak_scratch(n, slicing.ground)
    m = len(slicing.pin_offsets) - 1
    limit = cutoff - 1 if cutoff > 1 else 1
    width = _longest_window(order, work, cutoff) + 1
    first_pin = np.zeros(m, dtype=np.int64)
    last_pin = np.zeros(m, dtype=np.int64)
    pins_seen = np.zeros(m, dtype=np.int64)
    change = np.zeros(n, dtype=np.int64)
    cost = np.zeros(n, dtype=np.int64)
    total = np.zeros(n, dtype=np.int64) if memory.mode == IN_ORDER else cost
    prefix_params = np.zeros(n + 1, dtype=np.int64)
    ring = np.zeros((width, stage_count + 1), dtype=np.int64)
    left = 0
    window_work = np.int64(0)
    before = np.int64(0)
    rest = np.int64(0)
    for v in range(n):
        rest += work[v]
    for right in range(n):
        op = order[right]
        window_work += work[op]
        before += work[op]
        rest -= work[op]
        prefix_params[right + 1] = prefix_params[right] + param_bytes[op]
        if len(param_bytes) > n:
            prefix_params[right + 1] += add_weights(op, left, slicing, last_pin, pins_seen, prefix_params)
        params = prefix_params[right + 1]
        while left <= right and (window_work >= cutoff or params - prefix_params[left] + reserve > heaviest):
            window_work -= work[order[left]]
            left += 1
        if left > right:
            return INFEASIBLE
        _extend_segments(right, left, op, slicing, first_pin, last_pin, pins_seen, change, cost)
        least = max(1, (before + limit - 1) // limit)
        most = stage_count - (rest + limit - 1) // limit
        row = ring[(right + 1) % width]
        for j in range(stage_count + 1):
            row[j] = INFEASIBLE
        if most < least:  # no stage can end here
            continue
        _add_memory_in_order(order, left, right, cutoff, slicing, prefix_params, scratch, cost, total)
        for begin in range(left, right + 1):
            paid = total[begin]
            if paid < cutoff and memory.mode == RESERVE:
                paid = stage_ticks(paid, params - prefix_params[begin], reserve, EQUAL, memory)
            if paid < cutoff:
                previous = ring[begin % width]
                for j in range(least, most + 1):
                    row[j] = min(row[j], max(previous[j - 1], paid))
        for j in range(most + 1, stage_count + 1):
            row[j] = row[most]
    return int(ring[n % width, stage_count])


@subroutine
def _longest_window(order: Int32Array, work: Int64Array, cutoff: int) -> int:
    longest = 0
    left = 0
    window_work = np.int64(0)
    for right in range(len(order)):
        window_work += work[order[right]]
        while left <= right and window_work >= cutoff:
            window_work -= work[order[left]]
            left += 1
        longest = max(longest, right + 1 - left)
    return longest
