"""Simulated iteration of a pipeline, from arrays of its stages alone: for searches that ask for many."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import inlined, kernel
from mtpp.solvers.planners.simulation.kernels.pass_times import pass_times
from mtpp.solvers.planners.simulation.kernels.stage_passes import stage_passes


@inlined
def _fill_order(count: int, in_flight: int, interval: int, order: Int32Array, place: int) -> int:
    """Write the kFkB order of a stage from *place* on, and return the place behind it."""
    begun = min(in_flight, count)
    ended = 0
    for j in range(begun):
        order[place] = j + 1
        place += 1
    while ended < count:
        last = min(ended + interval, count)
        while ended < last:
            ended += 1
            order[place] = -ended
            place += 1
        last = min(begun + interval, count)
        while begun < last:
            begun += 1
            order[place] = begun
            place += 1
    return place


@kernel
def pipeline_iteration(
    costs: Int64Array, sizes: Int64Array, in_flight: Int64Array, ends: Int64Array, ticks: Int64Array
) -> int:
    """Return the simulated iteration of a stage graph in ticks, −1 if passes wait for each other.

    Parameters
    ----------
    costs
        Ticks of a forward pass, of a backward pass, of all synchronisation, and micro-batches, int64,
        shape (stages, 4).
    ends, ticks
        Source and target of each transfer, and what it takes forward and back, int64, shape (transfers, 2).
    sizes
        Samples of a micro-batch and k of the kFkB order, int64, shape (stages, 2).
    in_flight
        Micro-batches in flight, int64, shape (stages,).

    Notes
    -----
    O(passes + messages + stages · transfers).
    """
    stages = len(costs)
    row_start = np.zeros(stages + 1, dtype=np.int64)
    for s in range(stages):
        row_start[s + 1] = row_start[s] + 2 * costs[s, 3]
    order = np.empty(row_start[stages], dtype=np.int32)
    place = 0
    for s in range(stages):
        place = _fill_order(costs[s, 3], in_flight[s], sizes[s, 1], order, place)
    duration = np.empty(len(order), dtype=np.int64)
    message_start = np.empty(len(order) + 1, dtype=np.int64)
    micro_batch = sizes[:, 0].copy()
    times = costs[:, :2].copy()
    target, channel, taken = stage_passes(row_start, order, micro_batch, times, ends, ticks, duration, message_start)
    start = np.empty(len(order), dtype=np.int64)
    sent = np.empty(len(target), dtype=np.int64)
    done = pass_times(row_start, duration, message_start, target, channel, taken, 2 * len(ends), start, sent)
    if done < len(order):
        return -1
    latest = 0
    for s in range(stages):
        last = row_start[s + 1] - 1
        latest = max(latest, start[last] + duration[last] + costs[s, 2])
    return latest
