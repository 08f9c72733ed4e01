"""The search over downsets that re-checks a proof: stages grow by ops that are ready, and both sides are added up.

What is searched for, and why its rules are sound, stands in :mod:`mtpp.solvers.recheck_plain`. From one downset D, a
stage grows from nothing. An op is *ready* once all that it reads from is in D or in the stage. Of the ready ops, the
one that became so last either joins the stage or is left to later ones, with all that waits for it. Each way to decide
ends at another downset E, so none is met twice. On the way

* the *cost* of the stage only grows: by the work of ops that join, by what they read from D, and by what they make and
  an op that was left reads;
* the *rest* only grows: by the work of ops that are left, and by what they read from D or from the stage;
* the work that is undecided will be in one of the two, so the sum of all three only grows, by transfers.

A way ends where one of them is more than *fit* and the limit of a stage allow, or the parameters on either side are. It
also ends where an op that could be added for nothing has been left, and fits beside all that may still join: no E that
it leads to is *maximal*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.kernels.jit import inlined, kernel
from mtpp.solvers.kernels.recheck_store import REACHED, reach

if TYPE_CHECKING:
    from mtpp.solvers.recheck_arrays import ClaimArrays, GroundArrays, Limits, Nodes, Scratch, Store

DONE, PAUSED, FULL, FALSE = 0, 1, 2, 3
"""How the search returns: it is through; its steps are; the store is; there is a partition within the limit."""

NEXT, PAIRS, PHASE, DEPTH, WINDOW = 0, 2, 3, 4, 5
"""Places of the search's state: downsets taken, pairs accepted; phase, decisions and window of the current one."""

UNLIMITED_BYTES = 2**62 - 1
"""Stands for a memory that nothing can fill."""

_OPEN, _DOWN, _BACK = 0, 1, 2
_BEFORE, _STAGE, _UNDECIDED, _LATER = 0, 1, 2, 3  # an op of the next downset is at most _STAGE
_JOINED, _LEFT = 0, 1
_NEVER = 2**62
_TICKS_PER_S = 10**12
_TICKS_PER_S_BITS = 40


@kernel
def search_again(
    claim: ClaimArrays,
    limits: Limits,
    ground: GroundArrays,
    store: Store,
    scratch: Scratch,
    nodes: Nodes,
    steps: int,
) -> int:
    """Go on with a search for a number of steps.

    Returns
    -------
    :data:`DONE`; :data:`PAUSED` or :data:`FULL`, to be called again, with a larger store for the latter; or
    :data:`FALSE`: all outside the downset that was reached last may be one stage.

    Notes
    -----
    O(n + pins) time per downset, which counts as n steps, and O(degree) per decision; for decisions after which
    *maximal* may fail whatever follows, the pins of all undecided ops.
    """
    state = scratch.state
    words = store.sets.shape[1]
    current = state[NEXT] - 1
    phase = state[PHASE]
    depth = state[DEPTH]
    outcome = -1
    while outcome < 0:
        if steps <= 0:
            outcome = PAUSED
        elif state[REACHED] == len(store.level):
            outcome = FULL
        elif phase == _OPEN:
            if state[NEXT] == state[REACHED] or store.level[state[NEXT]] > limits.last_level:
                outcome = DONE
            else:
                current = state[NEXT]
                state[NEXT] += 1
                steps -= len(scratch.status)
                if _begin(claim, limits, store, scratch, nodes, current):
                    phase = _DOWN
        elif phase == _DOWN and nodes.ready[depth] >= 0:
            op = scratch.listed[nodes.ready[depth]]
            depth += 1
            nodes.op[depth] = op
            nodes.kind[depth] = _JOINED
            _join(claim, scratch, nodes, op, depth)
            if not _may_go_on(claim, limits, nodes, depth, store.level[current]):
                phase = _BACK
        elif phase == _DOWN:
            phase = _BACK
            if _accepted(claim, limits, ground, scratch, nodes, depth):
                state[PAIRS] += 1
                if reach(store, scratch, words, store.level[current] + 1):
                    peak = _peak(ground, scratch, _LATER) if limits.counted else limits.reserve
                    ticks = _overflow(nodes.rest_params[depth] + peak, limits)
                    if nodes.rest[depth] + ticks <= limits.ticks:
                        outcome = FALSE
        elif depth == 0:
            phase = _OPEN
        else:
            op = nodes.op[depth]
            if nodes.kind[depth] == _JOINED:
                _unjoin(claim, scratch, op)
                nodes.kind[depth] = _LEFT
                _leave(claim, limits, scratch, nodes, op, depth, store.level[current])
                if _may_go_on(claim, limits, nodes, depth, store.level[current]) and not (
                    claim.giver[op] and _fits_anyway(claim, limits, scratch, nodes, op, depth)
                ):
                    phase = _DOWN
            else:
                _unleave(claim, scratch, nodes, depth)
                depth -= 1
        steps -= 1
    state[PHASE] = phase
    state[DEPTH] = depth
    return outcome


@kernel
def _overflow(held: int, limits: Limits) -> int:
    """Return what a stage that needs that many bytes pays for it, more than any limit if it may not be.

    The product of bytes and ticks per second is built up bit by bit, divided at once: it would not fit into 64 bits.
    """
    if held > limits.most_bytes:
        return _NEVER
    if held <= limits.fast_bytes:
        return 0
    excess = held - limits.fast_bytes
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


@inlined
def _may_go_on(claim: ClaimArrays, limits: Limits, nodes: Nodes, depth: int, level: int) -> bool:
    """Tell whether what is decided leaves both sides within what they may be."""
    cost, rest = nodes.cost[depth], nodes.rest[depth]
    if cost > limits.ticks or rest > claim.rest_ticks[level] or nodes.rest_params[depth] > claim.rest_bytes[level]:
        return False
    if cost + rest + nodes.open_work[depth] > limits.ticks + claim.rest_ticks[level]:
        return False
    return cost + _overflow(nodes.params[depth] + nodes.peak[depth], limits) <= limits.ticks


@kernel
def _begin(claim: ClaimArrays, limits: Limits, store: Store, scratch: Scratch, nodes: Nodes, downset: int) -> bool:
    """Set up the search from one downset; return whether there is anything to decide.

    Ops join at once that have too much work behind them for the stages to come, and are left at once if the work of
    the longest way to them is too much: the cost of no stage with such an op is within the limit.
    """
    status, joined_readers, left_readers = scratch.status, scratch.joined_readers, scratch.left_readers
    level = store.level[downset]
    n = len(status)
    for word in range(store.sets.shape[1]):
        scratch.inside[word] = store.sets[downset, word]
    for op in range(n):
        is_before = (store.sets[downset, op >> 6] >> np.uint64(op & 63)) & np.uint64(1)
        status[op] = _BEFORE if is_before else _LATER
    joined_readers[:] = 0
    left_readers[:] = 0
    cost = 0
    params = 0
    peak = limits.reserve
    joined = 0
    for i in range(n):
        op = claim.order[i]
        if claim.following[op] <= claim.rest_ticks[level]:
            break
        if status[op] != _BEFORE:
            status[op] = _STAGE
            scratch.inside[op >> 6] |= np.uint64(1) << np.uint64(op & 63)
            joined += 1
            params += claim.param_bytes[op]
            peak = max(peak, claim.least_peak[op])
            cost += claim.work[op]
            for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
                tensor = claim.read[e]
                if status[claim.maker[tensor]] == _BEFORE and joined_readers[tensor] == 0:
                    cost += claim.transfer[tensor]
                joined_readers[tensor] += 1
    rest = 0
    rest_params = 0
    open_work = 0
    open_params = 0
    window = 0
    for i in range(n):
        op = claim.order[i]
        if status[op] != _LATER:
            continue
        longest = cost
        missing = 0
        may_join = True
        for e in range(claim.before_offsets[op], claim.before_offsets[op + 1]):
            maker = claim.before[e]
            if status[maker] == _LATER:
                may_join = False
            elif status[maker] == _UNDECIDED:
                missing += 1
                longest = max(longest, scratch.longest[maker])
        scratch.longest[op] = longest + claim.work[op]
        if may_join and scratch.longest[op] <= limits.ticks:
            status[op] = _UNDECIDED
            scratch.missing[op] = missing
            scratch.window[window] = op
            window += 1
            open_work += claim.work[op]
            open_params += claim.param_bytes[op]
        else:
            rest += claim.work[op]
            rest_params += claim.param_bytes[op]
            for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
                left_readers[claim.read[e]] += 1
    for tensor in range(len(left_readers)):
        if left_readers[tensor] > 0:
            maker_status = status[claim.maker[tensor]]
            if maker_status == _STAGE:
                cost += claim.transfer[tensor]
            if maker_status <= _STAGE:
                rest += claim.transfer[tensor]
    entries = 0
    for i in range(window - 1, -1, -1):
        if scratch.missing[scratch.window[i]] == 0:
            scratch.listed[entries] = scratch.window[i]
            scratch.below[entries] = entries - 1
            entries += 1
    scratch.state[WINDOW] = window
    nodes.cost[0], nodes.params[0], nodes.peak[0], nodes.ops[0] = cost, params, peak, joined
    nodes.rest[0], nodes.rest_params[0] = rest, rest_params
    nodes.open_work[0], nodes.open_params[0] = open_work, open_params
    nodes.ready[0], nodes.entries[0] = entries - 1, entries
    nodes.trailed[0], nodes.counted[0], nodes.passed[0] = 0, 0, 0
    return bool(_may_go_on(claim, limits, nodes, 0, level))


@inlined
def _join(claim: ClaimArrays, scratch: Scratch, nodes: Nodes, op: int, depth: int) -> None:
    """Add the ready op on top of the list to the stage."""
    parent = depth - 1
    cost, rest = nodes.cost[parent] + claim.work[op], nodes.rest[parent]
    scratch.status[op] = _STAGE
    scratch.inside[op >> 6] |= np.uint64(1) << np.uint64(op & 63)
    for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
        tensor = claim.read[e]
        if scratch.joined_readers[tensor] == 0 and scratch.status[claim.maker[tensor]] == _BEFORE:
            cost += claim.transfer[tensor]
        scratch.joined_readers[tensor] += 1
    for e in range(claim.made_offsets[op], claim.made_offsets[op + 1]):
        tensor = claim.made[e]
        if scratch.left_readers[tensor] > 0:
            cost += claim.transfer[tensor]
            rest += claim.transfer[tensor]
    ready, entries = np.int64(scratch.below[nodes.ready[parent]]), nodes.entries[parent]
    for e in range(claim.after_offsets[op], claim.after_offsets[op + 1]):
        reader = claim.after[e]
        scratch.missing[reader] -= 1
        if scratch.missing[reader] == 0 and scratch.status[reader] == _UNDECIDED:
            scratch.listed[entries] = reader
            scratch.below[entries] = ready
            ready = entries
            entries += 1
    nodes.cost[depth], nodes.rest[depth] = cost, rest
    nodes.params[depth] = nodes.params[parent] + claim.param_bytes[op]
    nodes.peak[depth] = max(nodes.peak[parent], claim.least_peak[op])
    nodes.ops[depth] = nodes.ops[parent] + 1
    nodes.rest_params[depth] = nodes.rest_params[parent]
    nodes.open_work[depth] = nodes.open_work[parent] - claim.work[op]
    nodes.open_params[depth] = nodes.open_params[parent] - claim.param_bytes[op]
    nodes.ready[depth], nodes.entries[depth] = ready, entries
    nodes.trailed[depth], nodes.counted[depth] = nodes.trailed[parent], nodes.counted[parent]
    nodes.passed[depth] = nodes.passed[parent]


@inlined
def _unjoin(claim: ClaimArrays, scratch: Scratch, op: int) -> None:
    """Undo :func:`_join`."""
    scratch.status[op] = _UNDECIDED
    scratch.inside[op >> 6] &= ~(np.uint64(1) << np.uint64(op & 63))
    for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
        scratch.joined_readers[claim.read[e]] -= 1
    for e in range(claim.after_offsets[op], claim.after_offsets[op + 1]):
        scratch.missing[claim.after[e]] += 1


@inlined
def _leave(claim: ClaimArrays, limits: Limits, scratch: Scratch, nodes: Nodes, op: int, depth: int, level: int) -> None:
    """Leave the ready op on top of the list to later stages, and all undecided ops that wait for it.

    Stops in the middle once that is too much.
    """
    parent = depth - 1
    cost, rest, rest_params = nodes.cost[parent], nodes.rest[parent], nodes.rest_params[parent]
    open_work, open_params = nodes.open_work[parent], nodes.open_params[parent]
    counted = nodes.trailed[parent]
    trailed = counted + 1
    scratch.trail[counted] = op
    scratch.status[op] = _LATER
    while counted < trailed:
        left = scratch.trail[counted]
        counted += 1
        rest += claim.work[left]
        rest_params += claim.param_bytes[left]
        open_work -= claim.work[left]
        open_params -= claim.param_bytes[left]
        for e in range(claim.read_offsets[left], claim.read_offsets[left + 1]):
            tensor = claim.read[e]
            if scratch.left_readers[tensor] == 0:
                maker_status = scratch.status[claim.maker[tensor]]
                if maker_status == _STAGE:
                    cost += claim.transfer[tensor]
                if maker_status <= _STAGE:
                    rest += claim.transfer[tensor]
            scratch.left_readers[tensor] += 1
        if cost > limits.ticks or rest > claim.rest_ticks[level]:
            break
        for e in range(claim.after_offsets[left], claim.after_offsets[left + 1]):
            reader = claim.after[e]
            if scratch.status[reader] == _UNDECIDED:
                scratch.status[reader] = _LATER
                scratch.trail[trailed] = reader
                trailed += 1
    nodes.cost[depth], nodes.rest[depth] = cost, rest
    nodes.params[depth], nodes.peak[depth], nodes.ops[depth] = (
        nodes.params[parent],
        nodes.peak[parent],
        nodes.ops[parent],
    )
    nodes.rest_params[depth] = rest_params
    nodes.open_work[depth], nodes.open_params[depth] = open_work, open_params
    nodes.ready[depth], nodes.entries[depth] = scratch.below[nodes.ready[parent]], nodes.entries[parent]
    nodes.trailed[depth], nodes.counted[depth] = trailed, counted
    scratch.passed[nodes.passed[parent]] = op
    nodes.passed[depth] = nodes.passed[parent] + 1


@inlined
def _unleave(claim: ClaimArrays, scratch: Scratch, nodes: Nodes, depth: int) -> None:
    """Undo :func:`_leave`."""
    for i in range(nodes.trailed[depth - 1], nodes.trailed[depth]):
        left = scratch.trail[i]
        scratch.status[left] = _UNDECIDED
        if i < nodes.counted[depth]:
            for e in range(claim.read_offsets[left], claim.read_offsets[left + 1]):
                scratch.left_readers[claim.read[e]] -= 1


@kernel
def _fits_anyway(claim: ClaimArrays, limits: Limits, scratch: Scratch, nodes: Nodes, op: int, depth: int) -> bool:
    """Tell whether a ready op that was left fits into the stage, whatever else may still join it.

    Every transfer that such a stage might pay is added up, some of them more than once.
    """
    status = scratch.status
    most = nodes.cost[depth] + nodes.open_work[depth] + claim.work[op]
    held = nodes.params[depth] + nodes.open_params[depth] + claim.param_bytes[op] + limits.reserve
    most += _overflow(held, limits)
    if most > limits.ticks:
        return False
    for i in range(-1, scratch.state[WINDOW]):
        joining = op if i < 0 else scratch.window[i]
        if i >= 0 and status[joining] != _UNDECIDED:
            continue
        for e in range(claim.read_offsets[joining], claim.read_offsets[joining + 1]):
            tensor = claim.read[e]
            maker_status = status[claim.maker[tensor]]
            already = scratch.joined_readers if maker_status == _BEFORE else scratch.left_readers
            if maker_status <= _STAGE and already[tensor] == 0:
                most += claim.transfer[tensor]
        for e in range(claim.made_offsets[joining], claim.made_offsets[joining + 1]):
            most += claim.transfer[claim.made[e]]
        if most > limits.ticks:
            return False
    return True


@kernel
def _accepted(
    claim: ClaimArrays, limits: Limits, ground: GroundArrays, scratch: Scratch, nodes: Nodes, depth: int
) -> bool:
    """Tell whether the stage, all being decided, is within its limits and no op that was left could be added to it.

    That *fit* holds has been seen on the way. An op is ready, of those outside, only if it was left as such: what
    waits for one that was left is not, and what was left from the beginning costs too much if it is.
    """
    if nodes.ops[depth] == 0:
        return False
    if limits.counted:
        held = nodes.params[depth] + _peak(ground, scratch, _STAGE)
        if nodes.cost[depth] + _overflow(held, limits) > limits.ticks:
            return False
    for i in range(nodes.passed[depth]):
        op = scratch.passed[i]
        if not claim.giver[op]:
            continue
        cost = nodes.cost[depth] + claim.work[op]
        for e in range(claim.read_offsets[op], claim.read_offsets[op + 1]):
            tensor = claim.read[e]
            if scratch.status[claim.maker[tensor]] == _BEFORE:
                if scratch.joined_readers[tensor] == 0:
                    cost += claim.transfer[tensor]
            elif scratch.left_readers[tensor] == 1:
                cost -= claim.transfer[tensor]
        for e in range(claim.made_offsets[op], claim.made_offsets[op + 1]):
            cost += claim.transfer[claim.made[e]]
        held = nodes.params[depth] + claim.param_bytes[op] + limits.reserve
        if cost + _overflow(held, limits) <= limits.ticks:
            return False
    return True


@kernel
def _peak(ground: GroundArrays, scratch: Scratch, wanted: int) -> int:
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
