"""Stages that may follow a downset, one after the other: each op within reach is decided, inside or outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.downsets.kernels.downset_layout import (
    AT,
    BEFORE,
    COST,
    CROSSING,
    DEPTH,
    ENDED,
    FOUND,
    FRAME,
    INSIDE,
    LATER_WEIGHT,
    LEAST_COST,
    MARK,
    OP_DECIDED,
    OPEN_COST,
    OPEN_OPS,
    OPEN_WORK,
    OUT_OF_STEPS,
    OUTSIDE,
    PARAMS,
    PHASE,
    STAGE_WEIGHT,
    STEPS,
    TENSOR_CROSSES,
    TENSOR_READ,
    TRAIL,
    UNDECIDED,
    WORK,
)
from mtpp.solvers.jit import inlined, subroutine
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, NO_MEMORY, RESERVE_BYTES, GroundArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, stage_ticks
from mtpp.solvers.stage_cost.kernels.working_memory import peak_of_ops

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import ByteArray, DownsetArrays, DownsetScratch, WordArray


@subroutine
def next_stage(
    due: int, limit: int, last_step: int, arrays: DownsetArrays, scratch: DownsetScratch, registers: Int64Array
) -> int:
    """Go on with the decisions until they come to a stage of at most *limit* ticks, without overflow.

    Parameters
    ----------
    due
        Work that the stage has to hold, less what crosses from it, for the rest to fit.
    last_step
        As of :func:`search_downsets`.

    Returns
    -------
    :data:`FOUND`: every op within reach has been decided, in frames 1 … ``registers[DEPTH]`` − 1. :data:`ENDED`: there
    is no other stage. :data:`OUT_OF_STEPS`.
    """
    work, param_bytes, transfer, memory = arrays.work, arrays.param_bytes, arrays.transfer, arrays.memory
    owed = arrays.owed
    producer, consumer_offsets, consumers = arrays.producer, arrays.consumer_offsets, arrays.consumers
    read_offsets, read, made_offsets, made = arrays.read_offsets, arrays.read, arrays.made_offsets, arrays.made
    successor_offsets, successors = arrays.successor_offsets, arrays.successors
    giver, most_cost = arrays.giver, arrays.most_cost
    status, left, left_before, crosses = scratch.status, scratch.left, scratch.left_before, scratch.crosses
    frames, open_ops, stack, loss = scratch.frames, scratch.open_ops, scratch.stack, scratch.loss
    trail_kind, trail_item = scratch.trail_kind, scratch.trail_item
    depth, trail, open_count = registers[DEPTH], registers[TRAIL], registers[OPEN_OPS]
    while depth > 0:
        frame = depth * FRAME
        child = frame + FRAME
        if frames[frame + PHASE] == 0:
            at = frames[frame + AT]
            while at < open_count and status[open_ops[at]] != UNDECIDED:
                at += 1
            frames[frame + AT] = at
            if at == open_count:
                frames[frame + PHASE] = 3
                frames[frame + MARK] = trail
                if frames[frame + WORK] > 0 or trail > 0:
                    registers[STEPS] += depth >> 4
                    if memory.mode == IN_ORDER or not _fits_another(depth, limit, arrays, scratch):
                        registers[DEPTH] = depth
                        registers[TRAIL] = trail
                        return FOUND
                continue
            if registers[STEPS] >= last_step:
                registers[DEPTH] = depth
                registers[TRAIL] = trail
                return OUT_OF_STEPS
            registers[STEPS] += 1
            frames[frame + PHASE] = 1
            frames[frame + MARK] = trail
            v = open_ops[at]
            cost, crossing = frames[frame + COST] + work[v], frames[frame + CROSSING]
            status[v] = INSIDE
            trail_kind[trail] = OP_DECIDED
            trail_item[trail] = v
            trail += 1
            for e in range(read_offsets[v], read_offsets[v + 1]):
                t = read[e]
                if left[t] == left_before[t] and status[producer[t]] == BEFORE:
                    cost += transfer[t]
                left[t] -= 1
                trail_kind[trail] = TENSOR_READ
                trail_item[trail] = t
                trail += 1
            for e in range(made_offsets[v], made_offsets[v + 1]):
                t = made[e]
                for c in range(consumer_offsets[t], consumer_offsets[t + 1]):
                    if status[consumers[c]] == OUTSIDE:
                        crosses[t] = 1
                        cost += transfer[t]
                        crossing += owed[t]
                        trail_kind[trail] = TENSOR_CROSSES
                        trail_item[trail] = t
                        trail += 1
                        break
            inside = frames[frame + WORK] + work[v]
            params = frames[frame + PARAMS] + param_bytes[v]
            open_work = frames[frame + OPEN_WORK] - work[v]
            open_cost = frames[frame + OPEN_COST] - most_cost[v]
            paid = cost
            if memory.mode != NO_MEMORY:
                paid = stage_ticks(paid, params, memory.figures[EQUAL, RESERVE_BYTES], EQUAL, memory)
            if (
                paid <= limit
                and min(inside + open_work, limit - paid + inside) - crossing >= due
                and cost + open_cost > frames[frame + LEAST_COST]
            ):
                least_cost = frames[frame + LEAST_COST]
                _descend(frames, child, at, cost, inside, params, open_work, crossing, open_cost, least_cost)
                if frames[STAGE_WEIGHT] > 0:
                    frames[child + STAGE_WEIGHT] = frames[frame + STAGE_WEIGHT] + frames[len(frames) - len(work) + v]
                    frames[child + LATER_WEIGHT] = frames[frame + LATER_WEIGHT]
                    if frames[child + STAGE_WEIGHT] > frames[STAGE_WEIGHT]:
                        continue
                depth += 1
            continue
        while trail > frames[frame + MARK]:
            trail -= 1
            item = trail_item[trail]
            if trail_kind[trail] == TENSOR_READ:
                left[item] += 1
            elif trail_kind[trail] == TENSOR_CROSSES:
                crosses[item] = 0
            else:
                status[item] = UNDECIDED
        if frames[frame + PHASE] > 1:
            depth -= 1
            continue
        frames[frame + PHASE] = 2
        v = open_ops[frames[frame + AT]]
        cost, crossing, open_work = frames[frame + COST], frames[frame + CROSSING], frames[frame + OPEN_WORK]
        open_cost, least_cost = frames[frame + OPEN_COST], frames[frame + LEAST_COST]
        most_work = min(frames[frame + WORK] + open_work - work[v], frames[FRAME + OPEN_WORK] - loss[v])
        if most_work - crossing < due:
            continue
        if giver[v] and most_cost[v] > 0 and memory.mode == NO_MEMORY:
            least_cost = max(least_cost, limit - most_cost[v])
            if cost + open_cost - work[v] <= least_cost:
                continue
        stack[0] = v
        waiting = 1
        status[v] = OUTSIDE
        trail_kind[trail] = OP_DECIDED
        trail_item[trail] = v
        trail += 1
        while waiting > 0:
            waiting -= 1
            u = stack[waiting]
            open_work -= work[u]
            open_cost -= most_cost[u]
            for e in range(read_offsets[u], read_offsets[u + 1]):
                t = read[e]
                maker = status[producer[t]]
                if crosses[t] == 0 and maker in (INSIDE, BEFORE):
                    crosses[t] = 1
                    crossing += owed[t]
                    if maker == INSIDE:
                        cost += transfer[t]
                    trail_kind[trail] = TENSOR_CROSSES
                    trail_item[trail] = t
                    trail += 1
            for e in range(successor_offsets[u], successor_offsets[u + 1]):
                w = successors[e]
                if status[w] == UNDECIDED:
                    status[w] = OUTSIDE
                    trail_kind[trail] = OP_DECIDED
                    trail_item[trail] = w
                    trail += 1
                    stack[waiting] = w
                    waiting += 1
        if (
            cost <= limit
            and min(frames[frame + WORK] + open_work, limit - cost + frames[frame + WORK]) - crossing >= due
            and cost + open_cost > least_cost
        ):
            _descend(
                frames,
                child,
                frames[frame + AT],
                cost,
                frames[frame + WORK],
                frames[frame + PARAMS],
                open_work,
                crossing,
                open_cost,
                least_cost,
            )
            if frames[STAGE_WEIGHT] > 0:
                frames[child + STAGE_WEIGHT] = frames[frame + STAGE_WEIGHT]
                later_weight = frames[frame + LATER_WEIGHT]
                for i in range(frames[frame + MARK], trail):
                    if trail_kind[i] == OP_DECIDED:
                        later_weight += frames[len(frames) - len(work) + trail_item[i]]
                frames[child + LATER_WEIGHT] = later_weight
                if later_weight > frames[LATER_WEIGHT]:
                    continue
            depth += 1
    registers[DEPTH] = 0
    registers[TRAIL] = 0
    return ENDED


@inlined
def _descend(
    frames: Int64Array,
    child: int,
    at: int,
    cost: int,
    work: int,
    params: int,
    open_work: int,
    crossing: int,
    open_cost: int,
    least_cost: int,
) -> None:
    """Fill the frame that begins at *child*, of the decision that comes after the one on the op *at*."""
    frames[child + AT] = at + 1
    frames[child + PHASE] = 0
    frames[child + COST] = cost
    frames[child + WORK] = work
    frames[child + PARAMS] = params
    frames[child + OPEN_WORK] = open_work
    frames[child + CROSSING] = crossing
    frames[child + OPEN_COST] = open_cost
    frames[child + LEAST_COST] = least_cost


@subroutine
def unpack(
    downset: WordArray, limit: int, arrays: DownsetArrays, scratch: DownsetScratch, registers: Int64Array
) -> None:
    """Set the scratch up for the stages that may follow a downset, given as bits; O(n + pins)."""
    work, status, need, loss = arrays.work, scratch.status, scratch.need, scratch.loss
    count = 0
    open_work = np.int64(0)
    open_cost = np.int64(0)
    left_weight = np.int64(0)
    for v in range(len(work)):
        if (downset[v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
            status[v] = BEFORE
            continue
        # Out of reach is what the limit cannot pay for together with a path of ops that has to come with it.
        needed = np.int64(0)
        status[v] = UNDECIDED
        for e in range(arrays.predecessor_offsets[v], arrays.predecessor_offsets[v + 1]):
            u = arrays.predecessors[e]
            if status[u] == OUTSIDE:
                status[v] = OUTSIDE
            elif status[u] == UNDECIDED:
                needed = max(needed, need[u])
        need[v] = needed + work[v]
        if need[v] > limit or status[v] == OUTSIDE:
            status[v] = OUTSIDE
            left_weight += scratch.frames[len(scratch.frames) - len(work) + v]
        else:
            scratch.open_ops[count] = v
            count += 1
            open_work += work[v]
            open_cost += arrays.most_cost[v]
    for i in range(count - 1, -1, -1):
        v = scratch.open_ops[i]
        lost = np.int64(0)
        for e in range(arrays.successor_offsets[v], arrays.successor_offsets[v + 1]):
            if status[arrays.successors[e]] == UNDECIDED:
                lost = max(lost, loss[arrays.successors[e]])
        loss[v] = lost + work[v]
    crossing = np.int64(0)
    for t in range(len(arrays.transfer)):
        remaining = 0
        certain = False
        for c in range(arrays.consumer_offsets[t], arrays.consumer_offsets[t + 1]):
            where = status[arrays.consumers[c]]
            if where != BEFORE:
                remaining += 1
            if where == OUTSIDE:
                certain = True
        certain = certain and status[arrays.producer[t]] == BEFORE
        scratch.left[t] = remaining
        scratch.left_before[t] = remaining
        scratch.crosses[t] = certain
        if certain:
            crossing += arrays.owed[t]
    _descend(scratch.frames, FRAME, -1, 0, 0, 0, int(open_work), int(crossing), int(open_cost), -1)
    scratch.frames[FRAME + STAGE_WEIGHT] = 0
    scratch.frames[FRAME + LATER_WEIGHT] = left_weight
    registers[OPEN_OPS] = count
    registers[TRAIL] = 0
    registers[DEPTH] = 1
    registers[STEPS] += len(work) >> 5


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
            params = frames[frame + PARAMS] + arrays.param_bytes[v]
            cost = stage_ticks(cost, params, memory.figures[EQUAL, RESERVE_BYTES], EQUAL, memory)
        if cost <= limit:
            return True
    return False


@subroutine
def held_by_stage(of_rest: bool, shares: int, shared: Int64Array, status: ByteArray) -> int:
    """Return the parameters of the stage, or with *of_rest* of all that is after it, given the sum of its ops'.

    What several ops read counts once, and whole; states by their code.
    """
    held = np.int64(shares)
    counted = np.int64(-1)
    for i in range(len(shared)):
        where = status[shared[i, 0]]
        if where != BEFORE and (where == INSIDE) != of_rest:
            held -= shared[i, 3]
            if shared[i, 1] != counted:
                counted = shared[i, 1]
                held += shared[i, 2]
    return int(held)


@subroutine
def peak_of_stage(of_rest: bool, arrays: DownsetArrays, ground: GroundArrays, scratch: DownsetScratch) -> int:
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
