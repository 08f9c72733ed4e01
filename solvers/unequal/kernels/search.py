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
    COST,
    DEPTH,
    ENDED,
    FOUND,
    FRAME,
    NEXT,
    OUT_OF_ROOM,
    OUT_OF_STEPS,
    PARAMS,
)
from mtpp.solvers.downsets.kernels.stages import held_by_stage, next_stage, peak_of_stage, unpack
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.kernels.device_labels import room_after, step
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, NO_MEMORY, RESERVE_BYTES, GroundArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, stage_ticks
from mtpp.solvers.unequal.kernels.class_arrays import arrays_of_class
from mtpp.solvers.unequal.kernels.labels import finished, fits, is_full, keep_spent_label, next_turn, reached_downset
from mtpp.solvers.unequal.kernels.register_layout import (
    CLASS,
    DUE,
    PAID,
    SCALE,
    SIZE,
    SPENT,
    UNCOUNTED,
)

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
        One downset and one label, the total of parameters, and zeros else at the beginning; and whether latency counts.
        Where it does, labels compare it too, and hold what is spent so far; with the least that the rest takes it has
        to stay within :data:`SPENT`. If the search is to be thorough that falls with each partition found, and the
        search goes on; the best is ``registers[BEST]``.

    Returns
    -------
    :data:`ENDED`: there is none. :data:`FOUND`: ``registers[LAST]`` is a label of all ops. Else the search goes on
    where it was when it is called again: after :data:`OUT_OF_ROOM` with a store and a pool of more capacity.
    """
    shared = classes.shared
    n = len(shared.work)
    class_count = len(classes.work)
    while next_turn(n, class_count, store.of_size, store.following, registers):
        base, c = registers[NEXT], registers[CLASS]
        arrays = arrays_of_class(c, classes)
        if registers[DEPTH] == 0:
            room = _largest_room(store.front[base], c, pool, rules)
            if room < 0:
                registers[CLASS] += 1
                continue
            registers[DUE] = classes.total[c] - store.work[base, c] - room
            registers[PAID] = _most_paid(base, c, limit, classes, store, pool, rules, registers)
            unpack(store.bits[base], registers[PAID], arrays, scratch, registers)
        while True:
            if is_full(base, store, pool, registers):
                return OUT_OF_ROOM
            code = next_stage(registers[DUE], registers[PAID], last_step, arrays, scratch, registers)
            if code == OUT_OF_STEPS:
                return OUT_OF_STEPS
            if code == ENDED:
                break
            if _end_stage(base, c, registers[PAID], arrays, classes, ground, rules, store, pool, scratch, registers):
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
def _most_paid(
    base: int,
    c: int,
    limit: int,
    classes: ClassArrays,
    store: UnequalStore,
    pool: LabelPool,
    rules: LabelRules,
    registers: Int64Array,
) -> int:
    """Return the most ticks of one more stage of class *c* that keep a label of a downset to the latency.

    All ops after the downset take their least work at least, also at prices. A stage pays more than that of its own
    ops, by no more than the latency leaves.
    """
    most_spent, scale = registers[SPENT], registers[SCALE]
    if most_spent == UNCOUNTED:
        return limit
    spent = most_spent
    most_left = -store.rest[base, 2]
    at = store.front[base]
    while at >= 0:
        if step(pool.label[at], c, rules) >= 0:
            spent = min(spent, pool.spent[at])
            room = room_after(pool.label[at], len(classes.work) + 1, rules)
            most_left = max(most_left, (most_spent - pool.spent[at]) * scale + room - store.rest[base, 2])
        at = pool.following[at]
    paid = min(limit, most_spent - spent)
    more = (most_spent - spent - store.rest[base, 0]) * classes.stretch[0, c]
    if more < paid:
        paid = int(more) + 1
    more = most_left / scale * classes.stretch[1, c]
    return int(more) + 1 if more < paid else int(paid)


@subroutine
def _in_time(
    spent: int, label: int, downset: int, row: int, rules: LabelRules, store: UnequalStore, registers: Int64Array
) -> bool:
    """Return whether what is after a downset takes no more latency than is left, at no prices and at the problem's."""
    left = registers[SPENT] - spent
    least, with_transfers, priced = store.rest[downset, 0], store.rest[downset, 1], store.rest[downset, 2]
    if with_transfers > left:
        return False
    scale = registers[SCALE]
    return bool(priced + (with_transfers - least) * scale <= left * scale + room_after(label, row, rules))


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
    memory, frames, frame = arrays.memory, scratch.frames, registers[DEPTH] * FRAME
    paid = frames[frame + COST]
    if memory.mode != NO_MEMORY:
        peak = memory.figures[EQUAL, RESERVE_BYTES]
        if memory.mode == IN_ORDER:
            peak = peak_of_stage(False, arrays, ground, scratch)
        held = held_by_stage(False, frames[frame + PARAMS], arrays.shared, scratch.status)
        paid = stage_ticks(paid, held, peak, EQUAL, memory)
        if paid > limit:
            return False
    reached, joined = reached_downset(base, classes, store, scratch, registers)
    if joined == 0:  # a stage has at least one op
        return False
    counted = registers[SPENT] != UNCOUNTED
    at = store.front[base]
    while at >= 0:
        label = step(pool.label[at], c, rules)
        spent: int = pool.spent[at] + paid if counted else np.int64(0)  # type: ignore[assignment]  # 0 is another type
        if (
            label >= 0
            and (not counted or _in_time(spent, label, reached, len(classes.work) + 1, rules, store, registers))
            and fits(reached, label, classes, rules, store, registers)
        ):
            kept = keep_spent_label(label, spent, at, reached, c, rules, store, pool, registers)
            if kept and registers[SIZE] + joined == len(arrays.work) and finished(spent, registers):
                return True
        at = pool.following[at]
    return False
