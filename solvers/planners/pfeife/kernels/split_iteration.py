"""Iteration of a split under a schedule, in one sweep over its passes."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays, SplitRoom

NEVER = 2**62
"""Ticks of an iteration that was given up."""


@subroutine
def split_room(arrays: SplitArrays, stages: int) -> SplitRoom:
    """Return room for evaluations of splits into *stages* stages."""
    devices = len(arrays.speed_of)
    side = stages if arrays.direct else 0
    return SplitRoom(
        np.empty(4 * stages, dtype=np.int64),
        np.empty(stages, dtype=np.int64),
        np.empty(devices, dtype=np.int64),
        np.empty(devices, dtype=np.int64),
        np.empty(devices * devices, dtype=np.int64),
        np.zeros(len(arrays.table), dtype=np.int64),
        np.empty((side, side), dtype=np.int64),
    )


@kernel
def iteration(arrays: SplitArrays, split: Int64Array, room: SplitRoom, cutoff: int) -> int:
    """Return the ticks of an iteration; :data:`NEVER` as soon as they are known to be above *cutoff*.

    Parameters
    ----------
    split
        Positions 0 = p_0 < … < p_S = n, int64, shape (S + 1,).

    Notes
    -----
    O(passes); O(passes · S + pins) where tensors go straight to their readers. A pass starts when its device is free
    and its messages have come; messages take turns on their channel, in the order of the passes that send them.
    """
    _set_durations(arrays, split, room)
    if arrays.direct:
        _set_between(arrays, split, room.between)
        return _direct_sweep(arrays, room, len(split) - 1, cutoff)
    return _sweep(
        arrays.table,
        arrays.after,
        arrays.after_start,
        room.duration,
        room.crossing,
        room.load,
        room.free,
        room.channel,
        room.ready,
        cutoff,
    )


@subroutine
def _set_durations(arrays: SplitArrays, split: Int64Array, room: SplitRoom) -> None:
    """Set the ticks of each kind of pass, of hand-overs, and of all passes of each device."""
    devices = len(arrays.speed_of)
    duration = room.duration
    room.load[:] = 0
    for s in range(len(split) - 1):
        d = s % devices
        row = arrays.speed_of[d]
        begin, end = split[s], split[s + 1]
        back = arrays.backward[row, end] - arrays.backward[row, begin]
        duration[4 * s] = arrays.forward[row, end] - arrays.forward[row, begin]
        duration[4 * s + 1] = back
        duration[4 * s + 2] = back - back // 2
        duration[4 * s + 3] = back // 2
        room.crossing[s] = arrays.handover[begin]
        for kind in range(4):
            room.load[d] += arrays.share[s, kind] * duration[4 * s + kind]


@subroutine
def _sweep(
    table: Int32Array,
    after: Int32Array,
    after_start: Int32Array,
    duration: Int64Array,
    crossing: Int64Array,
    load: Int64Array,
    free: Int64Array,
    channel: Int64Array,
    ready: Int64Array,
    cutoff: int,
) -> int:
    """Sweep over passes that hand everything to their neighbours."""
    free[:] = 0
    channel[:] = 0
    bound = len(after_start) > 0
    for i in range(len(table)):
        d = table[i, 0]
        start = free[d]
        if ready[i] > start:
            start = ready[i]
        ready[i] = 0
        if start + load[d] > cutoff:
            ready[i:] = 0
            return NEVER
        took = duration[table[i, 1]]
        load[d] -= took
        end = start + took
        free[d] = end
        c = table[i, 2]
        if c >= 0:
            sent = channel[c]
            if end > sent:
                sent = end
            sent += crossing[table[i, 3]]
            channel[c] = sent
            to = table[i, 4]
            if sent > ready[to]:
                ready[to] = sent
        if bound:
            for e in range(after_start[i], after_start[i + 1]):
                if end > ready[after[e]]:
                    ready[after[e]] = end
    return _latest(free)


@subroutine
def _latest(free: Int64Array) -> int:
    latest = free[0]
    for d in range(1, len(free)):
        if free[d] > latest:
            latest = free[d]
    return int(latest)


@subroutine
def _set_between(arrays: SplitArrays, split: Int64Array, between: Int64Array) -> None:
    """Set the ticks of messages from stage to stage: every tensor goes once to each other stage that reads it."""
    stages, n = len(split) - 1, split[len(split) - 1]
    stage_of = np.empty(n, dtype=np.int32)
    for s in range(stages):
        stage_of[split[s] : split[s + 1]] = s
    between[:] = -1
    for t in range(len(arrays.producer)):
        source = stage_of[arrays.producer[t]]
        last = source
        for r in range(arrays.reader_start[t], arrays.reader_start[t + 1]):
            target = stage_of[arrays.readers[r]]
            if target != last:
                last = target
                if between[source, target] < 0:
                    between[source, target] = arrays.latency
                between[source, target] += arrays.ticks[t]


@subroutine
def _direct_sweep(arrays: SplitArrays, room: SplitRoom, stages: int, cutoff: int) -> int:
    """Sweep over passes whose tensors go straight to the stages that read them."""
    table, ready, free, channel, load = arrays.table, room.ready, room.free, room.channel, room.load
    devices = len(free)
    free[:] = 0
    channel[:] = 0
    bound = len(arrays.after_start) > 0
    for i in range(len(table)):
        d = table[i, 0]
        start = max(free[d], ready[i])
        ready[i] = 0
        if start + load[d] > cutoff:
            ready[i:] = 0
            return NEVER
        took = room.duration[table[i, 1]]
        load[d] -= took
        end = start + took
        free[d] = end
        stage, kind, m = table[i, 1] // 4, table[i, 1] % 4, arrays.micro_batch[i]
        if kind == 0:
            for other in range(stage + 1, stages):
                if room.between[stage, other] >= 0:
                    c = d * devices + other % devices
                    channel[c] = max(channel[c], end) + room.between[stage, other]
                    to = arrays.place[other, 0, m]
                    ready[to] = max(ready[to], channel[c])
        elif kind < 3:
            for other in range(stage):
                if room.between[other, stage] >= 0:
                    c = d * devices + other % devices
                    channel[c] = max(channel[c], end) + room.between[other, stage]
                    to = arrays.place[other, 1, m]
                    if to < 0:
                        to = arrays.place[other, 2, m]
                    ready[to] = max(ready[to], channel[c])
        if bound:
            for e in range(arrays.after_start[i], arrays.after_start[i + 1]):
                to = arrays.after[e]
                ready[to] = max(ready[to], end)
    return _latest(free)
