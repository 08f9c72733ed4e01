"""Sets of ops that can be a stage, in families: what follows for each, and how much it can hold, by minimum cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray, best_mixture, best_multipliers
from mtpp.solvers.bounds.configuration.kernels.stage_network import (
    CUT,
    FREE,
    IN,
    OUT,
    PIN,
    UP,
    Int8Array,
    StageNetwork,
    known_pins,
    work_and_cut,
)
from mtpp.solvers.flows.kernels.max_flow import FlowScratch, max_flow
from mtpp.solvers.jit import kernel

WITHOUT_END = 2**60

_REMEMBERED = 10
"""Sets of a family that the search for its multipliers begins with; it goes on until there is no place for more."""

_STEEPEST = 64.0
"""Largest multiplier: a larger one would hardly help, and is found with pains."""


class Families(NamedTuple):
    """What is known of some families.

    Attributes
    ----------
    state
        Of each op in each family, int8, shape (families, n).
    before, after
        1 where an op is on the way to (from) an op of every set, or is one itself; int8, shape (families, n).
    apart
        1 where no set holds all ops that touch a tensor; int8, shape (families, m).
    """

    state: Int8Array
    before: Int8Array
    after: Int8Array
    apart: Int8Array

    def known(self, f: int) -> tuple[Int8Array, Int8Array, Int8Array, Int8Array]:
        """Return the rows of one family."""
        return self.state[f], self.before[f], self.after[f], self.apart[f]


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
    """

    value: FloatArray
    budget: FloatArray
    rest: FloatArray
    mixture: FloatArray


@kernel
def family_flow(
    network: StageNetwork, state: Int8Array, before: Int8Array, after: Int8Array, apart: Int8Array, gain: Int64Array,
    capacity: Int64Array, residual: Int64Array, level: Int32Array, enough: np.int64,
) -> int:  # fmt: skip
    """Return a flow's value: no set of the family has more of Σ gain − Σ capacity of what it cuts than P − that.

    P is the gain of all ops IN, and of all free ones with a gain above 0. A tensor apart takes its capacity from the
    ops that touch it and lets nothing out: at once if one of them is IN, from each free one if they are two.

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
            limit = capacity[j] if apart[j] == 0 else np.int64(0)
        elif kind == PIN:
            limit = np.int64(WITHOUT_END)
        elif kind == UP:
            if before[network.tail[j]] == 1 and before[network.head[j]] == 1:
                limit = np.int64(WITHOUT_END)
        elif after[network.tail[j]] == 1 and after[network.head[j]] == 1:
            limit = np.int64(WITHOUT_END)
        residual[network.arcs.forward[i]] = limit
        residual[network.arcs.backward[i]] = 0
    inject = np.zeros(len(level), dtype=np.int64)
    absorb = np.zeros(len(level), dtype=np.int64)
    for u in range(len(state)):
        if state[u] == IN:
            inject[u] = WITHOUT_END
        elif state[u] == OUT:
            absorb[u] = WITHOUT_END
        else:
            inject[u] = max(np.int64(0), gain[u])
            absorb[u] = max(np.int64(0), -gain[u])
    paid = np.int64(0)
    for t in range(len(apart)):
        if apart[t] == 0:
            continue
        if known_pins(network, t, state)[0] > 0:
            paid += capacity[t]
        elif network.node[t] >= 0:
            absorb[network.node[t]] = capacity[t]
        else:
            for i in range(network.pin_offsets[t], network.pin_offsets[t + 1]):
                if state[network.pins[i]] == FREE:
                    absorb[network.pins[i]] += capacity[t]
    room = len(network.arcs.offsets)
    queue, at, path = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int32)
    scratch = FlowScratch(level, queue, at, path)
    flow = max_flow(network.arcs, residual, inject, absorb, scratch, int(enough - paid), True)
    return int(paid + flow)


class Scratch(NamedTuple):
    """Room to fill one family at a time; see :func:`room_to_fill`.

    Attributes
    ----------
    gain, capacity, residual, level
        Of a minimum cut.
    held, over, under
        Of the sets that are known.
    """

    gain: Int64Array
    capacity: Int64Array
    residual: Int64Array
    level: Int32Array
    held: FloatArray
    over: FloatArray
    under: FloatArray


@kernel
def room_to_fill(network: StageNetwork, places: int) -> Scratch:
    """Return scratch for families with so many sets each."""
    return Scratch(
        np.empty(len(network.work), dtype=np.int64),
        np.empty(len(network.transfer), dtype=np.int64),
        np.empty(2 * len(network.kind), dtype=np.int64),
        np.empty(len(network.arcs.offsets) - 1, dtype=np.int32),
        np.empty(places + 1, dtype=np.float64),
        np.empty(places + 1, dtype=np.float64),
        np.empty(places + 1, dtype=np.float64),
    )


@kernel
def fill_family(
    network: StageNetwork, families: Families, f: int, weight: FloatArray, most: float, least: float, scale: float,
    tolerance: float, light: float, decide: float, cache: SetCache, fill: Fill, scratch: Scratch,
) -> int:  # fmt: skip
    """Find how much weight the sets of a family can hold, by the best multipliers of budget and rest.

    Parameters
    ----------
    light
        A value that is at most this need not be the best.
    decide
        If above 0, it is enough to know whether the value is at most this.

    Others are as in :func:`fill_families`.

    Returns
    -------
    Number of minimum cuts.
    """
    gain, capacity, residual, level, held, over, under = scratch
    n, m = len(network.work), len(network.transfer)
    places = cache.work.shape[1]
    chosen = np.zeros(6, dtype=np.float64)
    cuts = 0
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
            if 0.0 < decide < least_known - tolerance and best < np.inf:
                break
        for u in range(n):
            gain[u] = np.int64(np.ceil(scale * (weight[u] - (budget - rest) / most * network.work[u])))
        for t in range(m):
            capacity[t] = np.int64(np.floor(scale * (budget + rest) / most * network.transfer[t]))
        flow = family_flow(
            network, state, families.before[f], families.after[f], families.apart[f], gain, capacity, residual, level,
            np.int64(2**62),
        )  # fmt: skip
        cuts += 1
        total = np.int64(0)
        for u in range(n):
            if state[u] == IN or (state[u] == FREE and gain[u] > 0):
                total += gain[u]
        value = (total - flow) / scale + budget - rest * least / most
        if value < best:
            best = value
            fill.budget[f], fill.rest[f] = budget, rest
        if value <= least_known + tolerance or best <= max(light, decide) or count == places:
            break
        place = count
        cache.met[f] += 1
        held[place] = 0.0
        for u in range(n):
            cache.inside[f, place, u] = 1 if level[u] >= 0 else 0
            if level[u] >= 0:
                held[place] += weight[u]
        work, cut = work_and_cut(network, cache.inside[f, place], families.apart[f])
        cache.work[f, place] = work
        cache.cut[f, place] = cut
        over[place] = (work + cut - most) / most
        under[place] = (least - work + cut) / most
    fill.value[f] = best
    for u in range(n):
        fill.mixture[f, u] = 0.0
    if best > decide and best_mixture(held, over, under, cache.met[f], chosen):
        for part in range(3):
            i, share = int(chosen[part]), chosen[3 + part]
            for u in range(n):
                fill.mixture[f, u] += share * cache.inside[f, i, u]
    return cuts


@kernel
def fill_families(
    network: StageNetwork, families: Families, which: Int32Array, weight: FloatArray, most: float, least: float,
    scale: float, tolerance: float, light: float, cache: SetCache, fill: Fill,
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
    light
        A value that is at most this need not be the best.
    cache
        Where to begin; grows by the sets that are met.

    Returns
    -------
    Number of minimum cuts.

    Notes
    -----
    Cutting planes in the two multipliers of a family; a minimum cut per plane.
    """
    scratch = room_to_fill(network, cache.work.shape[1])
    cuts = 0
    for f in which:
        cuts += fill_family(
            network, families, f, weight, most, least, scale, tolerance, light, 0.0, cache, fill, scratch
        )
    return cuts
