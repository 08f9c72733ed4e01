"""The search of all chains of downsets whose stages stay within a limit on devices that differ.

As :mod:`mtpp.solvers.downsets.kernels.downsets`, with two differences. A stage is made for each class of devices, in
its ticks. And a downset carries labels, each of which says which devices suffice for it: those that no other one of its
labels makes needless. Downsets are expanded by size, so that the labels of one are all there when its turn comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.downsets.downset_arrays import DownsetArrays
from mtpp.solvers.downsets.kernels.downset_layout import (
    AT,
    COST,
    DEPTH,
    DOWNSETS,
    ENDED,
    FOUND,
    FRAME,
    LAST,
    NEXT,
    OUT_OF_ROOM,
    OUT_OF_STEPS,
    PARAMS,
    PHASE,
    STEPS,
    TOTAL_PARAMS,
)
from mtpp.solvers.downsets.kernels.downset_store import keep_downset
from mtpp.solvers.downsets.kernels.stages import next_stage, peak_of_stage, unpack
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.kernels.device_labels import no_more, room_after, step
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, NO_MEMORY, RESERVE_BYTES, GroundArrays, MemoryArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, stage_ticks
from mtpp.solvers.unequal.kernels.register_layout import CLASS, DUE, LABELS, SIZE

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetScratch
    from mtpp.solvers.orders.device_labels import LabelRules
    from mtpp.solvers.unequal.unequal_arrays import ClassArrays, LabelPool, UnequalStore


@kernel
def search_unequal(
    classes: ClassArrays,
    ground: GroundArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    scratch: DownsetScratch,
    registers: Int64Array,
    limit: int,
    last_step: int,
) -> int:
    """Look for a partition whose stages cost at most *limit* ticks each on devices that the rules allow.

    Two rules leave labels and downsets out, without loss:

    *fit*: what comes after a downset, D, has to fit into the devices that its label leaves. Take the ticks of one class
    as the measure of work: a device holds at most so much of it within the limit, and loses at least ``owed`` of that
    for each tensor from D that it is the first to read. That has to hold in the ticks of every class; and the devices
    have to hold the parameters.

    *maximal*: as in :func:`mtpp.solvers.downsets.kernels.downsets.search_downsets`, for ops that can always leave their
    stage on a device of any class.

    Parameters
    ----------
    store, pool
        Hold the empty downset and its label at the beginning.
    registers
        One downset and one label, the total of parameters, and zeros else at the beginning.

    Returns
    -------
    :data:`ENDED`: there is none. :data:`FOUND`: ``registers[LAST]`` is a label of all ops. Else the search goes on
    where it was when it is called again: after :data:`OUT_OF_ROOM` with a store and a pool of more capacity.
    """
    shared = classes.shared
    n = len(shared.work)
    class_count = len(classes.work)
    while registers[SIZE] < n:
        if registers[NEXT] < 0:
            registers[SIZE] += 1
            registers[NEXT] = store.of_size[registers[SIZE]]
            registers[CLASS] = 0
            continue
        base = registers[NEXT]
        if registers[CLASS] == class_count:
            registers[NEXT] = store.following[base]
            registers[CLASS] = 0
            continue
        c = registers[CLASS]
        arrays = DownsetArrays(
            classes.work[c],
            shared.param_bytes,
            classes.transfer[c],
            shared.producer,
            shared.consumer_offsets,
            shared.consumers,
            shared.read_offsets,
            shared.read,
            shared.made_offsets,
            shared.made,
            shared.successor_offsets,
            shared.successors,
            shared.predecessor_offsets,
            shared.predecessors,
            classes.owed[c],
            shared.giver,
            classes.most_cost[c],
            shared.key,
            MemoryArrays(shared.memory.mode, classes.figures[c]),
        )
        if registers[DEPTH] == 0:
            room = _largest_room(store.front[base], c, pool, rules)
            if room < 0:
                registers[CLASS] += 1
                continue
            registers[DUE] = classes.total[c] - store.work[base, c] - room
            unpack(store.bits[base], limit, arrays, scratch, registers)
        while True:
            labels = registers[LABELS] + _label_count(base, store, pool)
            if registers[DOWNSETS] == len(store.keys) or labels > len(pool.label):
                return OUT_OF_ROOM
            code = next_stage(registers[DUE], limit, last_step, arrays, scratch, registers)
            if code == OUT_OF_STEPS:
                return OUT_OF_STEPS
            if code == ENDED:
                break
            if _end_stage(base, c, limit, arrays, classes, ground, rules, store, pool, scratch, registers):
                return FOUND
        registers[CLASS] += 1
    return ENDED


@subroutine
def _largest_room(first: int, c: int, pool: LabelPool, rules: LabelRules) -> int:
    """Return the most work that fits after one more stage of class *c* on any of a chain of labels; −1: none can be."""
    most = -1
    at = first
    while at >= 0:
        label = step(pool.label[at], c, rules)
        if label >= 0:
            most = max(most, room_after(label, c, rules))
        at = pool.following[at]
    return most


@subroutine
def _label_count(base: int, store: UnequalStore, pool: LabelPool) -> int:
    """Return the number of labels of a downset."""
    count = 0
    at = store.front[base]
    while at >= 0:
        count += 1
        at = pool.following[at]
    return count


@subroutine
def _end_stage(
    base: int,
    c: int,
    limit: int,
    arrays: DownsetArrays,
    classes: ClassArrays,
    ground: GroundArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    scratch: DownsetScratch,
    registers: Int64Array,
) -> bool:
    """Give labels to the downset that the stage of the ops inside leads to; return whether it has one and all ops."""
    memory, frames, depth = arrays.memory, scratch.frames, registers[DEPTH]
    frame = depth * FRAME
    if memory.mode != NO_MEMORY:
        peak = memory.figures[EQUAL, RESERVE_BYTES]
        if memory.mode == IN_ORDER:
            peak = peak_of_stage(False, arrays, ground, scratch)
        if stage_ticks(frames[frame + COST], frames[frame + PARAMS], peak, EQUAL, memory) > limit:
            return False
    new = registers[DOWNSETS]
    store.bits[new, :] = store.bits[base]
    key = store.keys[base]
    joined = 0
    for d in range(1, depth):
        if frames[d * FRAME + PHASE] == 1:
            joined += 1
            v = scratch.open_ops[frames[d * FRAME + AT]]
            key ^= arrays.key[v]
            store.bits[new, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    if joined == 0:  # a stage has at least one op
        return False
    store.keys[new] = key
    reached = keep_downset(new, store)
    if reached == new:
        registers[DOWNSETS] += 1
        _measure(base, new, depth, classes, store, scratch)
        store.params[new] = store.params[base] + frames[frame + PARAMS]
        store.front[new] = -1
        size = registers[SIZE] + joined
        store.following[new] = store.of_size[size]
        store.of_size[size] = new
        registers[STEPS] += len(arrays.work) >> 5
    at = store.front[base]
    while at >= 0:
        label = step(pool.label[at], c, rules)
        if label >= 0 and _fits(reached, label, classes, rules, store, registers):
            kept = _keep_label(label, at, reached, c, rules, store, pool, registers)
            if kept and registers[SIZE] + joined == len(arrays.work):
                return True
        at = pool.following[at]
    return False


@subroutine
def _measure(
    base: int, new: int, depth: int, classes: ClassArrays, store: UnequalStore, scratch: DownsetScratch
) -> None:
    """Add up, by class, the work in a new downset and what is owed for the tensors from it; O(classes · (n + m))."""
    shared, frames = classes.shared, scratch.frames
    for c in range(len(classes.work)):
        work = store.work[base, c]
        for d in range(1, depth):
            if frames[d * FRAME + PHASE] == 1:
                work += classes.work[c, scratch.open_ops[frames[d * FRAME + AT]]]
        store.work[new, c] = work
        store.owed[new, c] = 0
    for t in range(len(shared.transfer)):
        if _inside(shared.producer[t], new, store):
            for e in range(shared.consumer_offsets[t], shared.consumer_offsets[t + 1]):
                if not _inside(shared.consumers[e], new, store):
                    for c in range(len(classes.work)):
                        store.owed[new, c] += classes.owed[c, t]
                    break


@subroutine
def _inside(v: int, downset: int, store: UnequalStore) -> bool:
    return bool((store.bits[downset, v >> 6] >> np.uint64(v & 63)) & np.uint64(1))


@subroutine
def _fits(
    downset: int, label: int, classes: ClassArrays, rules: LabelRules, store: UnequalStore, registers: Int64Array
) -> bool:
    """Return whether the devices that a label leaves can hold what is after a downset, as *fit* measures it."""
    count = len(classes.work)
    for c in range(count):
        rest = classes.total[c] - store.work[downset, c] + store.owed[downset, c]
        if rest > room_after(label, c, rules):
            return False
    return bool(registers[TOTAL_PARAMS] - store.params[downset] <= room_after(label, count, rules))


@subroutine
def _keep_label(
    label: int,
    parent: int,
    downset: int,
    c: int,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    registers: Int64Array,
) -> bool:
    """Add a label to those of a downset, unless one of them makes it needless; drop those that it makes needless."""
    before = -1
    at = store.front[downset]
    while at >= 0:
        if no_more(pool.label[at], label, rules.guards):
            return False
        if no_more(label, pool.label[at], rules.guards):
            if before < 0:
                store.front[downset] = pool.following[at]
            else:
                pool.following[before] = pool.following[at]
        else:
            before = at
        at = pool.following[at]
    new = registers[LABELS]
    registers[LABELS] += 1
    pool.label[new] = label
    pool.parent[new] = parent
    pool.owner[new] = downset
    pool.class_of[new] = c
    pool.following[new] = store.front[downset]
    store.front[downset] = new
    registers[LAST] = new
    return True
