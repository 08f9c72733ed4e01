"""The end of a stage in the downset search: whether it may end there, and what comes after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.downsets.kernels.downset_layout import (
    AT,
    BEFORE,
    COST,
    CROSSING,
    DOWNSETS,
    FRAME,
    INSIDE,
    PAIRS,
    PARAMS,
    PHASE,
    TOTAL_PARAMS,
    TOTAL_WORK,
    WORK,
)
from mtpp.solvers.downsets.kernels.downset_store import keep_downset
from mtpp.solvers.jit import subroutine
from mtpp.solvers.memory.kernels.stage_memory import stage_memory_cost
from mtpp.solvers.memory.kernels.working_memory import peak_of_ops
from mtpp.solvers.memory.memory_arrays import IN_ORDER, NO_MEMORY, GroundArrays

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetArrays, DownsetScratch, DownsetStore


@subroutine
def end_stage(
    base: int,
    depth: int,
    rest: int,
    limit: int,
    arrays: DownsetArrays,
    ground: GroundArrays,
    store: DownsetStore,
    scratch: DownsetScratch,
    registers: Int64Array,
) -> bool:
    """Keep the downset to which the stage of the ops inside leads from downset *base*, unless a rule forbids it.

    Every op within reach has been decided, in frames 1 … *depth* − 1, at a cost of at most *limit* without overflow.

    Returns
    -------
    Whether the ops after it can make the last stage.
    """
    memory = arrays.memory
    frames = scratch.frames
    frame = depth * FRAME
    params = store.params[base] + frames[frame + PARAMS]
    if memory.mode != NO_MEMORY:
        peak = memory.reserve_bytes
        if memory.mode == IN_ORDER:
            peak = _peak(False, arrays, ground, scratch)
        if frames[frame + COST] + stage_memory_cost(frames[frame + PARAMS], peak, memory) > limit:
            return False
        most = memory.limit_bytes - memory.reserve_bytes
        if -(-(registers[TOTAL_PARAMS] - params) // rest) > most:
            return False
    if memory.mode != IN_ORDER and _fits_another(depth, limit, arrays, scratch):
        return False

    new = registers[DOWNSETS]
    key = store.keys[base]
    joined = False
    for i in range(store.bits.shape[1]):
        store.bits[new, i] = store.bits[base, i]
    for d in range(1, depth):
        if frames[d * FRAME + PHASE] == 1:
            joined = True
            v = scratch.open_ops[frames[d * FRAME + AT]]
            key ^= arrays.key[v]
            store.bits[new, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    if not joined:  # a stage has at least one op
        return False
    store.keys[new] = key
    registers[PAIRS] += 1
    if not keep_downset(new, store):
        return False
    store.level[new] = store.level[base] + 1
    store.parent[new] = base
    store.work[new] = store.work[base] + frames[frame + WORK]
    store.params[new] = params
    store.crossing[new] = frames[frame + CROSSING]
    registers[DOWNSETS] += 1
    last = registers[TOTAL_WORK] - store.work[new] + frames[frame + CROSSING]
    if last <= limit and memory.mode != NO_MEMORY:
        peak = memory.reserve_bytes
        if memory.mode == IN_ORDER:
            peak = _peak(True, arrays, ground, scratch)
        last += stage_memory_cost(registers[TOTAL_PARAMS] - params, peak, memory)
    return bool(last <= limit)


@subroutine
def _fits_another(depth: int, limit: int, arrays: DownsetArrays, scratch: DownsetScratch) -> bool:
    """Return whether an op that was left out, and that can always leave its stage, fits into this one."""
    transfer, memory = arrays.transfer, arrays.memory
    status, left, left_before = scratch.status, scratch.left, scratch.left_before
    frames = scratch.frames
    frame = depth * FRAME
    for d in range(depth - 1, 0, -1):
        v = scratch.open_ops[frames[d * FRAME + AT]]
        if frames[d * FRAME + PHASE] != 2 or not arrays.giver[v]:
            continue
        cost = frames[frame + COST] + arrays.work[v]
        for e in range(arrays.read_offsets[v], arrays.read_offsets[v + 1]):
            t = arrays.read[e]
            if status[arrays.producer[t]] == BEFORE:
                if left[t] == left_before[t]:
                    cost += transfer[t]
            elif left[t] == 1:  # the stage makes it, and only this op reads it later
                cost -= transfer[t]
        for e in range(arrays.made_offsets[v], arrays.made_offsets[v + 1]):
            cost += transfer[arrays.made[e]]
        if memory.mode != NO_MEMORY:
            cost += stage_memory_cost(frames[frame + PARAMS] + arrays.param_bytes[v], memory.reserve_bytes, memory)
        if cost <= limit:
            return True
    return False


@subroutine
def _peak(of_rest: bool, arrays: DownsetArrays, ground: GroundArrays, scratch: DownsetScratch) -> int:
    """Return the working memory of the stage, or with *of_rest* of all that is after it, run in the graph's order."""
    if len(ground.places) == 0:
        return 0
    for v in range(len(arrays.work)):
        where = scratch.status[v]
        if where != BEFORE and (where == INSIDE) != of_rest:
            for i in range(ground.place_offsets[v], ground.place_offsets[v + 1]):
                scratch.chosen[ground.places[i]] = 1
    count = 0
    for place in range(len(scratch.chosen)):
        if scratch.chosen[place]:
            scratch.chosen[place] = 0
            scratch.places[count] = place
            count += 1
    return peak_of_ops(scratch.places, count, ground, scratch.pins_left)
