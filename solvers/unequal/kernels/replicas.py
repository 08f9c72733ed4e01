"""The search of all chains of downsets whose stages, each on one or more devices, stay within a limit.

As :mod:`mtpp.solvers.unequal.kernels.search`, with two differences. A stage is listed once, by a measure of work that
is of no class of devices. Its ticks on devices of each class, from
:func:`~mtpp.solvers.unequal.kernels.device_ticks.stage_ticks_of_classes`, then tell which sets of them suffice, and
each label goes on by each of the smallest sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.solvers.downsets.kernels.downset_layout import (
    CROSSING,
    DEPTH,
    DOWNSETS,
    ENDED,
    FOUND,
    FRAME,
    GIVEN_UP,
    NEXT,
    OPEN_WORK,
    OUT_OF_ROOM,
    OUT_OF_STEPS,
    PARAMS,
    STEPS,
    TOTAL_PARAMS,
    WORK,
)
from mtpp.solvers.downsets.kernels.stages import next_stage, unpack
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.kernels.device_labels import room_after
from mtpp.solvers.stage_cost.cost_arrays import GroundArrays
from mtpp.solvers.unequal.kernels.device_sets import (
    all_suffice,
    joined,
    next_sets_in_order,
    smallest_sets,
    whole_label,
)
from mtpp.solvers.unequal.kernels.device_ticks import stage_ticks_of_classes
from mtpp.solvers.unequal.kernels.labels import keep_label, reached_downset
from mtpp.solvers.unequal.kernels.register_layout import DUE, LABELS, PENDING, ROOM, SIZE

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetScratch
    from mtpp.solvers.orders.device_labels import LabelRules
    from mtpp.solvers.unequal.replica_arrays import DeviceTicks, SetScratch
    from mtpp.solvers.unequal.unequal_arrays import ClassArrays, LabelPool, UnequalStore

_NOT_DUE = 2**61
"""So much work within reach that no stage is left out because too little of it is inside."""


@kernel
def search_replicas(
    measure: ClassArrays,
    devices: DeviceTicks,
    ground: GroundArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    scratch: DownsetScratch,
    sets: SetScratch,
    registers: Int64Array,
    limit: int,
    last_step: int,
) -> int:
    """Look for a partition whose stages cost at most *limit* ticks each on sets of devices that the rules allow.

    One rule leaves labels and downsets out, without loss: *fit*, as in
    :func:`mtpp.solvers.unequal.kernels.search.search_unequal`, by one measure of work. The devices of a stage S have
    room for the measure of S and of all that it cuts (:func:`~mtpp.solvers.unequal.replica_arrays.measured_arrays`),
    so those that a label leaves have room for what is after its downset, and once for each tensor that goes there.
    Likewise a stage that has too much to cut for that leaves the others too little.

    Parameters
    ----------
    store, pool, registers
        As of :func:`~mtpp.solvers.unequal.kernels.search.search_unequal`; *store* has one class, the measure.

    Returns
    -------
    As :func:`~mtpp.solvers.unequal.kernels.search.search_unequal`, or :data:`GIVEN_UP` where a stage has too many sets.
    """
    arrays = measure.shared
    n = len(arrays.work)
    whole = whole_label(rules)
    while registers[SIZE] < n:
        if registers[NEXT] < 0:
            registers[SIZE] += 1
            registers[NEXT] = store.of_size[registers[SIZE]]
            continue
        base = registers[NEXT]
        if registers[DEPTH] == 0:
            room = _largest_room(store.front[base], pool, rules)
            if room <= 0 and measure.total[0] > store.work[base, 0]:
                registers[NEXT] = store.following[base]
                continue
            registers[ROOM] = room
            registers[DUE] = measure.total[0] - store.work[base, 0]
            unpack(store.bits[base], room, arrays, scratch, registers)
            scratch.frames[FRAME + OPEN_WORK] += _NOT_DUE
        while True:
            if registers[PENDING] == 0:
                code = next_stage(registers[DUE], registers[ROOM], last_step, arrays, scratch, registers)
                if code == OUT_OF_STEPS:
                    return OUT_OF_STEPS
                if code == ENDED:
                    break
            registers[PENDING] = 0
            if registers[DOWNSETS] == len(store.keys):
                registers[PENDING] = 1
                return OUT_OF_ROOM
            code = _end_stage(
                base, limit, whole, measure, devices, ground, rules, store, pool, scratch, sets, registers
            )
            if code != ENDED:
                return code
        registers[NEXT] = store.following[base]
    return ENDED


@subroutine
def _largest_room(first: int, pool: LabelPool, rules: LabelRules) -> int:
    """Return the most of the measure that fits after any of a chain of labels; −1: there is none."""
    most = -1
    at = first
    while at >= 0:
        most = max(most, room_after(pool.label[at], 0, rules))
        at = pool.following[at]
    return most


@subroutine
def _end_stage(
    base: int,
    limit: int,
    whole: int,
    measure: ClassArrays,
    devices: DeviceTicks,
    ground: GroundArrays,
    rules: LabelRules,
    store: UnequalStore,
    pool: LabelPool,
    scratch: DownsetScratch,
    sets: SetScratch,
    registers: Int64Array,
) -> int:
    """Give labels to the downset that the stage of the ops inside leads to; return FOUND if it has one and all ops.

    :data:`ENDED`: go on. :data:`OUT_OF_ROOM`: the same once more, with more room. The downset is only looked up if a
    label may stay: what is after it, and crosses to there, is known before.
    """
    stage_ticks_of_classes(devices, measure.shared, ground, scratch, registers, sets.ticks)
    if not all_suffice(limit, rules, sets):
        return ENDED
    count = 0
    if rules.free:
        count = smallest_sets(limit, rules, sets)
        if count < 0:
            return GIVEN_UP
        registers[STEPS] += count >> 4
    frame = registers[DEPTH] * FRAME
    rest = registers[DUE] - scratch.frames[frame + WORK] + scratch.frames[frame + CROSSING]
    rest_params = registers[TOTAL_PARAMS] - store.params[base] - scratch.frames[frame + PARAMS]
    reached, added = -1, 0
    at = store.front[base]
    while at >= 0:
        label = pool.label[at]
        if not rules.free:
            count = next_sets_in_order(label, limit, devices, rules, sets)
            if count < 0:
                return GIVEN_UP
        for i in range(count):
            new = joined(label, sets.sets[i], whole, rules) if rules.free else sets.sets[i]
            if new < 0 or rest > room_after(new, 0, rules) or rest_params > room_after(new, 1, rules):
                continue
            if reached < 0:
                reached, added = reached_downset(base, measure, store, scratch, registers)
                if added == 0:  # a stage has at least one op
                    return ENDED
            if registers[LABELS] == len(pool.label):
                registers[PENDING] = 1
                return OUT_OF_ROOM
            kept = keep_label(new, at, reached, 0, rules, store, pool, registers)
            if kept and registers[SIZE] + added == len(measure.shared.work):
                return FOUND
        at = pool.following[at]
    return ENDED
