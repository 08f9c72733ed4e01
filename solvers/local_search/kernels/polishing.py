"""Local search that empties the slowest stage: single moves, then swaps and chains of two moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.local_search.kernels.annealing import keep_best, note_move, slowest_stage
from mtpp.solvers.local_search.kernels.moves import NO_OP, legal_stages, memory_after, move_op, transfer_changes
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY

if TYPE_CHECKING:
    from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays


@kernel
def polish(most: int, moves: MoveArrays, state: AssignmentState) -> int:
    """Improve the slowest stage until neither one move nor two can, starting at the best assignment of *state*.

    A step is taken if all the stages that it touches end up below the bottleneck: one op leaves or joins the slowest
    stage, or one leaves it and another makes room for it, by going back (a swap) or on to a third stage (a chain).

    Parameters
    ----------
    most
        Ops to look at, at most; a look at an op rates its moves to all legal stages.

    Returns
    -------
    The number of looks. *state* holds the result, and keeps it if it is better.

    Notes
    -----
    O(degree) per move rated, O(n) per step taken.
    """
    n = len(state.stage)
    for op in range(n):
        if state.stage[op] != state.best_stage[op]:
            move_op(op, int(state.best_stage[op]), moves, state)
    state.journal_length[0] = 0
    looks: int = np.int64(0)  # type: ignore[assignment]  # as NO_OP
    while looks < most:
        slowest = slowest_stage(state)
        op, target = _single_move(slowest, moves, state)
        looks += n
        other, third = NO_OP, NO_OP
        if op == NO_OP:
            op, target, other, third, looks = _double_move(slowest, looks, most, moves, state)
        if op == NO_OP:
            break
        move_op(op, target, moves, state)
        note_move(op, state)
        if other != NO_OP:
            move_op(other, third, moves, state)
            note_move(other, state)
        if state.cost[slowest_stage(state)] < state.best[0]:
            keep_best(state)
    return looks


@inlined
def _costs_after(op: int, source: int, target: int, moves: MoveArrays, state: AssignmentState) -> tuple[int, int]:
    """Return what the stage that *op* leaves, and the one that it joins, would cost."""
    left, joined = transfer_changes(op, source, target, moves, state)
    source_cost = state.moved[source] + left
    target_cost = state.moved[target] + joined
    if moves.mode != NO_MEMORY:
        left_share, joined_share = memory_after(op, source, target, moves, state)
        source_cost += left_share
        target_cost += joined_share
    return source_cost, target_cost


@subroutine
def _single_move(slowest: int, moves: MoveArrays, state: AssignmentState) -> tuple[int, int]:
    """Return an op that should leave or join the slowest stage, and where it should go; :data:`NO_OP` if none."""
    limit = state.cost[slowest]
    for op in range(len(state.stage)):
        first, last = legal_stages(op, moves, state)
        if first == last or not first <= slowest <= last:
            continue
        source = int(state.stage[op])
        if source != slowest:
            first = last = slowest
        for target in range(first, last + 1):
            if target != source:
                source_cost, target_cost = _costs_after(op, source, target, moves, state)
                if source_cost < limit and target_cost < limit:
                    return op, target
    return NO_OP, NO_OP


@subroutine
def _double_move(
    slowest: int, looks: int, most: int, moves: MoveArrays, state: AssignmentState
) -> tuple[int, int, int, int, int]:
    """Return an op that should leave the slowest stage and where to, the same of one that makes room, and the looks.

    No ops are :data:`NO_OP`.
    """
    limit = state.cost[slowest]
    for op in range(len(state.stage)):
        if state.stage[op] != slowest:
            continue
        first, last = legal_stages(op, moves, state)
        for target in range(first, last + 1):
            if target == slowest:
                continue
            move_op(op, target, moves, state)
            lighter = state.cost[slowest] < limit
            for other in range(len(state.stage)):
                if state.stage[other] != target:
                    continue
                looks += 1
                if other == op:  # a single move
                    continue
                other_first, other_last = legal_stages(other, moves, state)
                if not lighter:  # a swap is judged by the two stages; in a chain the slowest has to be below by now
                    if not other_first <= slowest <= other_last:
                        continue
                    other_first = other_last = slowest
                for third in range(other_first, other_last + 1):
                    if third == target:
                        continue
                    target_cost, third_cost = _costs_after(other, target, third, moves, state)
                    if target_cost < limit and third_cost < limit:
                        move_op(op, slowest, moves, state)
                        return op, target, other, third, looks
            looks += len(state.stage) // 8  # passing by the ops of other stages takes time as well
            move_op(op, slowest, moves, state)
            if looks >= most:
                return NO_OP, NO_OP, NO_OP, NO_OP, looks
    return NO_OP, NO_OP, NO_OP, NO_OP, looks
