"""The search of all chains of downsets whose stages stay within a limit, with tensors from neighbour to neighbour.

As :mod:`mtpp.solvers.unequal.kernels.search`, with two differences. What a stage pays at its right boundary depends on
the device of the next one. So a label also has the class of the last stage's device, and what that stage has paid so
far: its work, its overflow and its left boundary. And of that, all that matters is which classes may follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.downsets.downset_arrays import DownsetArrays
from mtpp.solvers.downsets.kernels.downset_layout import (
    DEPTH,
    DOWNSETS,
    ENDED,
    FOUND,
    FRAME,
    NEXT,
    OUT_OF_ROOM,
    OUT_OF_STEPS,
    PARAMS,
    WORK,
)
from mtpp.solvers.downsets.kernels.stages import held_by_stage, next_stage, peak_of_stage, unpack
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.kernels.device_labels import no_more, room_after, step
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, NO_MEMORY, RESERVE_BYTES, GroundArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, NEVER, stage_ticks
from mtpp.solvers.unequal.kernels.class_arrays import arrays_of_class
from mtpp.solvers.unequal.kernels.labels import (
    add_label,
    drop_label,
    finished,
    fits,
    inside,
    is_full,
    next_turn,
    reached_downset,
)
from mtpp.solvers.unequal.kernels.register_layout import (
    CLASS,
    DUE,
    LABELS,
    PAID,
    SIZE,
    SPENT,
    UNCOUNTED,
)

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetScratch
    from mtpp.solvers.orders.device_labels import LabelRules
    from mtpp.solvers.unequal.neighbour_arrays import BoundaryArrays, NeighbourPool
    from mtpp.solvers.unequal.unequal_arrays import ClassArrays, UnequalStore


@kernel
def search_neighbours(
    classes: ClassArrays,
    boundary: BoundaryArrays,
    ground: GroundArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: NeighbourPool,
    scratch: DownsetScratch,
    registers: Int64Array,
    limit: int,
    last_step: int,
    relays: bool,
) -> int:
    """Look for a partition whose stages cost at most *limit* ticks each on devices that the rules allow.

    With *relays* a device may also stand between two stages without ops and pass on what crosses there: it pays for
    both of its boundaries. That is for lower bounds, of partitions whose stages other rules may have left without ops.

    The rule *fit* leaves labels out as in :func:`mtpp.solvers.unequal.kernels.search.search_unequal`, with transfers
    over the best link of each class: the first stage that reads a tensor pays for it at its left boundary.

    Stages are enumerated by these transfers too. A stage pays for all that crosses from the downset, D, at its left
    boundary, and for what it makes and leaves to later ones at its right one. The enumeration counts the tensors from D
    that the stage reads in place of the first. These cost no more than all that crosses, over the best link; so its
    limit is lower by what the cheapest left boundary costs above that.

    In the latency a boundary counts twice, once for each of its stages. What is left takes at least the least work of
    its ops, and twice the cheapest boundary to it.

    Parameters
    ----------
    store, pool
        Hold the empty downset and its label at the beginning.
    registers
        As of :func:`mtpp.solvers.unequal.kernels.search.search_unequal`.

    Returns
    -------
    As :func:`mtpp.solvers.unequal.kernels.search.search_unequal`.
    """
    shared = classes.shared
    n = len(shared.work)
    class_count = len(classes.work)
    while next_turn(n, class_count, store.of_size, store.following, registers):
        base, c = registers[NEXT], registers[CLASS]
        arrays = arrays_of_class(c, classes)
        if registers[DEPTH] == 0:
            if (
                relays
                and c == 0
                and base > 0
                and not _add_relays(base, limit, classes, boundary, rules, store, pool, registers)
            ):
                return OUT_OF_ROOM
            room, paid = _best_label(base, c, limit, registers[SPENT], boundary, rules, store, pool)
            if room < 0:
                registers[CLASS] += 1
                continue
            registers[DUE] = classes.total[c] - store.work[base, c] - room
            registers[PAID] = paid + _crossing(base, arrays, store)
            unpack(store.bits[base], registers[PAID], arrays, scratch, registers)
        while True:
            if is_full(base, store, pool, registers):
                return OUT_OF_ROOM
            code = next_stage(registers[DUE], registers[PAID], last_step, arrays, scratch, registers)
            if code == OUT_OF_STEPS:
                return OUT_OF_STEPS
            if code == ENDED:
                break
            if _end_stage(base, c, limit, arrays, classes, boundary, ground, rules, store, pool, scratch, registers):
                return FOUND
        registers[CLASS] += 1
    return ENDED


@subroutine
def _add_relays(
    base: int,
    limit: int,
    classes: ClassArrays,
    boundary: BoundaryArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: NeighbourPool,
    registers: Int64Array,
) -> bool:
    """Give a downset the labels with devices that only pass on what crosses; False if there is no room for them."""
    more = True
    while more:
        more = False
        at = store.front[base]
        while at >= 0:
            for c in range(len(classes.work)):
                label = step(pool.label[at], c, rules)
                if label < 0 or not fits(base, label, classes, rules, store, registers):
                    continue
                left = _left_boundary(base, pool.class_of[at], c, boundary)
                if pool.paid[at] + left > limit or left > limit:
                    continue
                barred = _barred(base, c, limit - left, boundary)
                if barred < 0:
                    continue
                if registers[LABELS] == len(pool.label):
                    return False
                if _keep_label(label, left, 0, barred, at, base, c, rules, store, pool, registers):
                    more = True
            at = pool.following[at]
    return True


@subroutine
def _left_boundary(base: int, last: int, c: int, boundary: BoundaryArrays) -> int:
    """Return the ticks of the boundary after a downset between classes *last* and *c*; 0 if nothing is before it."""
    if last < 0:
        return 0
    return int(boundary.cross[base, boundary.row_of[last, c]])


@subroutine
def _best_label(
    base: int,
    c: int,
    limit: int,
    most_spent: int,
    boundary: BoundaryArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: NeighbourPool,
) -> tuple[int, int]:
    """Return the most work that fits after one more stage of class *c*, and what that may pay beside its left boundary.

    Over the labels of a downset that a stage of the class may follow; −1: none.
    """
    most: int = np.int64(-1)  # type: ignore[assignment]  # 0 is another type to numba
    paid: int = np.int64(-1)  # type: ignore[assignment]  # as above
    at = store.front[base]
    while at >= 0:
        label = step(pool.label[at], c, rules)
        if label >= 0:
            left = _left_boundary(base, pool.class_of[at], c, boundary)
            if pool.paid[at] + left <= limit:
                allowed = limit - left
                if most_spent != UNCOUNTED:
                    allowed = min(allowed, most_spent - pool.spent[at] - 2 * left)
                if allowed >= 0:
                    most = max(most, room_after(label, c, rules))
                    paid = max(paid, allowed)
        at = pool.following[at]
    return most, paid


@subroutine
def _crossing(base: int, arrays: DownsetArrays, store: UnequalStore) -> int:
    """Return the ticks of all tensors that are made in a downset and read after it; O(pins)."""
    ticks: int = np.int64(0)  # type: ignore[assignment]  # 0 is another type to numba
    for t in range(len(arrays.transfer)):
        if _crosses(t, base, arrays, store):
            ticks += arrays.transfer[t]
    return ticks


@subroutine
def _crosses(t: int, downset: int, arrays: DownsetArrays, store: UnequalStore) -> bool:
    if not inside(arrays.producer[t], downset, store):
        return False
    for e in range(arrays.consumer_offsets[t], arrays.consumer_offsets[t + 1]):
        if not inside(arrays.consumers[e], downset, store):
            return True
    return False


@subroutine
def _end_stage(
    base: int,
    c: int,
    limit: int,
    arrays: DownsetArrays,
    classes: ClassArrays,
    boundary: BoundaryArrays,
    ground: GroundArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: NeighbourPool,
    scratch: DownsetScratch,
    registers: Int64Array,
) -> bool:
    """Give labels to the downset that the stage of the ops inside leads to; return whether it has one and all ops."""
    memory, frames, frame = arrays.memory, scratch.frames, registers[DEPTH] * FRAME
    own = frames[frame + WORK]
    if memory.mode != NO_MEMORY:
        peak = memory.figures[EQUAL, RESERVE_BYTES]
        if memory.mode == IN_ORDER:
            peak = peak_of_stage(False, arrays, ground, scratch)
        held = held_by_stage(False, frames[frame + PARAMS], arrays.shared, scratch.status)
        own = stage_ticks(own, held, peak, EQUAL, memory)
    if own > limit:
        return False
    before = registers[DOWNSETS]
    reached, joined = reached_downset(base, classes, store, scratch, registers)
    if joined == 0:  # a stage has at least one op
        return False
    if reached == before:
        for row in range(len(boundary.ticks)):
            boundary.cross[reached, row] = 0
        for t in range(len(arrays.transfer)):
            if _crosses(t, reached, arrays, store):
                for row in range(len(boundary.ticks)):
                    boundary.cross[reached, row] += boundary.ticks[row, t]
    whole = registers[SIZE] + joined == len(arrays.work)
    floor: int = np.int64(0)  # type: ignore[assignment]  # 0 is another type to numba
    if registers[SPENT] != UNCOUNTED:
        floor = store.rest[reached, 0] + (0 if whole else 2 * _cheapest(reached, c, boundary))
    at = store.front[base]
    while at >= 0:
        label = step(pool.label[at], c, rules)
        if label >= 0 and fits(reached, label, classes, rules, store, registers):
            left = _left_boundary(base, pool.class_of[at], c, boundary)
            spent: int = np.int64(0)  # type: ignore[assignment]  # as above
            if registers[SPENT] != UNCOUNTED:
                spent = pool.spent[at] + 2 * left + own
            in_time = registers[SPENT] == UNCOUNTED or spent + floor <= registers[SPENT]
            if in_time and pool.paid[at] + left <= limit and left + own <= limit:
                barred = 0 if whole else _barred(reached, c, limit - left - own, boundary)
                if barred >= 0:
                    kept = _keep_label(label, left + own, spent, barred, at, reached, c, rules, store, pool, registers)
                    if kept and whole and finished(spent, registers):
                        return True
        at = pool.following[at]
    return False


@subroutine
def _cheapest(downset: int, c: int, boundary: BoundaryArrays) -> int:
    """Return the least cost of the boundary of class *c* with any other device after a downset."""
    least: int = np.int64(NEVER)  # type: ignore[assignment]  # 0 is another type to numba
    for other in range(len(boundary.row_of)):
        row = boundary.row_of[c, other]
        if row >= 0:
            least = min(least, boundary.cross[downset, row])
    return least


@subroutine
def _barred(downset: int, c: int, left: int, boundary: BoundaryArrays) -> int:
    """Return the number of classes whose boundary with class *c* after a downset costs more than *left*; −1: all."""
    barred, free = 0, 0
    for other in range(len(boundary.row_of)):
        row = boundary.row_of[c, other]
        if row >= 0:
            if boundary.cross[downset, row] > left:
                barred += 1
            else:
                free += 1
    return barred if free > 0 else -1


@subroutine
def _keep_label(
    label: int,
    paid: int,
    spent: int,
    barred: int,
    parent: int,
    downset: int,
    c: int,
    rules: LabelRules,
    store: UnequalStore,
    pool: NeighbourPool,
    registers: Int64Array,
) -> bool:
    """Add a label to those of a downset, unless one of them makes it needless; drop those that it makes needless."""
    before = -1
    at = store.front[downset]
    while at >= 0:
        drop = False
        if pool.class_of[at] == c:
            if pool.barred[at] <= barred and pool.spent[at] <= spent and no_more(pool.label[at], label, rules.guards):
                return False
            drop = (
                barred <= pool.barred[at] and spent <= pool.spent[at] and no_more(label, pool.label[at], rules.guards)
            )
        before = drop_label(at, before, downset, store, pool) if drop else at
        at = pool.following[at]
    new = add_label(label, spent, parent, downset, c, store, pool, registers)
    pool.paid[new] = paid
    pool.barred[new] = barred
    return True
