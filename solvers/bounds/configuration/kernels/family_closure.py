"""Closure of families of stages: ops that all of their sets hold or lack, and tensors that they must cut."""

from __future__ import annotations

import numpy as np

from mtpp.solvers.bounds.configuration.kernels.stage_network import FREE, IN, OUT, Int8Array, StageNetwork, known_pins
from mtpp.solvers.jit import kernel


@kernel
def close_family(
    network: StageNetwork, most: int, least: int, state: Int8Array, before: Int8Array, after: Int8Array,
    apart: Int8Array,
) -> bool:  # fmt: skip
    """Conclude from what is known of a family what else has to be so, until nothing changes.

    A tensor is *apart* if no set of the family holds all ops that touch it: one of them is left out, or what they
    draw in is too much. A set pays for each such tensor that it touches, once; what the ops inside touch comes off the
    budget of all others.

    Parameters
    ----------
    most, least
        Of the work of a set and what it cuts, and of its work less what it cuts.
    state, before, after, apart
        Of one family; *state* is given and changed, the others are results. *before* and *after* are 1 where an op is
        on the way to (from) an op inside, or is one; int8, shape (n,); *apart* has a place for each tensor.

    Returns
    -------
    Whether the family may hold any set.

    Notes
    -----
    O(n²) for each op that becomes known, O(n · pins) for each round of tensors.
    """
    reaches, reached, work, transfer = network.reaches, network.reached, network.work, network.transfer
    pin_offsets, pins = network.pin_offsets, network.pins
    n, m = len(work), len(transfer)
    taken = np.zeros(n, dtype=np.int8)  # ops whose paths are in before and after
    spread = np.zeros(n, dtype=np.int8)  # ops left out whose ancestors (1) or descendants (2) are left out too
    above, below = np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int8)
    dear = np.empty(n, dtype=np.int64)  # what an op would cut in any case that the ops inside do not
    for x in range(n):
        before[x] = 0
        after[x] = 0
    for t in range(m):
        apart[t] = 0
    certain = np.int64(0)
    changed = True
    while changed:
        changed = False
        inside = np.int64(0)
        for v in range(n):
            if state[v] == IN and taken[v] == 0:
                taken[v] = 1
                before[v] = 1
                after[v] = 1
                for x in range(n):
                    before[x] |= reached[v, x]
                    after[x] |= reaches[v, x]
        for x in range(n):
            if before[x] == 1 and after[x] == 1 and state[x] != IN:
                if state[x] == OUT:
                    return False
                state[x] = IN
                changed = True
            if state[x] == IN:
                inside += work[x]
        if inside + certain > most:
            return False
        if changed:
            continue
        for x in range(n):
            if state[x] != OUT:
                continue
            if before[x] == 1 and spread[x] & 1 == 0:
                spread[x] |= 1
                for y in range(n):
                    if reached[x, y] == 1 and state[y] != OUT:
                        if state[y] == IN:
                            return False
                        state[y] = OUT
                        changed = True
            if after[x] == 1 and spread[x] & 2 == 0:
                spread[x] |= 2
                for y in range(n):
                    if reaches[x, y] == 1 and state[y] != OUT:
                        if state[y] == IN:
                            return False
                        state[y] = OUT
                        changed = True
        spare = most - inside - certain
        certain = np.int64(0)
        for x in range(n):
            dear[x] = 0
        for t in range(m):
            first, last = pin_offsets[t], pin_offsets[t + 1]
            if last - first < 2 or transfer[t] == 0:
                continue
            held, free = known_pins(network, t, state)
            if held + free < last - first:
                apart[t] = 1
            if apart[t] == 0 and free > 0:
                for x in range(n):
                    above[x] = before[x]
                    below[x] = after[x]
                for i in range(first, last):
                    u = pins[i]
                    if state[u] == FREE:
                        above[u] = 1
                        below[u] = 1
                        for x in range(n):
                            above[x] |= reached[u, x]
                            below[x] |= reaches[u, x]
                drawn = np.int64(0)
                for x in range(n):
                    if above[x] == 1 and below[x] == 1 and state[x] != IN:
                        drawn += work[x]
                        if state[x] == OUT:
                            apart[t] = 1
                if drawn > spare:
                    apart[t] = 1
            if apart[t] == 1:
                if held > 0:
                    certain += transfer[t]
                else:
                    for i in range(first, last):
                        dear[pins[i]] += transfer[t]
        if most - inside - certain < spare:
            changed = True  # more tensors may be apart
        spare = most - inside - certain
        if spare < 0:
            return False
        for x in range(n):
            if state[x] != FREE:
                continue
            drawn = work[x]
            if before[x] == 1:
                for y in range(n):
                    if drawn > spare:
                        break
                    if reaches[x, y] == 1 and before[y] == 1 and state[y] != IN:
                        drawn += work[y]
            elif after[x] == 1:
                for y in range(n):
                    if drawn > spare:
                        break
                    if reached[x, y] == 1 and after[y] == 1 and state[y] != IN:
                        drawn += work[y]
            if drawn > spare or work[x] + dear[x] > spare:
                state[x] = OUT
                changed = True
    possible = np.int64(0)
    for x in range(n):
        if state[x] != OUT:
            possible += work[x]
    return bool(possible >= least + certain)
