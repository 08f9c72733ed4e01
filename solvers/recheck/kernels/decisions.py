"""Decisions of a search that re-checks a proof: which ops join a stage, and which are left to later ones.

One downset is gone on from at a time; see :mod:`mtpp.solvers.recheck.kernels.downsets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.recheck.kernels.state import (
    BEFORE,
    COST,
    COUNTED,
    ENTRIES,
    KIND,
    LATER,
    OP,
    OPEN_PARAMS,
    OPEN_WORK,
    OPS,
    PARAMS,
    PASSED,
    PEAK,
    READY,
    REST,
    REST_PARAMS,
    REST_WEIGHT,
    STAGE,
    TRAILED,
    UNDECIDED,
    WEIGHT,
    WINDOW,
)

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.recheck.arrays import ClaimArrays, GroundArrays, Limits
    from mtpp.solvers.recheck.layout import Scratch, Store

OPEN, DOWN, BACK = 0, 1, 2
"""Phases: before a downset, at the next decision, and on the way back from one."""

_JOINED, _LEFT = 0, 1

NEVER = 2**62
"""More ticks than any stage costs; a stage's cost can be added to it."""

_TICKS_PER_S = 10**12
_TICKS_PER_S_BITS = 40


@subroutine
def decide(
    phase: int, depth: int, level: int, claim: ClaimArrays, limits: Limits, scratch: Scratch, nodes: Int64Array
) -> tuple[int, int]:
    """Make the next decision, or take one back; return phase and depth after it."""
    if phase == DOWN:
        op = scratch.listed[nodes[depth, READY]]
        depth += 1
        nodes[depth, OP] = op
        nodes[depth, KIND] = _JOINED
        _join(claim, scratch, nodes, op, depth)
        return (DOWN if _may_go_on(claim, limits, nodes, depth, level) else BACK), depth
    op = nodes[depth, OP]
    if nodes[depth, KIND] == _JOINED:
        _unjoin(claim, scratch, op)
        nodes[depth, KIND] = _LEFT
        _leave(claim, limits, scratch, nodes, op, depth, level)
        if _may_go_on(claim, limits, nodes, depth, level) and not (
            claim.giver[op] and _fits_anyway(claim, limits, scratch, nodes, op, depth)
        ):
            return DOWN, depth
        return BACK, depth
    _unleave(claim, scratch, nodes, depth)
    return BACK, depth - 1


@subroutine
def _may_go_on(claim: ClaimArrays, limits: Limits, nodes: Int64Array, depth: int, level: int) -> bool:
    """Tell whether what is decided leaves both sides within what they may be."""
    cost, rest = nodes[depth, COST], nodes[depth, REST]
    if cost > limits.ticks or rest > claim.rest_ticks[level] or nodes[depth, REST_PARAMS] > claim.rest_bytes[level]:
        return False
    if cost + rest + nodes[depth, OPEN_WORK] > claim.both_ticks[level]:
        return False
    if nodes[depth, WEIGHT] > claim.capacity[0] or nodes[depth, REST_WEIGHT] > claim.rest_weight[level]:
        return False
    return bool(cost + overflow(nodes[depth, PARAMS] + nodes[depth, PEAK], limits) <= limits.ticks)


@subroutine
def begin(claim: ClaimArrays, limits: Limits, store: Store, scratch: Scratch, nodes: Int64Array, downset: int) -> bool:
    """Set up the search from one downset; return whether there is anything to decide.

    Ops join at once that have too much work behind them for the stages to come, and are left at once if the work of
    the longest way to them is too much: the cost of no stage with such an op is within the limit.
    """
    status, joined_readers, left_readers = scratch.status, scratch.joined_readers, scratch.left_readers
    level = int(store.level[downset])
    n = len(status)
    for word in range(store.sets.shape[1]):
        scratch.inside[word] = store.sets[downset, word]
    for op in range(n):
        is_before = (store.sets[downset, op >> 6] >> np.uint64(op & 63)) & np.uint64(1)
        status[op] = BEFORE if is_before else LATER
    joined_readers[:] = 0
    left_readers[:] = 0
    cost = 0
    weight = 0
    rest_weight = 0
    params = 0
    peak = limits.reserve
    joined = 0
    for i in range(n):
        op = claim.order[i]
        if claim.following[op] <= claim.rest_ticks[level]:
            break
        if status[op] != BEFORE:
            status[op] = STAGE
            scratch.inside[op >> 6] |= np.uint64(1) << np.uint64(op & 63)
            joined += 1
            params += claim.param_bytes[op]
            peak = max(peak, claim.least_peak[op])
            cost += claim.work[op]
            weight += claim.weight[op]
            for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
                tensor = claim.read[e]
                if status[claim.maker[tensor]] == BEFORE and joined_readers[tensor] == 0:
                    cost += claim.transfer[tensor]
                joined_readers[tensor] += 1
    rest = 0
    rest_params = 0
    open_work = 0
    open_params = 0
    window = 0
    for i in range(n):
        op = claim.order[i]
        if status[op] != LATER:
            continue
        longest = cost
        missing = 0
        may_join = True
        for e in range(claim.before_offsets[op], claim.before_offsets[op + 1]):
            maker = claim.before[e]
            if status[maker] == LATER:
                may_join = False
            elif status[maker] == UNDECIDED:
                missing += 1
                longest = max(longest, scratch.longest[maker])
        scratch.longest[op] = longest + claim.work[op]
        if may_join and scratch.longest[op] <= limits.ticks:
            status[op] = UNDECIDED
            scratch.missing[op] = missing
            scratch.window[window] = op
            window += 1
            open_work += claim.work[op]
            open_params += claim.param_bytes[op]
        else:
            rest += claim.work[op]
            rest_weight += claim.weight[op]
            rest_params += claim.param_bytes[op]
            for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
                left_readers[claim.read[e]] += 1
    for tensor in range(len(left_readers)):
        if left_readers[tensor] > 0:
            maker_status = status[claim.maker[tensor]]
            if maker_status == STAGE:
                cost += claim.transfer[tensor]
            if maker_status <= STAGE:
                rest += claim.owed[tensor]
    entries = 0
    for i in range(window - 1, -1, -1):
        if scratch.missing[scratch.window[i]] == 0:
            scratch.listed[entries] = scratch.window[i]
            scratch.below[entries] = entries - 1
            entries += 1
    scratch.state[WINDOW] = window
    nodes[0, COST], nodes[0, PARAMS], nodes[0, PEAK], nodes[0, OPS] = cost, params, peak, joined
    nodes[0, REST], nodes[0, REST_PARAMS] = rest, rest_params
    nodes[0, WEIGHT], nodes[0, REST_WEIGHT] = weight, rest_weight
    nodes[0, OPEN_WORK], nodes[0, OPEN_PARAMS] = open_work, open_params
    nodes[0, READY], nodes[0, ENTRIES] = entries - 1, entries
    nodes[0, TRAILED], nodes[0, COUNTED], nodes[0, PASSED] = 0, 0, 0
    return bool(_may_go_on(claim, limits, nodes, 0, level))


@subroutine
def _join(claim: ClaimArrays, scratch: Scratch, nodes: Int64Array, op: int, depth: int) -> None:
    """Add the ready op on top of the list to the stage."""
    parent = depth - 1
    cost, rest = nodes[parent, COST] + claim.work[op], nodes[parent, REST]
    scratch.status[op] = STAGE
    scratch.inside[op >> 6] |= np.uint64(1) << np.uint64(op & 63)
    for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
        tensor = claim.read[e]
        if scratch.joined_readers[tensor] == 0 and scratch.status[claim.maker[tensor]] == BEFORE:
            cost += claim.transfer[tensor]
        scratch.joined_readers[tensor] += 1
    for e in range(claim.made_offsets[op], claim.made_offsets[op + 1]):
        tensor = claim.made[e]
        if scratch.left_readers[tensor] > 0:
            cost += claim.transfer[tensor]
            rest += claim.owed[tensor]
    ready, entries = np.int64(scratch.below[nodes[parent, READY]]), nodes[parent, ENTRIES]
    for e in range(claim.after_offsets[op], claim.after_offsets[op + 1]):
        reader = claim.after[e]
        scratch.missing[reader] -= 1
        if scratch.missing[reader] == 0 and scratch.status[reader] == UNDECIDED:
            scratch.listed[entries] = reader
            scratch.below[entries] = ready
            ready = entries
            entries += 1
    nodes[depth, COST], nodes[depth, REST] = cost, rest
    nodes[depth, WEIGHT] = nodes[parent, WEIGHT] + claim.weight[op]
    nodes[depth, REST_WEIGHT] = nodes[parent, REST_WEIGHT]
    nodes[depth, PARAMS] = nodes[parent, PARAMS] + claim.param_bytes[op]
    nodes[depth, PEAK] = max(nodes[parent, PEAK], claim.least_peak[op])
    nodes[depth, OPS] = nodes[parent, OPS] + 1
    nodes[depth, REST_PARAMS] = nodes[parent, REST_PARAMS]
    nodes[depth, OPEN_WORK] = nodes[parent, OPEN_WORK] - claim.work[op]
    nodes[depth, OPEN_PARAMS] = nodes[parent, OPEN_PARAMS] - claim.param_bytes[op]
    nodes[depth, READY], nodes[depth, ENTRIES] = ready, entries
    nodes[depth, TRAILED], nodes[depth, COUNTED] = nodes[parent, TRAILED], nodes[parent, COUNTED]
    nodes[depth, PASSED] = nodes[parent, PASSED]


@subroutine
def _unjoin(claim: ClaimArrays, scratch: Scratch, op: int) -> None:
    """Undo :func:`_join`."""
    scratch.status[op] = UNDECIDED
    scratch.inside[op >> 6] &= ~(np.uint64(1) << np.uint64(op & 63))
    for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
        scratch.joined_readers[claim.read[e]] -= 1
    for e in range(claim.after_offsets[op], claim.after_offsets[op + 1]):
        scratch.missing[claim.after[e]] += 1


@subroutine
def _leave(
    claim: ClaimArrays, limits: Limits, scratch: Scratch, nodes: Int64Array, op: int, depth: int, level: int
) -> None:
    """Leave the ready op on top of the list to later stages, and all undecided ops that wait for it.

    Stops in the middle once that is too much.
    """
    parent = depth - 1
    cost, rest, rest_params = nodes[parent, COST], nodes[parent, REST], nodes[parent, REST_PARAMS]
    open_work, open_params = nodes[parent, OPEN_WORK], nodes[parent, OPEN_PARAMS]
    rest_weight = nodes[parent, REST_WEIGHT]
    counted = nodes[parent, TRAILED]
    trailed = counted + 1
    scratch.trail[counted] = op
    scratch.status[op] = LATER
    while counted < trailed:
        left = scratch.trail[counted]
        counted += 1
        rest += claim.work[left]
        rest_weight += claim.weight[left]
        rest_params += claim.param_bytes[left]
        open_work -= claim.work[left]
        open_params -= claim.param_bytes[left]
        for e in range(claim.read_offsets[left], claim.read_offsets[left + 1]):
            tensor = claim.read[e]
            if scratch.left_readers[tensor] == 0:
                maker_status = scratch.status[claim.maker[tensor]]
                if maker_status == STAGE:
                    cost += claim.transfer[tensor]
                if maker_status <= STAGE:
                    rest += claim.owed[tensor]
            scratch.left_readers[tensor] += 1
        if cost > limits.ticks or rest > claim.rest_ticks[level] or rest_weight > claim.rest_weight[level]:
            break
        for e in range(claim.after_offsets[left], claim.after_offsets[left + 1]):
            reader = claim.after[e]
            if scratch.status[reader] == UNDECIDED:
                scratch.status[reader] = LATER
                scratch.trail[trailed] = reader
                trailed += 1
    nodes[depth, COST], nodes[depth, REST] = cost, rest
    nodes[depth, PARAMS], nodes[depth, PEAK], nodes[depth, OPS] = (
        nodes[parent, PARAMS],
        nodes[parent, PEAK],
        nodes[parent, OPS],
    )
    nodes[depth, REST_PARAMS] = rest_params
    nodes[depth, WEIGHT], nodes[depth, REST_WEIGHT] = nodes[parent, WEIGHT], rest_weight
    nodes[depth, OPEN_WORK], nodes[depth, OPEN_PARAMS] = open_work, open_params
    nodes[depth, READY], nodes[depth, ENTRIES] = scratch.below[nodes[parent, READY]], nodes[parent, ENTRIES]
    nodes[depth, TRAILED], nodes[depth, COUNTED] = trailed, counted
    scratch.passed[nodes[parent, PASSED]] = op
    nodes[depth, PASSED] = nodes[parent, PASSED] + 1


@subroutine
def _unleave(claim: ClaimArrays, scratch: Scratch, nodes: Int64Array, depth: int) -> None:
    """Undo :func:`_leave`."""
    for i in range(nodes[depth - 1, TRAILED], nodes[depth, TRAILED]):
        left = scratch.trail[i]
        scratch.status[left] = UNDECIDED
        if i < nodes[depth, COUNTED]:
            for e in range(claim.read_offsets[left], claim.read_offsets[left + 1]):
                scratch.left_readers[claim.read[e]] -= 1


@subroutine
def _fits_anyway(claim: ClaimArrays, limits: Limits, scratch: Scratch, nodes: Int64Array, op: int, depth: int) -> bool:
    """Tell whether a ready op that was left fits into the stage, whatever else may still join it.

    Every transfer that such a stage might pay is added up, some of them more than once.
    """
    status = scratch.status
    most = nodes[depth, COST] + nodes[depth, OPEN_WORK] + claim.work[op]
    held = nodes[depth, PARAMS] + nodes[depth, OPEN_PARAMS] + claim.param_bytes[op] + limits.reserve
    most += overflow(held, limits)
    if most > limits.ticks:
        return False
    for i in range(-1, scratch.state[WINDOW]):
        joining = op if i < 0 else scratch.window[i]
        if i >= 0 and status[joining] != UNDECIDED:
            continue
        for e in range(claim.read_offsets[joining], claim.read_offsets[joining + 1]):
            tensor = claim.read[e]
            maker_status = status[claim.maker[tensor]]
            already = scratch.joined_readers if maker_status == BEFORE else scratch.left_readers
            if maker_status <= STAGE and already[tensor] == 0:
                most += claim.transfer[tensor]
        for e in range(claim.made_offsets[joining], claim.made_offsets[joining + 1]):
            most += claim.transfer[claim.made[e]]
        if most > limits.ticks:
            return False
    return True


@subroutine
def accepted(
    claim: ClaimArrays, limits: Limits, ground: GroundArrays, scratch: Scratch, nodes: Int64Array, depth: int
) -> bool:
    """Tell whether the stage, all being decided, is within its limits and no op that was left could be added to it.

    That *fit* holds has been seen on the way. An op is ready, of those outside, only if it was left as such: what
    waits for one that was left is not, and what was left from the beginning costs too much if it is.
    """
    if nodes[depth, OPS] == 0:
        return False
    if limits.counted or len(claim.shared) > 0:
        peak = peak_of(ground, scratch, STAGE) if limits.counted else limits.reserve
        if nodes[depth, COST] + memory_ticks(nodes[depth, PARAMS], peak, STAGE, claim, limits, scratch) > limits.ticks:
            return False
    for i in range(nodes[depth, PASSED]):
        op = scratch.passed[i]
        if not claim.giver[op]:
            continue
        cost = nodes[depth, COST] + claim.work[op]
        for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
            tensor = claim.read[e]
            if scratch.status[claim.maker[tensor]] == BEFORE:
                if scratch.joined_readers[tensor] == 0:
                    cost += claim.transfer[tensor]
            elif scratch.left_readers[tensor] == 1:
                cost -= claim.transfer[tensor]
        for e in range(claim.made_offsets[op], claim.made_offsets[op + 1]):
            cost += claim.transfer[claim.made[e]]
        held = nodes[depth, PARAMS] + claim.param_bytes[op] + limits.reserve
        if cost + overflow(held, limits) <= limits.ticks:
            return False
    return True


@subroutine
def memory_ticks(params: int, peak: int, wanted: int, claim: ClaimArrays, limits: Limits, scratch: Scratch) -> int:
    """Return what the ops of one status, with so many parameters of their own, pay for the memory of a stage.

    More than any limit if they may not be a stage. What several ops read counts whole where the claim says so.
    """
    held = params + peak
    kept = 0
    for i in range(len(claim.shared)):
        home = claim.shared[i, 1]
        if home >= 0 and scratch.status[home] == wanted:
            continue
        for e in range(claim.shared_offsets[i], claim.shared_offsets[i + 1]):
            if scratch.status[claim.shared_readers[e]] == wanted:
                if home >= 0:
                    held += claim.shared[i, 0]
                else:
                    kept += claim.shared[i, 0]
                break
    if held + kept > limits.most_bytes:
        return NEVER
    return int(overflow(held, limits))


@kernel
def overflow(held: int, limits: Limits) -> int:
    """Return what a stage that needs that many bytes pays for it, more than any limit if it may not be.

    The product of bytes and ticks per second is built up bit by bit, divided at once: it would not fit into 64 bits.
    """
    if held > limits.most_bytes:
        return NEVER
    if held <= limits.fast_bytes:
        return 0
    excess = (held - limits.fast_bytes) * limits.parts
    whole, part = excess // limits.bandwidth, excess % limits.bandwidth
    ticks = 0
    remainder = 0
    for bit in range(_TICKS_PER_S_BITS - 1, -1, -1):
        ticks *= 2
        remainder *= 2
        if (_TICKS_PER_S >> bit) & 1:
            ticks += whole
            remainder += part
        while remainder >= limits.bandwidth:
            remainder -= limits.bandwidth
            ticks += 1
    return ticks + (1 if remainder > 0 else 0)


@subroutine
def peak_of(ground: GroundArrays, scratch: Scratch, wanted: int) -> int:
    """Return the most bytes live over the steps of all ops of one status, run in the graph's order."""
    first, last, touched, change = scratch.first, scratch.last, scratch.touched, scratch.change
    steps = 0
    for place in range(len(ground.op_at)):
        if scratch.status[ground.op_at[place]] == wanted:
            for e in range(ground.tensor_offsets[place], ground.tensor_offsets[place + 1]):
                tensor = ground.tensors[e]
                if touched[tensor] == 0:
                    first[tensor] = steps
                last[tensor] = steps
                touched[tensor] += 1
            change[steps] = 0
            steps += 1
    change[steps] = 0
    for tensor in range(len(touched)):
        if touched[tensor] > 0:
            leaves = scratch.status[ground.maker_op[tensor]] == wanted and touched[tensor] < ground.pins[tensor]
            change[first[tensor]] += ground.size[tensor]
            change[steps if leaves else last[tensor] + 1] -= ground.size[tensor]
            touched[tensor] = 0
    live = 0
    peak = 0
    for step in range(steps):
        live += change[step]
        peak = max(peak, live)
    return peak
