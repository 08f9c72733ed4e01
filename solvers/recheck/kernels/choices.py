"""Exact decision if configurations can be chosen for the layers of a stage within a time and a memory.

Part of ``verify --deep`` for training plans; shares no code with the planners.
"""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel, subroutine


@kernel
def can_choose(offsets: Int64Array, cost: Int64Array, memory: Int64Array, most_cost: int, most_memory: int) -> bool:
    """Return whether one option for each layer can be chosen that keeps both sums within their limits.

    Parameters
    ----------
    offsets
        Options of layer v: positions offsets[v] to offsets[v + 1] - 1; every layer has some. int64, (layers + 1,).
    cost, memory
        Of each option, at least 0. int64.

    Notes
    -----
    Layers one after the other, all pairs of sums that can still end within the limits are kept, except those that
    another pair is no worse than in both. Exponential in the number of layers at worst; both limits keep the pairs few
    where they are tight.
    """
    layers = offsets.shape[0] - 1
    # By layer: cost and memory of the cheapest option, of several the leanest; and the other way round.
    cheap = np.empty((layers, 2), np.int64)
    lean = np.empty((layers, 2), np.int64)
    all_cheap_cost, all_cheap_memory, all_lean_cost, all_lean_memory = 0, 0, 0, 0
    for v in range(layers):
        a = offsets[v]
        b = a
        for c in range(offsets[v] + 1, offsets[v + 1]):
            if cost[c] < cost[a] or (cost[c] == cost[a] and memory[c] < memory[a]):
                a = c
            if memory[c] < memory[b] or (memory[c] == memory[b] and cost[c] < cost[b]):
                b = c
        cheap[v, 0], cheap[v, 1] = cost[a], memory[a]
        lean[v, 0], lean[v, 1] = cost[b], memory[b]
        all_cheap_cost += cost[a]
        all_cheap_memory += memory[a]
        all_lean_cost += cost[b]
        all_lean_memory += memory[b]
    if all_cheap_cost > most_cost or all_lean_memory > most_memory:
        return False
    if all_cheap_memory <= most_memory or all_lean_cost <= most_cost:
        return True
    order = _by_range(cheap, lean)
    sums = np.zeros((1, 2), np.int64)
    for v in order:
        # What all layers after this one take at least.
        all_cheap_cost -= cheap[v, 0]
        all_cheap_memory -= cheap[v, 1]
        all_lean_cost -= lean[v, 0]
        all_lean_memory -= lean[v, 1]
        merged = np.empty((0, 2), np.int64)
        for c in range(offsets[v], offsets[v + 1]):
            moved = np.empty_like(sums)
            count = 0
            for i in range(sums.shape[0]):
                spent, held = sums[i, 0] + cost[c], sums[i, 1] + memory[c]
                if spent + all_cheap_cost > most_cost or held + all_lean_memory > most_memory:
                    continue
                if spent + all_lean_cost <= most_cost or held + all_cheap_memory <= most_memory:
                    return True
                moved[count, 0], moved[count, 1] = spent, held
                count += 1
            merged = _undominated(merged, moved[:count])
        sums = merged
        if sums.shape[0] == 0:
            return False
    return True


@subroutine
def _by_range(cheap: Int64Array, lean: Int64Array) -> Int64Array:
    """Return the layers, first those whose choice makes the largest difference in memory: the rest can do little."""
    order = np.arange(cheap.shape[0])
    for i in range(1, order.shape[0]):
        v = order[i]
        difference = cheap[v, 1] - lean[v, 1]
        j = i
        while j > 0 and cheap[order[j - 1], 1] - lean[order[j - 1], 1] < difference:
            order[j] = order[j - 1]
            j -= 1
        order[j] = v
    return order


@subroutine
def _undominated(left: Int64Array, right: Int64Array) -> Int64Array:
    """Merge two lists of pairs, of rising cost and falling memory, without pairs that another is no worse than."""
    merged = np.empty((left.shape[0] + right.shape[0], 2), np.int64)
    count, i, j = 0, 0, 0
    while i < left.shape[0] or j < right.shape[0]:
        from_left = j == right.shape[0] or (
            i < left.shape[0]
            and (left[i, 0] < right[j, 0] or (left[i, 0] == right[j, 0] and left[i, 1] <= right[j, 1]))
        )
        if from_left:
            spent, held = left[i, 0], left[i, 1]
            i += 1
        else:
            spent, held = right[j, 0], right[j, 1]
            j += 1
        if count == 0 or held < merged[count - 1, 1]:
            merged[count, 0], merged[count, 1] = spent, held
            count += 1
    return merged[:count]
