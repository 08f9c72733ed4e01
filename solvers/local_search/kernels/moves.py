"""Effect of moving one op to another stage on the stage costs, in O(degree).

The state of a search over assignments holds, for every tensor and stage, how many of the tensor's pins lie there. A
stage pays for a tensor if it holds some of its pins but not all, so the two counters that a move touches tell what the
two stages gain and lose; no other stage is affected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.array_types import Int32Array
from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES, GroundArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import memory_ticks, row_begin, transfer_ticks, work_ticks
from mtpp.solvers.stage_cost.kernels.working_memory import peak_of_ops

if TYPE_CHECKING:
    from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays

# Not a literal, which is another type to numba: kernels that take it would be compiled twice.
NO_OP: int = np.int64(-1)  # type: ignore[assignment]
_WORD_BITS = 64


@kernel
def fill_state(moves: MoveArrays, state: AssignmentState) -> None:
    """Work out what belongs to ``state.stage``, all else being 0; O(n + m·k + pins)."""
    stages = len(state.cost)
    for op in range(len(state.stage)):
        here = state.stage[op]
        state.moved[here] += work_ticks(op, here, moves)
        state.params[here] += moves.param_bytes[op]
        if moves.mode != NO_MEMORY:
            toggle_places(op, here, moves.ground, state)
        for e in range(moves.op_tensor_offsets[op], moves.op_tensor_offsets[op + 1]):
            state.held[moves.op_tensors[e], here] += 1
    for i in range(len(moves.param_bytes) - len(state.stage)):
        for b in range(stages):
            if state.held[first_weight(moves, state) + i, b] > 0:
                state.params[b] += moves.param_bytes[len(state.stage) + i]
    for tensor in range(len(moves.pin_counts)):
        for b in range(stages):
            if 0 < state.held[tensor, b] < moves.pin_counts[tensor]:
                state.moved[b] += transfer_ticks(tensor, b, moves)
    for b in range(stages):
        state.cost[b] = state.moved[b]
        if moves.mode != NO_MEMORY:
            state.cost[b] += memory_cost(NO_OP, b, state.params[b], moves, state)


def start_from(stage: Int32Array, moves: MoveArrays, state: AssignmentState) -> None:
    """Begin anew at an assignment, which becomes the best one seen; int32, shape (n,)."""
    state.stage[:] = stage
    for array in (state.held, state.moved, state.params, state.inside):
        array.fill(0)
    fill_state(moves, state)
    state.best_stage[:] = stage
    state.best[0] = state.cost.max()
    state.journal_length[0] = 0


@inlined
def legal_stages(op: int, moves: MoveArrays, state: AssignmentState) -> tuple[int, int]:
    """Return the first and the last stage in which *op* may be while all other ops stay."""
    first = 0
    last = len(state.cost) - 1
    for e in range(moves.predecessor_offsets[op], moves.predecessor_offsets[op + 1]):
        first = max(first, state.stage[moves.predecessors[e]])
    for e in range(moves.successor_offsets[op], moves.successor_offsets[op + 1]):
        last = min(last, state.stage[moves.successors[e]])
    return first, last


@inlined
def transfer_changes(op: int, source: int, target: int, moves: MoveArrays, state: AssignmentState) -> tuple[int, int]:
    """Return by how much work and transfer of *source* and of *target* change when *op* moves between them."""
    left = -work_ticks(op, source, moves)
    joined = work_ticks(op, target, moves)
    for e in range(moves.op_tensor_offsets[op], moves.op_tensor_offsets[op + 1]):
        tensor = moves.op_tensors[e]
        pins = moves.pin_counts[tensor]
        paid_here = transfer_ticks(tensor, source, moves)  # always read: a load behind a condition becomes a branch
        paid_there = transfer_ticks(tensor, target, moves)
        here = state.held[tensor, source]
        there = state.held[tensor, target]
        if here == pins:
            left += paid_here
        elif here == 1:
            left -= paid_here
        if there == 0:
            joined += paid_there
        if there + 1 == pins:
            joined -= paid_there
    return left, joined


@inlined
def relocate(
    op: int, source: int, target: int, left: int, joined: int, moves: MoveArrays, state: AssignmentState
) -> None:
    """Move *op* given its :func:`transfer_changes`; leaves costs, places and shared weights to the caller."""
    state.stage[op] = target
    state.moved[source] += left
    state.moved[target] += joined
    state.params[source] -= moves.param_bytes[op]
    state.params[target] += moves.param_bytes[op]
    for e in range(moves.op_tensor_offsets[op], moves.op_tensor_offsets[op + 1]):
        tensor = moves.op_tensors[e]
        state.held[tensor, source] -= 1
        state.held[tensor, target] += 1


@kernel
def move_op(op: int, target: int, moves: MoveArrays, state: AssignmentState) -> None:
    """Move *op* to stage *target* and bring all of *state* up to date."""
    source = int(state.stage[op])
    left, joined = transfer_changes(op, source, target, moves, state)
    relocate(op, source, target, left, joined, moves, state)
    state.cost[source] = state.moved[source]
    state.cost[target] = state.moved[target]
    if moves.mode != NO_MEMORY:
        move_memory(op, source, target, moves, state)
        state.cost[source] += memory_cost(NO_OP, source, state.params[source], moves, state)
        state.cost[target] += memory_cost(NO_OP, target, state.params[target], moves, state)


@kernel
def memory_after(op: int, source: int, target: int, moves: MoveArrays, state: AssignmentState) -> tuple[int, int]:
    """Return what the two stages pay for their memory once *op* has moved."""
    left = joined = moves.param_bytes[op]
    if len(moves.param_bytes) > len(state.stage):
        first = first_weight(moves, state)
        for e in range(moves.op_tensor_offsets[op], moves.op_tensor_offsets[op + 1]):
            tensor = moves.op_tensors[e]
            if tensor >= first:
                size = moves.param_bytes[len(state.stage) + tensor - first]
                left += size * (state.held[tensor, source] == 1)
                joined += size * (state.held[tensor, target] == 0)
    return (
        memory_cost(op, source, state.params[source] - left, moves, state),
        memory_cost(op, target, state.params[target] + joined, moves, state),
    )


@inlined
def first_weight(moves: MoveArrays, state: AssignmentState) -> int:
    """Return the first of the tensors that are weights which several ops read."""
    return len(moves.pin_counts) - (len(moves.param_bytes) - len(state.stage))


@subroutine
def move_memory(op: int, source: int, target: int, moves: MoveArrays, state: AssignmentState) -> None:
    """Let the places of *op*, which has moved, leave *source* and join *target*, and so the weights that it shares."""
    if len(moves.param_bytes) > len(state.stage):
        first = first_weight(moves, state)
        for e in range(moves.op_tensor_offsets[op], moves.op_tensor_offsets[op + 1]):
            tensor = moves.op_tensors[e]
            if tensor >= first:
                size = moves.param_bytes[len(state.stage) + tensor - first]
                state.params[source] -= size * (state.held[tensor, source] == 0)
                state.params[target] += size * (state.held[tensor, target] == 1)
    toggle_places(op, source, moves.ground, state)
    toggle_places(op, target, moves.ground, state)


@subroutine
def memory_cost(op: int, stage: int, param_bytes: int, moves: MoveArrays, state: AssignmentState) -> int:
    """Return what *stage* pays for its memory once *op* (or :data:`NO_OP`) has joined or left it.

    Peaks in order take O(pins of the stage), all else O(1).
    """
    ground, memory = moves.ground, moves.memory
    c = row_begin(moves.class_of, stage)
    if len(ground.places) == 0:
        return int(memory_ticks(param_bytes, memory.figures[c, RESERVE_BYTES], c, memory))
    toggle_places(op, stage, ground, state)
    count = 0
    for i in range(state.inside.shape[1]):
        word = state.inside[stage, i]
        place = i * _WORD_BITS
        while word:
            if word & np.uint64(1):
                state.places[count] = place
                count += 1
            word >>= np.uint64(1)
            place += 1
    toggle_places(op, stage, ground, state)
    peak = peak_of_ops(state.places, count, ground, state.pins_left)
    return int(memory_ticks(param_bytes, peak, c, memory))


@subroutine
def toggle_places(op: int, stage: int, ground: GroundArrays, state: AssignmentState) -> None:
    """Let the places of *op* join *stage*, or leave it if they are there."""
    if len(ground.places) > 0 and op != NO_OP:
        for i in range(ground.place_offsets[op], ground.place_offsets[op + 1]):
            place = ground.places[i]
            state.inside[stage, place // _WORD_BITS] ^= np.uint64(1) << np.uint64(place % _WORD_BITS)
