"""The search of all chains of downsets whose stages stay within a limit.

The prefixes of a partition are downsets: sets of ops that hold all predecessors of their ops. From a downset that can
be reached with a number of stages, every set of ops that may follow as the next stage is tried, by deciding one op
after the other in a topological order; an op that is left for later leaves its descendants for later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.downsets.kernels.downset_layout import (
    AT,
    COST,
    CROSSING,
    DEPTH,
    DOWNSETS,
    ENDED,
    FOUND,
    FRAME,
    LAST,
    LAST_BASE,
    LATER_WEIGHT,
    NEXT,
    OUT_OF_ROOM,
    OUT_OF_STEPS,
    PAIRS,
    PARAMS,
    PHASE,
    STAGE_WEIGHT,
    TOTAL_PARAMS,
    TOTAL_WORK,
    WORK,
)
from mtpp.solvers.downsets.kernels.downset_store import keep_downset
from mtpp.solvers.downsets.kernels.stages import held_by_stage, next_stage, peak_of_stage, unpack
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, LIMIT_BYTES, NO_MEMORY, RESERVE_BYTES, GroundArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, NEVER, stage_ticks

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetArrays, DownsetScratch, DownsetStore


@kernel
def search_downsets(
    arrays: DownsetArrays,
    ground: GroundArrays,
    store: DownsetStore,
    scratch: DownsetScratch,
    registers: Int64Array,
    stage_count: int,
    limit: int,
    later: Int64Array,
    capacity: int,
    last_step: int,
) -> int:
    """Look for a partition into at most *stage_count* stages of at most *limit* ticks each.

    Downsets are expanded in the order in which they were reached, so each has the fewest stages that it can have.
    Rules leave downsets out, without loss if the whole instance does not fit into one stage:

    *fit*: what comes after a downset, D, that was reached with j stages has to fit into the others:
    work(V − D) + Σ transfer(tensors from D to V − D) + later(j) ≤ (k − j) · limit, where later(j) is what they pay at
    least for tensors that they make for each other; and as many stage memories have to hold its parameters.

    *weights*: where no convex set of at most *limit* ticks holds more of some weights than *capacity*, no stage does,
    for stages are convex. So one that holds more need not be tried (none such has a cost within the limit in the end,
    but that is seen earlier), and what comes after D weighs at most (k − j) · capacity. That D weighs at most
    j · capacity follows from its stages. This is so of all partitions within the limit, hence of the one that *maximal*
    speaks of.

    *maximal*: no op after D whose predecessors are all in D, and which can always leave its stage
    (:func:`mtpp.solvers.downsets.downset_arrays.givers`), may fit into the last stage. For if it does, it may as well
    be there: that stage stays within the limit, and no other one grows. Among the partitions within the limit that go
    on from one downset in a number of stages, one whose next downset is largest satisfies the rule, and so on from
    there.

    The decisions inside a stage are cut short by what is certain of its cost, by what it must hold at least for the
    rest to fit, and by what it must cost at least to be maximal; that changes nothing of what is reached.

    Parameters
    ----------
    store
        Holds the empty downset at the beginning.
    registers
        One downset, the totals, and zeros else at the beginning; see
        :mod:`mtpp.solvers.downsets.kernels.downset_layout`.
    later
        Ticks by the number of stages before, int64, shape (stage_count + 1,);
        see :mod:`mtpp.solvers.downsets.least_crossings`.
    capacity
        The most weight of a stage; 0 where there are no weights.
    last_step
        Return :data:`OUT_OF_STEPS` when so many steps have been made in all.

    Returns
    -------
    :data:`ENDED`: there is none. :data:`FOUND`: the last stage can follow downset ``registers[LAST]``. Else the search
    goes on where it was when it is called again: after :data:`OUT_OF_ROOM` with a store of more capacity.

    Notes
    -----
    A step is a decision, O(degree) apart from the ops that it puts out of reach. Piper (Tarnawski et al. 2021),
    section 4, is the dynamic programme over downsets that this comes from.
    """
    room = len(store.level)
    while registers[NEXT] < registers[DOWNSETS]:
        if registers[NEXT] > registers[LAST_BASE]:
            return OUT_OF_STEPS
        base = registers[NEXT]
        rest = stage_count - store.level[base] - 1
        if rest >= 1:
            if registers[DEPTH] == 0:
                unpack(store.bits[base], limit, arrays, scratch, registers)
            scratch.frames[STAGE_WEIGHT] = capacity
            scratch.frames[LATER_WEIGHT] = NEVER if rest > NEVER // (capacity + 1) else rest * capacity
            if scratch.frames[FRAME + LATER_WEIGHT] > scratch.frames[LATER_WEIGHT]:
                registers[DEPTH] = 0
                registers[NEXT] += 1
                continue
            due = registers[TOTAL_WORK] - store.work[base] + later[store.level[base] + 1]
            due -= NEVER if rest > NEVER // (limit + 1) else rest * limit
            while True:
                if registers[DOWNSETS] == room:
                    return OUT_OF_ROOM
                code = next_stage(due, limit, last_step, arrays, scratch, registers)
                if code == OUT_OF_STEPS:
                    return OUT_OF_STEPS
                if code == ENDED:
                    break
                if _end_stage(base, rest, limit, arrays, ground, store, scratch, registers):
                    registers[LAST] = registers[DOWNSETS] - 1
                    return FOUND
        registers[NEXT] += 1
    return ENDED


@subroutine
def _end_stage(
    base: int,
    rest: int,
    limit: int,
    arrays: DownsetArrays,
    ground: GroundArrays,
    store: DownsetStore,
    scratch: DownsetScratch,
    registers: Int64Array,
) -> bool:
    """Keep the downset to which the stage of the ops inside leads from downset *base*, unless a rule forbids it.

    Returns
    -------
    Whether the ops after it can make the last stage.
    """
    memory = arrays.memory
    frames = scratch.frames
    depth = registers[DEPTH]
    frame = depth * FRAME
    params = store.params[base] + frames[frame + PARAMS]
    if memory.mode != NO_MEMORY:
        peak = memory.figures[EQUAL, RESERVE_BYTES]
        if memory.mode == IN_ORDER:
            peak = peak_of_stage(False, arrays, ground, scratch)
        held = held_by_stage(False, frames[frame + PARAMS], arrays.shared, scratch.status)
        if stage_ticks(frames[frame + COST], held, peak, EQUAL, memory) > limit:
            return False
        most = memory.figures[EQUAL, LIMIT_BYTES] - memory.figures[EQUAL, RESERVE_BYTES]
        if -(-(registers[TOTAL_PARAMS] - params) // rest) > most:
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
    if keep_downset(new, store) != new:
        return False
    store.level[new] = store.level[base] + 1
    store.parent[new] = base
    store.work[new] = store.work[base] + frames[frame + WORK]
    store.params[new] = params
    store.crossing[new] = frames[frame + CROSSING]
    registers[DOWNSETS] += 1
    last = registers[TOTAL_WORK] - store.work[new] + frames[frame + CROSSING]
    if last <= limit and memory.mode != NO_MEMORY:
        peak = memory.figures[EQUAL, RESERVE_BYTES]
        if memory.mode == IN_ORDER:
            peak = peak_of_stage(True, arrays, ground, scratch)
        held = held_by_stage(True, registers[TOTAL_PARAMS] - params, arrays.shared, scratch.status)
        last = stage_ticks(last, held, peak, EQUAL, memory)
    return bool(last <= limit)
