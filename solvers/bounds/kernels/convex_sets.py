"""Convex sets of ops along a topological order: each op in turn goes inside, or stays outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import inlined, kernel
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES, MemoryArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import stage_ticks

FREE, PAID, MADE, CUT, BEHIND = 0, 1, 2, 3, 4
"""Of a tensor whose readers are not all decided: made outside, and read inside or not; made inside, and read outside or
not; made behind the set, by an op that needs one of its ops."""

BITS = 3
"""That one of these takes in a state."""

SLOTS = 20
"""Tensors of a state at most."""

_VALUE = (1 << BITS) - 1

_ROUNDED = 1 + 1e-9
"""Far more than floats lose."""


class Labels(NamedTuple):
    """Sets of the ops decided, of which no other set in the same state is better in everything.

    Attributes
    ----------
    state
        One of the values above for each live tensor, :data:`BITS` each, int64.
    paid, params, work
        Ticks of ops and tensors, bytes, and measure of each set, int64.
    """

    state: Int64Array
    paid: Int64Array
    params: Int64Array
    work: Int64Array


class OpStep(NamedTuple):
    """An op, in the order of decisions.

    Attributes
    ----------
    shifts, transfer
        Where each tensor that it reads stands in a state, and its ticks, int64.
    kept
        Bits of a state that stay: those of tensors with a reader still to be decided.
    made
        The lowest bit of each tensor that it makes.
    work, params, value
        Its ticks, bytes and measure.
    rest
        Measure of all ops after it.
    """

    shifts: Int64Array
    transfer: Int64Array
    kept: int
    made: int
    work: int
    params: int
    value: int
    rest: int


class StageRoom(NamedTuple):
    """A stage on a device.

    Attributes
    ----------
    memory, c
        Memories of all classes of devices, and the one that it stands on.
    most
        Ticks that it costs at most.
    least
        Measure of a set that is known: no other one with less is looked for.
    rate
        The most measure in a tick; −1: any, as an op takes none.
    """

    memory: MemoryArrays
    c: int
    most: int
    least: int
    rate: float


@kernel
def decide_op(old: Labels, op: OpStep, room: StageRoom, new: Labels) -> int:
    """Put an op inside and outside of each set, where that leaves one that may come to be of use.

    Parameters
    ----------
    new
        Room for twice as many labels.

    Returns
    -------
    The number of labels in *new*.
    """
    count = 0
    for i in range(len(old.state)):
        state = old.state[i]
        inside, outside = state, state
        inside_paid, outside_paid = old.paid[i] + op.work, old.paid[i]
        follows = behind = False
        for j in range(len(op.shifts)):
            value = (state >> op.shifts[j]) & _VALUE
            if value == FREE:
                inside_paid += op.transfer[j]
                inside += PAID << op.shifts[j]
            elif value == BEHIND:
                behind = True
            elif value != PAID:
                follows = True
                if value == MADE:
                    outside_paid += op.transfer[j]
                    outside += (CUT - MADE) << op.shifts[j]
        inside, outside = (inside & op.kept) + MADE * op.made, outside & op.kept
        if behind or follows:
            outside += BEHIND * op.made
        params, work = old.params[i] + op.params, old.work[i] + op.value
        if not behind and _useful(inside_paid, params, work, op.rest, room):
            new.state[count], new.paid[count] = inside, inside_paid
            new.params[count], new.work[count] = params, work
            count += 1
        if _useful(outside_paid, old.params[i], old.work[i], op.rest, room):
            new.state[count], new.paid[count] = outside, outside_paid
            new.params[count], new.work[count] = old.params[i], old.work[i]
            count += 1
    return count


@inlined
def _useful(paid: int, params: int, work: int, rest: int, room: StageRoom) -> bool:
    """Tell whether a set may grow to one with more than the least measure, within the stage's ticks and memory."""
    ticks = paid
    if room.memory.mode != NO_MEMORY:
        ticks = stage_ticks(paid, params, room.memory.figures[room.c, RESERVE_BYTES], room.c, room.memory)
    if ticks > room.most:
        return False
    if work + rest <= room.least:
        return False
    if room.rate < 0:
        return True
    return (work + (room.most - ticks) * room.rate) * _ROUNDED + 1 > room.least


@kernel
def undominated(labels: Labels, by_params: bool) -> NDArray[np.bool_]:
    """Mark the labels that no other one of the same state beats, of labels by state, then ticks, bytes and least work.

    Parameters
    ----------
    by_params
        Whether bytes count.
    """
    marked = np.zeros(len(labels.state), dtype=np.bool_)
    front = np.empty(len(labels.state), dtype=np.int64)
    count = 0
    most = np.int64(-1)
    for i in range(len(labels.state)):
        if i == 0 or labels.state[i] != labels.state[i - 1]:
            count = 0
            most = np.int64(-1)
        beaten = labels.work[i] <= most and not by_params
        for j in range(count - 1 if by_params else -1, -1, -1):
            other = front[j]
            if labels.work[other] >= labels.work[i] and labels.params[other] <= labels.params[i]:
                beaten = True
                break
        if not beaten:
            marked[i] = True
            most = labels.work[i]
            front[count] = i
            count += 1
    return marked


@kernel
def stages_of(labels: Labels, room: StageRoom) -> Int64Array:
    """Return what each set costs as a stage, in ticks."""
    ticks = labels.paid.copy()
    if room.memory.mode != NO_MEMORY:
        for i in range(len(ticks)):
            ticks[i] = stage_ticks(
                ticks[i], labels.params[i], room.memory.figures[room.c, RESERVE_BYTES], room.c, room.memory
            )
    return ticks


class Runs(NamedTuple):
    """Ops and tensors of an order, whose runs of consecutive ops are convex sets.

    Attributes
    ----------
    order
        Ops, int32.
    offsets, tensors
        Tensors that each op makes or reads, CSR, int64 and int32.
    pins
        Ops that make or read each tensor, int64.
    work, transfer, params, value
        Ticks of ops and tensors, bytes and measure of ops, int64.
    inside
        For each tensor 0, int64.
    """

    order: Int32Array
    offsets: Int64Array
    tensors: Int32Array
    pins: Int64Array
    work: Int64Array
    transfer: Int64Array
    params: Int64Array
    value: Int64Array
    inside: Int64Array


@kernel
def most_of_a_run(runs: Runs, room: StageRoom, steps: int) -> int:
    """Return the most measure of a run of an order that a stage has room for, of those met in so many steps."""
    n = len(runs.order)
    best = np.int64(0)
    for begin in range(n):
        paid = params = value = work = np.int64(0)
        end = begin
        while end < n and steps > 0:
            v = runs.order[end]
            end += 1
            work += runs.work[v]
            if work > room.most:
                break
            paid += runs.work[v]
            params += runs.params[v]
            value += runs.value[v]
            for e in range(runs.offsets[v], runs.offsets[v + 1]):
                t = runs.tensors[e]
                runs.inside[t] += 1
                steps -= 1
                if runs.inside[t] == 1 and runs.pins[t] > 1:
                    paid += runs.transfer[t]
                elif runs.inside[t] == runs.pins[t] and runs.pins[t] > 1:
                    paid -= runs.transfer[t]
            if value > best and paid <= room.most:
                ticks = paid
                if room.memory.mode != NO_MEMORY:
                    ticks = stage_ticks(paid, params, room.memory.figures[room.c, RESERVE_BYTES], room.c, room.memory)
                if ticks <= room.most:
                    best = value
        for i in range(begin, end):
            for e in range(runs.offsets[runs.order[i]], runs.offsets[runs.order[i] + 1]):
                runs.inside[runs.tensors[e]] = 0
    return int(best)
