"""Labels of downsets in searches over devices that differ: downsets reached, what fits after them, labels kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.downsets.kernels.downset_layout import (
    AT,
    DEPTH,
    DOWNSETS,
    FRAME,
    LAST,
    NEXT,
    PARAMS,
    PHASE,
    STEPS,
    TOTAL_PARAMS,
)
from mtpp.solvers.downsets.kernels.downset_store import keep_downset
from mtpp.solvers.jit import subroutine
from mtpp.solvers.orders.kernels.device_labels import no_more, room_after
from mtpp.solvers.unequal.kernels.register_layout import BEST, CLASS, LABELS, SIZE, SPENT, THOROUGH

if TYPE_CHECKING:
    from mtpp.array_types import Int32Array, Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetScratch
    from mtpp.solvers.orders.device_labels import LabelRules
    from mtpp.solvers.unequal.neighbour_arrays import NeighbourPool
    from mtpp.solvers.unequal.unequal_arrays import ClassArrays, LabelPool, UnequalStore


@subroutine
def next_turn(
    op_count: int, class_count: int, of_size: Int32Array, following: Int32Array, registers: Int64Array
) -> bool:
    """Move to the next downset, by size, and class of devices to go on with; return False where all are done."""
    while registers[SIZE] < op_count:
        if registers[NEXT] < 0:
            registers[SIZE] += 1
            registers[NEXT] = of_size[registers[SIZE]]
            registers[CLASS] = 0
        elif registers[CLASS] == class_count:
            registers[NEXT] = following[registers[NEXT]]
            registers[CLASS] = 0
        else:
            return True
    return False


@subroutine
def is_full(base: int, store: UnequalStore, pool: LabelPool | NeighbourPool, registers: Int64Array) -> bool:
    """Return whether there is no room for one more downset, with a label for each of those of *base*."""
    labels = registers[LABELS]
    at = store.front[base]
    while at >= 0:
        labels += 1
        at = pool.following[at]
    return bool(registers[DOWNSETS] == len(store.keys) or labels > len(pool.label))


@subroutine
def finished(spent: int, registers: Int64Array) -> bool:
    """Return whether the search may end with the label of all ops just kept; else only better ones are looked for."""
    if not registers[THOROUGH]:
        return True
    registers[BEST] = registers[LAST]
    registers[SPENT] = spent - 1
    return bool(spent == 0)


@subroutine
def reached_downset(
    base: int, classes: ClassArrays, store: UnequalStore, scratch: DownsetScratch, registers: Int64Array
) -> tuple[int, int]:
    """Return the downset that the stage of the ops inside leads to, and how many these are; 0, 0 if there are none.

    A downset that is new has no labels.
    """
    frames, depth, new = scratch.frames, registers[DEPTH], registers[DOWNSETS]
    store.bits[new, :] = store.bits[base]
    key = store.keys[base]
    joined = 0
    for d in range(1, depth):
        if frames[d * FRAME + PHASE] == 1:
            joined += 1
            v = scratch.open_ops[frames[d * FRAME + AT]]
            key ^= classes.shared.key[v]
            store.bits[new, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    if joined == 0:
        return 0, 0
    store.keys[new] = key
    reached = keep_downset(new, store)
    if reached == new:
        registers[DOWNSETS] += 1
        _measure(base, new, depth, classes, store, scratch)
        store.params[new] = store.params[base] + frames[depth * FRAME + PARAMS]
        store.front[new] = -1
        size = registers[SIZE] + joined
        store.following[new] = store.of_size[size]
        store.of_size[size] = new
        registers[STEPS] += len(classes.shared.work) >> 5
    return reached, joined


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
    rest, priced = store.rest[base, 0], store.rest[base, 2]
    for d in range(1, depth):
        if frames[d * FRAME + PHASE] == 1:
            rest -= classes.least_work[scratch.open_ops[frames[d * FRAME + AT]]]
            priced -= classes.priced[scratch.open_ops[frames[d * FRAME + AT]]]
    store.rest[new, 0] = rest
    store.rest[new, 2] = priced
    for t in range(len(shared.transfer)):
        if inside(shared.producer[t], new, store):
            for e in range(shared.consumer_offsets[t], shared.consumer_offsets[t + 1]):
                if not inside(shared.consumers[e], new, store):
                    for c in range(len(classes.work)):
                        store.owed[new, c] += classes.owed[c, t]
                    rest += classes.least_transfer[t]
                    break
    store.rest[new, 1] = rest


@subroutine
def inside(v: int, downset: int, store: UnequalStore) -> bool:
    """Return whether an op is in a downset."""
    return bool((store.bits[downset, v >> 6] >> np.uint64(v & 63)) & np.uint64(1))


@subroutine
def fits(
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
def keep_label(
    label: int,
    parent: int,
    downset: int,
    c: int,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    registers: Int64Array,
) -> bool:
    """Do as :func:`keep_spent_label` where latency does not count."""
    return keep_spent_label(label, 0, parent, downset, c, rules, store, pool, registers)


@subroutine
def keep_spent_label(
    label: int,
    spent: int,
    parent: int,
    downset: int,
    c: int,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    registers: Int64Array,
) -> bool:
    """Add a label to those of a downset, unless one of them makes it needless; drop those that it makes needless.

    One that needs no more devices makes another one needless if no more latency is spent for it.
    """
    before = -1
    at = store.front[downset]
    while at >= 0:
        if pool.spent[at] <= spent and no_more(pool.label[at], label, rules.guards):
            return False
        drop = spent <= pool.spent[at] and no_more(label, pool.label[at], rules.guards)
        before = drop_label(at, before, downset, store, pool) if drop else at
        at = pool.following[at]
    add_label(label, spent, parent, downset, c, store, pool, registers)
    return True


@subroutine
def drop_label(at: int, before: int, downset: int, store: UnequalStore, pool: LabelPool | NeighbourPool) -> int:
    """Take a label out of the chain of its downset, in which *before* comes before it, −1 for none; return *before*."""
    if before < 0:
        store.front[downset] = pool.following[at]
    else:
        pool.following[before] = pool.following[at]
    return before


@subroutine
def add_label(
    label: int,
    spent: int,
    parent: int,
    downset: int,
    c: int,
    store: UnequalStore,
    pool: LabelPool | NeighbourPool,
    registers: Int64Array,
) -> int:
    """Put a label first in the chain of its downset; return its number."""
    new = registers[LABELS]
    registers[LABELS] += 1
    pool.label[new] = label
    pool.parent[new] = parent
    pool.owner[new] = downset
    pool.class_of[new] = c
    pool.spent[new] = spent
    pool.following[new] = store.front[downset]
    store.front[downset] = new
    registers[LAST] = new
    return int(new)
