"""f_c(S) of the stage that a search has come to, on devices of every class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.solvers.downsets.kernels.downset_layout import AT, BEFORE, COST, DEPTH, FRAME, INSIDE, PARAMS, PHASE
from mtpp.solvers.downsets.kernels.stages import held_by_stage, peak_of_stage
from mtpp.solvers.jit import subroutine
from mtpp.solvers.stage_cost.cost_arrays import IN_ORDER, NO_MEMORY, RESERVE_BYTES, GroundArrays, MemoryArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, NEVER, stage_ticks

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetArrays, DownsetScratch
    from mtpp.solvers.unequal.replica_arrays import DeviceTicks


@subroutine
def stage_ticks_of_classes(
    devices: DeviceTicks,
    measure: DownsetArrays,
    ground: GroundArrays,
    scratch: DownsetScratch,
    registers: Int64Array,
    ticks: Int64Array,
) -> None:
    """Write f_c(S) of the stage of the ops inside for each class c, NEVER where its memory is too small.

    O(classes · (ops of the stage + tensors that they touch)); of one class the sum that the search has made.
    """
    frames, depth = scratch.frames, registers[DEPTH]
    if len(ticks) == 1:
        ticks[0] = frames[depth * FRAME + COST]
    else:
        ticks[:] = 0
        for d in range(1, depth):
            if frames[d * FRAME + PHASE] == 1:
                _add_op(scratch.open_ops[frames[d * FRAME + AT]], devices, measure, scratch, ticks)
    if devices.mode == NO_MEMORY:
        return
    held = held_by_stage(False, frames[depth * FRAME + PARAMS], measure.shared, scratch.status)
    ordered = 0
    if devices.mode == IN_ORDER:
        ordered = peak_of_stage(False, measure, ground, scratch)
    for c in range(len(ticks)):
        memory = MemoryArrays(devices.mode, devices.figures[c])
        peak = ordered if devices.mode == IN_ORDER else memory.figures[EQUAL, RESERVE_BYTES]
        paid = stage_ticks(ticks[c], held, peak, EQUAL, memory)
        ticks[c] = min(paid, NEVER)


@subroutine
def _add_op(v: int, devices: DeviceTicks, measure: DownsetArrays, scratch: DownsetScratch, ticks: Int64Array) -> None:
    """Add the work of an op inside, and the transfers of tensors that it is the first to read or that leave it."""
    status = scratch.status
    for c in range(len(ticks)):
        ticks[c] += devices.work[c, v]
    for e in range(measure.read_offsets[v], measure.read_offsets[v + 1]):
        t = measure.read[e]
        if status[measure.producer[t]] != BEFORE:
            continue
        first = measure.consumer_offsets[t]
        while status[measure.consumers[first]] != INSIDE:
            first += 1
        if measure.consumers[first] == v:
            for c in range(len(ticks)):
                ticks[c] += devices.transfer[c, t]
    for e in range(measure.made_offsets[v], measure.made_offsets[v + 1]):
        t = measure.made[e]
        if scratch.crosses[t]:
            for c in range(len(ticks)):
                ticks[c] += devices.transfer[c, t]
