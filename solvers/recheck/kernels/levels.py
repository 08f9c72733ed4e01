"""Stages and superstages as parts of splits of several levels of devices: for searches that are run again.

A *part* holds the layers between two downsets. All that a split has to know of it is how many devices it uses, what it
adds to the sum of degrees, and its *slack*: how many micro-batches there may be in flight behind it, in parts that come
later. :mod:`mtpp.solvers.recheck.levels` derives it. Shares no code with the planners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.recheck.kernels.stages import (
    Choices,
    crossing_edges,
    layers_between,
    least_cost,
    most_in_flight,
    options_of_stage,
    times_of_options,
)


class Pairs(NamedTuple):
    """Downsets, smaller ones first, and all pairs of one and another that it holds, by the larger and then the smaller.

    Attributes
    ----------
    members
        Bits of the layers in each downset, uint64, (downsets, words).
    outer, inner
        The larger and the smaller downset of each pair, int32.
    below
        Pairs of the larger downset o: positions below[o] to below[o + 1] - 1. int64.
    above, above_pair
        Pairs of the smaller downset i, by the larger: those at positions above[i] to above[i + 1] - 1. int64 and int32.
    place
        Where each pair stands in *above_pair*, int32.
    """

    members: NDArray[np.uint64]
    outer: Int32Array
    inner: Int32Array
    below: Int64Array
    above: Int64Array
    above_pair: Int32Array
    place: Int32Array


class StageKinds(NamedTuple):
    """Degrees that stages may have, by t and then d, and what the limit of time makes of them. int64.

    Attributes
    ----------
    tensor
        The place of t among the degrees t.
    data, uses
        d and d · t.
    most_cost
        The most that d · d times the time of a stage may be.
    most_work, most_compute
        The most that t · compute, and compute alone, of all its layers may come to.
    most_in_flight
        The most micro-batches in flight that come up.
    """

    tensor: Int64Array
    data: Int64Array
    uses: Int64Array
    most_cost: Int64Array
    most_work: Int64Array
    most_compute: Int64Array
    most_in_flight: Int64Array


class SuperstageKinds(NamedTuple):
    """Degrees d that superstages may have, ascending. int64.

    Attributes
    ----------
    degrees, most_cost, table
        d; the most that d · d times the time of a superstage may be; the table of the splits inside.
    """

    degrees: Int64Array
    most_cost: Int64Array
    table: Int64Array


class Parts(NamedTuple):
    """Options of each pair as a part of a split: positions start[q] to start[q + 1] - 1, by devices and then degrees.

    Attributes
    ----------
    start
        int64, (pairs + 1,).
    uses, adds, slack
        Devices, sum of degrees, and micro-batches in flight behind it at most. int32.
    """

    start: Int64Array
    uses: Int32Array
    adds: Int32Array
    slack: Int32Array


class Tables(NamedTuple):
    """Options of each pair inside one device of the next level, for several numbers of copies; one after the other.

    Attributes
    ----------
    start
        By table and by place of the pair in ``above_pair``: where its rows begin; int64, (tables, pairs + 1).
    sums, slack
        Of each row: sum of degrees, ascending for each pair, and micro-batches in flight behind it at most. int32.
    """

    start: Int64Array
    sums: Int32Array
    slack: Int32Array


@kernel
def fit_stages(
    first: int,
    last: int,
    pairs: Pairs,
    weights: Int64Array,
    choices: Choices,
    kinds: StageKinds,
    most_memory: int,
    fits: Int32Array,
) -> int:
    """Find for how many micro-batches in flight stages have room; return how many sets of layers were looked at.

    Parameters
    ----------
    weights
        By downset, of the layers inside: Σ of the least t · compute, of the least compute, and of the least a + b.
        int64, (downsets, 3).
    fits
        By pair and kind: what is known to fit with less time, 0 for nothing; written with what fits now. int32.
    """
    looked_at = 0
    layers_in_all = choices.edge_offsets.shape[0] - 1
    for q in range(first, last):
        high, low = pairs.outer[q], pairs.inner[q]
        work, compute = weights[high, 0] - weights[low, 0], weights[high, 1] - weights[low, 1]
        if weights[high, 2] - weights[low, 2] > most_memory:
            continue
        place = np.int64(-1)
        layers = np.empty(0, np.int32)
        inside = np.empty(0, np.bool_)
        options, offsets, time = np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int64)
        cost = np.empty(0, np.int64)
        edges = 0
        for g in range(kinds.data.shape[0]):
            if (
                fits[q, g] >= kinds.most_in_flight[g]
                or work > kinds.most_work[g]
                or compute > kinds.most_compute[g]
                or kinds.most_in_flight[g] == 0
            ):
                continue
            if layers.shape[0] == 0:
                looked_at += 1
                layers = layers_between(pairs.members[low], pairs.members[high], layers_in_all)
                inside, edges = crossing_edges(layers, choices)
            if place != kinds.tensor[g]:
                place = kinds.tensor[g]
                options, offsets = options_of_stage(layers, choices.offsets[place])
                if options.shape[0] > 0:
                    time = times_of_options(layers, inside, options, offsets, choices)
                    cost = np.empty_like(time)
            if options.shape[0] == 0:
                continue
            d = kinds.data[g]
            budget = kinds.most_cost[g] - d * edges
            for i in range(options.shape[0]):
                cost[i] = d * time[i] + (d - 1) * choices.weights[options[i]]
            if least_cost(offsets, cost) <= budget:
                known, most = fits[q, g], kinds.most_in_flight[g]
                fits[q, g] = most_in_flight(known, 1, most, choices, options, offsets, cost, budget, most_memory)
    return looked_at


@kernel
def stages_as_parts(
    fits: Int32Array, kinds: StageKinds, order: Int64Array, most_sum: int, most_slack: int, exactly: bool, most: int
) -> Parts:
    """Return what pairs may be as stages.

    With ⌈(s + d) / d⌉ micro-batches in flight of its own, s being those behind it, a stage that has room for f of them
    has a slack of d · (f - 1).

    Parameters
    ----------
    order
        The kinds by devices, then degrees.
    most_sum, most_slack
        The largest sum of degrees that comes up, and the largest slack that matters.
    exactly
        Whether sums of degrees have to be met, so that a smaller one is not as good.
    most
        Where there are about so many or more, the end of *start* is -1 and the rest is of no account.
    """
    count = fits.shape[0]
    start = np.zeros(count + 1, np.int64)
    room = 1024
    uses, adds, slack = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    front = np.empty(most_sum + 1, np.int32)
    n = 0
    for q in range(count):
        for x in range(front.shape[0]):
            front[x] = -1
        for g in order:
            d = kinds.data[g]
            fit = min(fits[q, g], kinds.most_in_flight[g])
            if fit == 0 or d > most_sum:
                continue
            left = min(d * (fit - 1), most_slack)
            if not _improves(front, d, left, exactly):
                continue
            if n == room:
                if 2 * room > most:
                    start[count] = -1
                    return Parts(start, uses, adds, slack)
                uses, adds, slack, room = longer(uses), longer(adds), longer(slack), 2 * room
            uses[n], adds[n], slack[n] = kinds.uses[g], d, left
            n += 1
        start[q + 1] = n
    return Parts(start, uses[:n], adds[:n], slack[:n])


@kernel
def superstages_as_parts(
    pairs: Pairs,
    edges: Int64Array,
    weights: Int64Array,
    kinds: SuperstageKinds,
    tables: Tables,
    most_sum: int,
    most_slack: int,
    exactly: bool,
    most: int,
) -> Parts:
    """Return what pairs may be as superstages, each of whose *d* devices runs a split.

    With s micro-batches behind it there are ⌈s / d⌉ behind the split inside: its slack is d times as large.

    Parameters
    ----------
    edges, weights
        By pair: ticks of the edges that cross it, and of its layers' weights.

    Notes
    -----
    Before each row *front* holds the most slack by sum of degrees of the pair's options so far, which end at *n*.
    """
    degrees, most_cost, table = kinds
    count = pairs.outer.shape[0]
    start = np.zeros(count + 1, np.int64)
    room = 1024
    uses, adds, slack = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    front = np.empty(most_sum + 1, np.int32)
    n = 0
    for q in range(count):
        for x in range(front.shape[0]):
            front[x] = -1
        for g in range(degrees.shape[0]):
            d = degrees[g]
            if d * edges[q] + (d - 1) * weights[q] > most_cost[g]:
                continue
            for r in range(tables.start[table[g], pairs.place[q]], tables.start[table[g], pairs.place[q] + 1]):
                if d * tables.sums[r] > most_sum:
                    break
                left = min(d * tables.slack[r], most_slack)
                if not _improves(front, d * tables.sums[r], left, exactly):
                    continue
                if n == room:
                    if 2 * room > most:
                        start[count] = -1
                        return Parts(start, uses, adds, slack)
                    uses, adds, slack, room = longer(uses), longer(adds), longer(slack), 2 * room
                uses[n], adds[n], slack[n] = d, d * tables.sums[r], left
                n += 1
        start[q + 1] = n
    return Parts(start, uses[:n], adds[:n], slack[:n])


@subroutine
def _improves(front: Int32Array, total: int, slack: int, exactly: bool) -> bool:
    """Note a sum of degrees with its slack; return False if one that uses no more devices is as good.

    *front* holds the most slack by sum of degrees; of all sums up to that one, unless they have to be met exactly.
    """
    if front[total] >= slack:
        return False
    front[total] = slack
    if not exactly:
        for x in range(total + 1, front.shape[0]):
            if front[x] >= slack:
                break
            front[x] = slack
    return True


@kernel
def longer(values: Int32Array) -> Int32Array:
    """Return a copy with room for twice as many."""
    long = np.empty(2 * values.shape[0], np.int32)
    for i in range(values.shape[0]):
        long[i] = values[i]
    return long


@kernel
def crossing_ticks(pairs: Pairs, sources: Int64Array, targets: Int64Array, ticks: Int64Array) -> Int64Array:
    """Return for each pair the ticks of all edges with one end among its layers. O(pairs · edges)."""
    found = np.zeros(pairs.outer.shape[0], np.int64)
    one = np.uint64(1)
    for q in range(found.shape[0]):
        high, low = pairs.members[pairs.outer[q]], pairs.members[pairs.inner[q]]
        for e in range(ticks.shape[0]):
            u, v = sources[e], targets[e]
            begins = (high[u // 64] & ~low[u // 64]) >> np.uint64(u % 64) & one
            ends = (high[v // 64] & ~low[v // 64]) >> np.uint64(v % 64) & one
            if begins != ends:
                found[q] += ticks[e]
    return found
