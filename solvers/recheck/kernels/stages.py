"""A stage of a training pipeline as searches that are run again see it: layers, their options, and memory.

Shares no code with the planners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine


class Choices(NamedTuple):
    """Ways to run each layer, and its edges.

    Attributes
    ----------
    offsets
        Ways of layer v for the degree at place p among the degrees t: positions offsets[p, v] to offsets[p, v + 1] - 1.
    compute, weights, a, b
        Of each way, int64.
    edge_offsets, edge_end, edge_ticks
        Edges at each layer, in and out: the layer at the other end, and what it takes when it crosses. CSR.
    sync
        By way, then by place of the edge among those at its layer: what bringing the tensor to all t devices takes.
    """

    offsets: Int64Array
    compute: Int64Array
    weights: Int64Array
    a: Int64Array
    b: Int64Array
    edge_offsets: Int64Array
    edge_end: Int32Array
    edge_ticks: Int64Array
    sync: Int64Array


@subroutine
def layers_between(low: NDArray[np.uint64], high: NDArray[np.uint64], layers: int) -> Int32Array:
    """Return the layers, of so many in all, that one downset holds and a smaller one does not."""
    found = np.empty(layers, np.int32)
    count = 0
    for v in range(layers):
        bit = np.uint64(1) << np.uint64(v % 64)
        if high[v // 64] & ~low[v // 64] & bit:
            found[count] = v
            count += 1
    return found[:count]


@subroutine
def crossing_edges(layers: Int32Array, choices: Choices) -> tuple[NDArray[np.bool_], int]:
    """Return for each layer whether it is one of *layers*, and the ticks of all edges with one end among them."""
    inside = np.zeros(choices.edge_offsets.shape[0] - 1, np.bool_)
    for v in layers:
        inside[v] = True
    edges = 0
    for v in layers:
        for e in range(choices.edge_offsets[v], choices.edge_offsets[v + 1]):
            if not inside[choices.edge_end[e]]:
                edges += choices.edge_ticks[e]
    return inside, edges


@subroutine
def options_of_stage(layers: Int32Array, offsets: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the ways of all layers of a stage, one after the other, and where each layer's begin; or nothing."""
    total = 0
    for v in layers:
        if offsets[v] == offsets[v + 1]:
            return np.empty(0, np.int64), np.zeros(1, np.int64)
        total += offsets[v + 1] - offsets[v]
    options = np.empty(total, np.int64)
    begin = np.zeros(layers.shape[0] + 1, np.int64)
    count = 0
    for place in range(layers.shape[0]):
        for option in range(offsets[layers[place]], offsets[layers[place] + 1]):
            options[count] = option
            count += 1
        begin[place + 1] = count
    return options, begin


@subroutine
def times_of_options(
    layers: Int32Array, inside: NDArray[np.bool_], options: Int64Array, offsets: Int64Array, choices: Choices
) -> Int64Array:
    """Return what each option of :func:`options_of_stage` takes: compute, and syncs of the edges that cross."""
    time = np.empty(options.shape[0], np.int64)
    for place in range(layers.shape[0]):
        v = layers[place]
        for i in range(offsets[place], offsets[place + 1]):
            time[i] = choices.compute[options[i]]
            for e in range(choices.edge_offsets[v], choices.edge_offsets[v + 1]):
                if not inside[choices.edge_end[e]]:
                    time[i] += choices.sync[options[i], e - choices.edge_offsets[v]]
    return time


@kernel
def least_cost(offsets: Int64Array, cost: Int64Array) -> int:
    """Return the sum of the least cost of each layer."""
    total = 0
    for place in range(offsets.shape[0] - 1):
        quickest = cost[offsets[place]]
        for i in range(offsets[place] + 1, offsets[place + 1]):
            quickest = min(quickest, cost[i])
        total += quickest
    return total


@subroutine
def has_room(
    in_flight: int,
    choices: Choices,
    options: Int64Array,
    offsets: Int64Array,
    cost: Int64Array,
    most_cost: int,
    most_memory: int,
) -> bool:
    """Tell whether ways can be chosen within a cost and a memory, with so many micro-batches in flight."""
    memory = np.empty_like(cost)
    for i in range(options.shape[0]):
        memory[i] = choices.a[options[i]] * in_flight + choices.b[options[i]]
    return can_choose(offsets, cost, memory, most_cost, most_memory)


@subroutine
def most_in_flight(
    known: int,
    least: int,
    most: int,
    choices: Choices,
    options: Int64Array,
    offsets: Int64Array,
    cost: Int64Array,
    most_cost: int,
    most_memory: int,
) -> int:
    """Return for how many micro-batches in flight there is room, from *least* to *most*; *known* fit; 0 for none.

    Memory grows with that number: while it is halved, there is room for *known* and none for *most*.
    """
    if has_room(most, choices, options, offsets, cost, most_cost, most_memory):
        return most
    if known == 0:
        if least == most or not has_room(least, choices, options, offsets, cost, most_cost, most_memory):
            return 0
        known = least
    while most - known > 1:
        middle = (known + most) // 2
        if has_room(middle, choices, options, offsets, cost, most_cost, most_memory):
            known = middle
        else:
            most = middle
    return known


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
