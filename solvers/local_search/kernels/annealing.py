"""Simulated annealing on assignments: single ops move between their legal stages.

The objective is Σ_b exp(γ·(cost_b / reference − 1)). A small γ lets the search lower the communication of all stages, a
large one makes it care for the slowest. Temperatures are in units of γ · reference, so that a temperature τ makes it
likely to accept a move that adds τ · reference ticks to a stage that costs *reference*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.local_search.kernels.moves import legal_stages, memory_after, move_memory, relocate, transfer_changes
from mtpp.solvers.orders.kernels.random_stream import next_below, next_float, next_word
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY

if TYPE_CHECKING:
    from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays

_MOVES_PER_TEMPERATURE = 256
_LARGEST_EXPONENT = 300.0  # keeps sums of energies finite


@kernel
def anneal(
    proposals: int,
    reference: float,
    sharpness: float,
    first_temperature: float,
    last_temperature: float,
    moves: MoveArrays,
    state: AssignmentState,
) -> None:
    """Propose that many moves, cooling geometrically; *state* keeps the best assignment met.

    Parameters
    ----------
    reference
        Ticks of a typical slow stage.
    sharpness
        γ of the objective.
    first_temperature, last_temperature
        In units of γ · reference.

    Notes
    -----
    O(degree) per proposal, about 100 ns on sparse graphs.
    """
    n = len(state.stage)
    stages = len(state.cost)
    scale = sharpness / reference
    energy = np.empty(stages, dtype=np.float64)
    late = 0  # stages that keep the assignment from beating the best
    for b in range(stages):
        energy[b] = np.exp(min(scale * state.cost[b] - sharpness, _LARGEST_EXPONENT))
        if state.cost[b] >= state.best[0]:
            late += 1
    temperature = first_temperature * sharpness
    cooling = (last_temperature / first_temperature) ** (_MOVES_PER_TEMPERATURE / max(1, proposals))
    for proposal in range(proposals):
        if proposal % _MOVES_PER_TEMPERATURE == 0 and proposal > 0:
            temperature *= cooling
        op = next_below(state.stream, n)
        first, last = legal_stages(op, moves, state)
        if first == last:
            continue
        source = int(state.stage[op])
        target = _pick_stage(source, first, last, state)
        left, joined = transfer_changes(op, source, target, moves, state)
        source_cost = state.moved[source] + left
        target_cost = state.moved[target] + joined
        if moves.mode != NO_MEMORY:
            left_share, joined_share = memory_after(op, source, target, moves, state)
            source_cost += left_share
            target_cost += joined_share
        source_energy = np.exp(min(scale * source_cost - sharpness, _LARGEST_EXPONENT))
        target_energy = np.exp(min(scale * target_cost - sharpness, _LARGEST_EXPONENT))
        worse = source_energy + target_energy - energy[source] - energy[target]
        if worse > 0 and next_float(state.stream) >= np.exp(-worse / temperature):
            continue
        best = state.best[0]
        late += int(source_cost >= best) - int(state.cost[source] >= best)
        late += int(target_cost >= best) - int(state.cost[target] >= best)
        relocate(op, source, target, left, joined, moves, state)
        if moves.mode != NO_MEMORY:
            move_memory(op, source, target, moves, state)
        state.cost[source] = source_cost
        state.cost[target] = target_cost
        energy[source] = source_energy
        energy[target] = target_energy
        note_move(op, state)
        if late == 0:
            late = keep_best(state)


@inlined
def _pick_stage(source: int, first: int, last: int, state: AssignmentState) -> int:
    """Return another legal stage: mostly a neighbour, sometimes any."""
    if last - first == 1:
        return int(first + last - source)
    word = next_word(state.stream)
    if word & np.uint64(3):
        step = 1 if word & np.uint64(4) else -1
        if not first <= source + step <= last:
            step = -step
        return int(source + step)
    target = first + int(((word >> np.uint64(32)) * np.uint64(last - first)) >> np.uint64(32))
    return target + 1 if target >= source else target


@inlined
def note_move(op: int, state: AssignmentState) -> None:
    """Note that *op* moved since the best assignment was kept."""
    length = state.journal_length[0]
    if length < 0:
        return
    if length == len(state.journal):
        state.journal_length[0] = -1
        return
    state.journal[length] = op
    state.journal_length[0] = length + 1


@subroutine
def keep_best(state: AssignmentState) -> int:
    """Keep the assignment as the best one; return the number of its slowest stages.

    O(k) and one step for each move since the last time.
    """
    length = state.journal_length[0]
    if length < 0:
        for op in range(len(state.stage)):
            state.best_stage[op] = state.stage[op]
    for i in range(length):
        state.best_stage[state.journal[i]] = state.stage[state.journal[i]]
    state.journal_length[0] = 0
    best = state.cost[slowest_stage(state)]
    state.best[0] = best
    slowest = 0
    for b in range(len(state.cost)):
        slowest += int(state.cost[b] == best)
    return slowest


@inlined
def slowest_stage(state: AssignmentState) -> int:
    """Return the first stage with the largest cost."""
    slowest: int = np.int64(0)  # type: ignore[assignment]  # as NO_OP
    for b in range(len(state.cost)):
        if state.cost[b] > state.cost[slowest]:
            slowest = b
    return slowest
