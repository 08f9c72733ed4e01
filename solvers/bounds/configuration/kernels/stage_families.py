"""Sets of ops that can be a stage, in families: what follows for each, and how much it can hold, by minimum cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray, best_mixture, best_multipliers
from mtpp.solvers.flows.kernels.max_flow import FlowArcs, FlowScratch, max_flow
from mtpp.solvers.jit import kernel

Int8Array = NDArray[np.int8]

FREE, IN, OUT = 0, 1, 2
"""What is known of an op: nothing, that every set of the family holds it, or that none does."""

CUT, PIN, UP, DOWN = 0, 1, 2, 3
"""What an arc of the network stands for: a tensor that is cut, one of its pins, an op that draws another in as it is on
the way to (or from) an op of the set."""

WITHOUT_END = 2**60

_REMEMBERED = 10
"""Sets of a family that the search for its multipliers begins with; it goes on until there is no place for more."""

_STEEPEST = 64.0
"""Largest multiplier: a larger one would hardly help, and is found with pains."""


class StageNetwork(NamedTuple):
    """The network of the cuts, one node per op and two per tensor of more than two; one per instance.

    Attributes
    ----------
    arcs
        As :func:`~mtpp.solvers.flows.kernels.max_flow.max_flow` takes them.
    kind, item
        What each arc is that is no reverse, and the tensor or edge whose it is, int32.
    tail, head
        The two ops of each edge, int32.
    work
        Ticks of each op, int64, shape (n,).
    transfer
        Ticks of each tensor, int64, shape (m,).
    pin_offsets, pins
        Ops that touch each tensor, CSR, int64 and int32.
    """

    arcs: FlowArcs
    kind: Int32Array
    item: Int32Array
    tail: Int32Array
    head: Int32Array
    work: Int64Array
    transfer: Int64Array
    pin_offsets: Int64Array
    pins: Int32Array


class Families(NamedTuple):
    """What is known of some families.

    Attributes
    ----------
    state
        Of each op in each family, int8, shape (families, n).
    before, after
        1 where an op is on the way to (from) an op of every set, or is one itself; int8, shape (families, n).
    """

    state: Int8Array
    before: Int8Array
    after: Int8Array


class SetCache(NamedTuple):
    """Sets of each family that were met on the way.

    Attributes
    ----------
    inside
        1 for the ops of a set, int8, shape (families, places, n).
    work, cut
        Its work, and the transfers of the tensors that it cuts, int64, shape (families, places).
    met
        Sets of each family, int64, shape (families,).
    """

    inside: Int8Array
    work: Int64Array
    cut: Int64Array
    met: Int64Array


class Fill(NamedTuple):
    """How much the sets of each family can hold of some weights.

    Attributes
    ----------
    value
        No set that keeps to budget and rest holds more, float64, shape (families,).
    budget, rest
        Multipliers that show it, per *most*, float64, shape (families,).
    mixture
        Share of each op in the mixture of sets that holds about as much, float64, shape (families, n).
    strain
        By how much its sets break budget and rest, the mixture's average, float64, shape (families,); per *most*.
    """

    value: FloatArray
    budget: FloatArray
    rest: FloatArray
    mixture: FloatArray
    strain: FloatArray


@kernel
def close_family(
    reaches: Int8Array, reached: Int8Array, work: Int64Array, most: int, least: int, state: Int8Array,
    before: Int8Array, after: Int8Array,
) -> bool:  # fmt: skip
    """Conclude from what is known of a family what else has to be so, until nothing changes.

    Parameters
    ----------
    reaches
        1 where there is a path from the op of the row to that of the column; int8, shape (n, n).
    reached
        Its transpose.
    most, least
        Work of a set at most, and at least.
    state, before, after
        Of one family; *state* is given and changed, the other two are results.

    Returns
    -------
    Whether the family may hold any set.

    Notes
    -----
    O(n²) for each op that becomes known.
    """
    n = len(work)
    taken = np.zeros(n, dtype=np.int8)  # ops whose paths are in before and after
    spread = np.zeros(n, dtype=np.int8)  # ops left out whose ancestors (1) or descendants (2) are left out too
    for x in range(n):
        before[x] = 0
        after[x] = 0
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
        if inside > most:
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
        for x in range(n):
            if state[x] != FREE:
                continue
            drawn = inside + work[x]
            if before[x] == 1:
                for y in range(n):
                    if drawn > most:
                        break
                    if reaches[x, y] == 1 and before[y] == 1 and state[y] != IN:
                        drawn += work[y]
            elif after[x] == 1:
                for y in range(n):
                    if drawn > most:
                        break
                    if reached[x, y] == 1 and after[y] == 1 and state[y] != IN:
                        drawn += work[y]
            if drawn > most:
                state[x] = OUT
                changed = True
    possible = np.int64(0)
    for x in range(n):
        if state[x] != OUT:
            possible += work[x]
    return bool(possible >= least)


@kernel
def family_flow(
    network: StageNetwork, state: Int8Array, before: Int8Array, after: Int8Array, gain: Int64Array,
    capacity: Int64Array, residual: Int64Array, level: Int32Array, enough: np.int64,
) -> int:  # fmt: skip
    """Return a flow's value: no set of the family has more of Σ gain − Σ capacity of what it cuts than P − that.

    P is the gain of all ops IN, and of all free ones with a gain above 0.

    Parameters
    ----------
    gain
        Of each op in the set, int64, shape (n,).
    capacity
        Of each tensor, int64, shape (m,).
    residual
        Scratch, int64, one per arc; holds the flow afterwards, at the reverses.
    level
        At least 0 afterwards for the nodes on the source's side of the least minimum cut, else −1; int32.
    enough
        The flow need not be larger.
    """
    for i in range(len(network.kind)):
        kind = network.kind[i]
        j = network.item[i]
        limit = np.int64(0)
        if kind == CUT:
            limit = capacity[j]
        elif kind == PIN:
            limit = np.int64(WITHOUT_END)
        elif kind == UP:
            if before[network.tail[j]] == 1 and before[network.head[j]] == 1:
                limit = np.int64(WITHOUT_END)
        elif after[network.tail[j]] == 1 and after[network.head[j]] == 1:
            limit = np.int64(WITHOUT_END)
        residual[network.arcs.forward[i]] = limit
        residual[network.arcs.backward[i]] = 0
    inject = np.zeros(len(state), dtype=np.int64)
    absorb = np.zeros(len(state), dtype=np.int64)
    for u in range(len(state)):
        if state[u] == IN:
            inject[u] = WITHOUT_END
        elif state[u] == OUT:
            absorb[u] = WITHOUT_END
        elif state[u] == FREE:
            inject[u] = max(np.int64(0), gain[u])
            absorb[u] = max(np.int64(0), -gain[u])
    room = len(network.arcs.offsets)
    queue, at, path = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int32)
    scratch = FlowScratch(level, queue, at, path)
    return max_flow(network.arcs, residual, inject, absorb, scratch, int(enough), True)


@kernel
def fill_families(
    network: StageNetwork, families: Families, which: Int32Array, weight: FloatArray, most: float, least: float,
    scale: float, tolerance: float, cache: SetCache, fill: Fill,
) -> int:  # fmt: skip
    """Find how much weight the sets of some families can hold, by the best multipliers of budget and rest for each.

    Parameters
    ----------
    which
        Numbers of the families, int32.
    weight
        Of each op, float64, shape (n,).
    most, least
        Of ``work(S) + cut(S)``, and of ``work(S) − cut(S)``.
    scale
        Weights are rounded to multiples of 1 / scale, always so that the value can only be too high.
    tolerance
        How far the value may be above the best.
    cache
        Where to begin; grows by the sets that are met.

    Returns
    -------
    Number of minimum cuts.

    Notes
    -----
    Cutting planes in the two multipliers of a family; a minimum cut per plane.
    """
    n, m = len(network.work), len(network.transfer)
    places = cache.work.shape[1]
    gain = np.empty(n, dtype=np.int64)
    capacity = np.empty(m, dtype=np.int64)
    residual = np.empty(2 * len(network.kind), dtype=np.int64)
    level = np.empty(len(network.arcs.offsets) - 1, dtype=np.int32)
    side = np.empty(n, dtype=np.int8)
    held = np.empty(places + 1, dtype=np.float64)
    over = np.empty(places + 1, dtype=np.float64)
    under = np.empty(places + 1, dtype=np.float64)
    chosen = np.zeros(6, dtype=np.float64)
    cuts = 0
    for index in range(len(which)):
        f = which[index]
        state = families.state[f]
        for i in range(cache.met[f]):
            held[i] = 0.0
            for u in range(n):
                if cache.inside[f, i, u] == 1:
                    held[i] += weight[u]
            over[i] = (cache.work[f, i] + cache.cut[f, i] - most) / most
            under[i] = (least - cache.work[f, i] + cache.cut[f, i]) / most
        budget, rest = fill.budget[f], fill.rest[f]
        if cache.met[f] > _REMEMBERED:  # those that mattered most the last time are enough to begin with
            for place in range(_REMEMBERED):
                highest = place
                for i in range(place + 1, cache.met[f]):
                    height = held[i] - budget * over[i] - rest * under[i]
                    if height > held[highest] - budget * over[highest] - rest * under[highest]:
                        highest = i
                if highest != place:
                    held[place], held[highest] = held[highest], held[place]
                    over[place], over[highest] = over[highest], over[place]
                    under[place], under[highest] = under[highest], under[place]
                    cache.work[f, place], cache.work[f, highest] = cache.work[f, highest], cache.work[f, place]
                    cache.cut[f, place], cache.cut[f, highest] = cache.cut[f, highest], cache.cut[f, place]
                    for u in range(n):
                        inside = cache.inside[f, place, u]
                        cache.inside[f, place, u] = cache.inside[f, highest, u]
                        cache.inside[f, highest, u] = inside
            cache.met[f] = _REMEMBERED
        best = np.inf
        for _ in range(places + 1):
            count = cache.met[f]
            least_known = best_multipliers(held, over, under, count, _STEEPEST, chosen)
            if count > 0:
                budget, rest = chosen[0], chosen[1]
            for u in range(n):
                gain[u] = np.int64(np.ceil(scale * (weight[u] - (budget - rest) / most * network.work[u])))
            for t in range(m):
                capacity[t] = np.int64(np.floor(scale * (budget + rest) / most * network.transfer[t]))
            flow = family_flow(
                network, state, families.before[f], families.after[f], gain, capacity, residual, level, np.int64(2**62)
            )
            cuts += 1
            total = np.int64(0)
            for u in range(n):
                if state[u] == IN or (state[u] == FREE and gain[u] > 0):
                    total += gain[u]
            value = (total - flow) / scale + budget - rest * least / most
            if value < best:
                best = value
                fill.budget[f], fill.rest[f] = budget, rest
            if value <= least_known + tolerance:
                break
            for u in range(n):
                side[u] = 1 if level[u] >= 0 else 0
            if count == places:
                break
            place = count
            cache.met[f] += 1
            work = np.int64(0)
            held[place] = 0.0
            for u in range(n):
                cache.inside[f, place, u] = side[u]
                if side[u] == 1:
                    work += network.work[u]
                    held[place] += weight[u]
            cut = np.int64(0)
            for t in range(m):
                touched = np.int64(0)
                for j in range(network.pin_offsets[t], network.pin_offsets[t + 1]):
                    touched += side[network.pins[j]]
                if 0 < touched < network.pin_offsets[t + 1] - network.pin_offsets[t]:
                    cut += network.transfer[t]
            cache.work[f, place] = work
            cache.cut[f, place] = cut
            over[place] = (work + cut - most) / most
            under[place] = (least - work + cut) / most
        fill.value[f] = best
        fill.strain[f] = 0.0
        for u in range(n):
            fill.mixture[f, u] = 0.0
        if best_mixture(held, over, under, cache.met[f], chosen):
            for part in range(3):
                i, share = int(chosen[part]), chosen[3 + part]
                fill.strain[f] += share * (max(0.0, over[i]) + max(0.0, under[i]))
                for u in range(n):
                    fill.mixture[f, u] += share * cache.inside[f, i, u]
    return cuts
