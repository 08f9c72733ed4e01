"""Upper bounds of a family's stages, by equal shares of the tensors that they must cut, and rows of a flow."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.bounds.configuration.kernels.stage_network import (
    CUT,
    FREE,
    IN,
    PIN,
    Int8Array,
    StageNetwork,
    known_pins,
)
from mtpp.solvers.jit import kernel


@kernel
def equal_shares(
    network: StageNetwork, state: Int8Array, apart: Int8Array, gain: Int64Array, capacity: Int64Array
) -> int:
    """Return a number that Σ gain less Σ capacity of what it cuts is at most, for all sets of a family.

    A tensor apart costs its capacity if an op inside touches it, else a share of it for each free op that does: all of
    it if two ops touch it, and else an equal one.

    Parameters
    ----------
    state
        Of each op in the family, int8, shape (n,).
    apart
        1 where no set holds all ops that touch a tensor, int8, shape (m,).
    gain, capacity
        Of each op and of each tensor, int64.
    """
    own = gain.copy()
    total = np.int64(0)
    for t in range(len(apart)):
        if apart[t] == 0:
            continue
        first, last = network.pin_offsets[t], network.pin_offsets[t + 1]
        held, free = known_pins(network, t, state)
        if held > 0:
            total -= capacity[t]
        elif free > 0:
            share = capacity[t] if last - first == 2 else capacity[t] // free
            for i in range(first, last):
                own[network.pins[i]] -= share
    for u in range(len(state)):
        if state[u] == IN or (state[u] == FREE and own[u] > 0):
            total += own[u]
    return int(total)


@kernel
def flow_moves(
    network: StageNetwork, residual: Int64Array, state: Int8Array, apart: Int8Array, moves: Int64Array
) -> tuple[int, int]:
    """Read a flow of :func:`~mtpp.solvers.bounds.configuration.kernels.stage_families.family_flow` from its arcs.

    Tensors apart are left out where what they take follows: an op inside pays, or the only free op does.

    Parameters
    ----------
    residual
        The flow, at the reverses of the arcs.
    state, apart
        Of the family.
    moves
        Result, int64, shape (arcs, 3): rows of a tensor, an op and what goes from it into the tensor on balance, then
        rows of an op, an op and what the first gives the second.

    Returns
    -------
    Number of rows of either kind.
    """
    n = len(network.work)
    arcs = network.arcs
    owner = np.full(len(arcs.offsets) - 1, -1, dtype=np.int64)
    for t in range(len(network.node)):
        if network.node[t] >= 0:
            owner[network.node[t]] = t
            owner[network.node[t] + 1] = t
    silent = np.zeros(len(apart), dtype=np.int8)
    for t in range(len(apart)):
        held, free = known_pins(network, t, state)
        if apart[t] == 1 and (held > 0 or free < 2):
            silent[t] = 1
    balance = np.zeros(len(network.pins), dtype=np.int64)
    for i in range(len(network.kind)):
        amount = residual[arcs.backward[i]]
        if amount <= 0 or network.kind[i] > PIN:
            continue
        tail, head = arcs.heads[arcs.backward[i]], arcs.heads[arcs.forward[i]]
        if network.kind[i] == CUT and tail < n:
            _move(network, balance, network.item[i], tail, amount)
            _move(network, balance, network.item[i], head, -amount)
        elif network.kind[i] == PIN and tail < n:
            _move(network, balance, owner[head], tail, amount)
        elif network.kind[i] == PIN:
            _move(network, balance, owner[tail], head, -amount)
    flowing = 0
    for t in range(len(apart)):
        for j in range(network.pin_offsets[t], network.pin_offsets[t + 1]):
            if balance[j] != 0 and silent[t] == 0:
                moves[flowing, 0], moves[flowing, 1], moves[flowing, 2] = t, network.pins[j], balance[j]
                flowing += 1
    drawn = 0
    for i in range(len(network.kind)):
        amount = residual[arcs.backward[i]]
        if amount > 0 and network.kind[i] > PIN:
            row = flowing + drawn
            moves[row, 0], moves[row, 1] = arcs.heads[arcs.backward[i]], arcs.heads[arcs.forward[i]]
            moves[row, 2] = amount
            drawn += 1
    return flowing, drawn


@kernel
def _move(network: StageNetwork, balance: Int64Array, t: int, op: int, amount: int) -> None:
    for j in range(network.pin_offsets[t], network.pin_offsets[t + 1]):
        if network.pins[j] == op:
            balance[j] += amount
