"""Fronts of a scan: for each state, ticks paid and worth gathered so far, of which none beats another in both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.kernels.layers import INSIDE, LABELS, Layers
from mtpp.solvers.jit import inlined, kernel, subroutine

NONE = -(2**62)
"""Worth where there is no way."""

FEW = 4096
"""Entries that there is room for to begin with."""

EXACT, FULL = 0, 1
"""Fronts are whole, or there was no room for all of them."""


class Arcs(NamedTuple):
    """Arcs by the state that they lead to, and by the one that they come from.

    Attributes
    ----------
    offsets, source, label
        CSR by target: the first array int64, shape (states + 1,), the others int32.
    layer
        Layer of each state, int32.
    """

    offsets: Int64Array
    source: Int32Array
    label: Int32Array
    layer: Int32Array


class Slope(NamedTuple):
    """A price of ticks, and how the values of Lagrangian relaxation are counted.

    The value of ticks c and worth w is (w << shift) − price · c.
    """

    price: int
    shift: int


class Fronts(NamedTuple):
    """Entries of each state, in increasing ticks and worth.

    Attributes
    ----------
    offsets
        First entry of each state, int64, shape (states + 1,).
    cost, worth
        int64.
    state
        :data:`EXACT` or :data:`FULL`.
    """

    offsets: Int64Array
    cost: Int64Array
    worth: Int64Array
    state: int


@kernel
def arcs_of(layers: Layers) -> Arcs:
    """Return the arcs of some layers by target; O(states)."""
    count, n = len(layers.target), len(layers.offsets) - 2
    offsets = np.zeros(count + 1, dtype=np.int64)
    layer = np.empty(count, dtype=np.int32)
    for i in range(n + 1):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            layer[q] = i
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    offsets[to + 1] += 1
    for q in range(count):
        offsets[q + 1] += offsets[q]
    at = offsets[:-1].copy()
    source = np.empty(offsets[count], dtype=np.int32)
    labels = np.empty(offsets[count], dtype=np.int32)
    for q in range(count):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0:
                source[at[to]], labels[at[to]] = q, label
                at[to] += 1
    return Arcs(offsets, source, labels, layer)


@kernel
def values_ahead(layers: Layers, worth: Int64Array, slope: Slope) -> Int64Array:
    """Return the best value of a way from each state to the last layer, int64, shape (states,); O(states).

    Parameters
    ----------
    worth
        Of each label of each op, by position, int64, shape (n, 3).
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    best = np.full(count, NONE, dtype=np.int64)
    for q in range(layers.offsets[n], count):
        best[q] = 0
    for i in range(n - 1, -1, -1):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    value = (worth[i, label] << slope.shift) - slope.price * layers.cost[q, label] + best[to]
                    best[q] = max(best[q], value)
    return best


@kernel
def prices_of(slope: Slope) -> Int64Array:
    """Return the price of a slope and lower ones, int64, shape (prices,).

    Of ways that have paid much already, the rest of a good one is dear for what it is worth: each price keeps fronts
    short somewhere.
    """
    return np.array([slope.price, slope.price * 3 // 4, slope.price // 2])


@kernel
def rests_ahead(layers: Layers, worth: Int64Array, slope: Slope) -> Int64Array:
    """Return the best values of ways from each state to the last layer, at each price, int64, shape (states, prices).

    O(states · prices).
    """
    prices = prices_of(slope)
    count, n = len(layers.target), len(layers.offsets) - 2
    best = np.full((count, len(prices)), NONE, dtype=np.int64)
    for q in range(layers.offsets[n], count):
        best[q] = 0
    for i in range(n - 1, -1, -1):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    for x in range(len(prices)):
                        value = (worth[i, label] << slope.shift) - prices[x] * layers.cost[q, label] + best[to, x]
                        best[q, x] = max(best[q, x], value)
    return best


@kernel
def rests_behind(layers: Layers, worth: Int64Array, slope: Slope) -> Int64Array:
    """Return the best values of ways from the first layer to each state, at each price, int64, shape (states, prices).

    O(states · prices).
    """
    prices = prices_of(slope)
    best = np.full((len(layers.target), len(prices)), NONE, dtype=np.int64)
    best[:1] = 0
    for i in range(len(layers.offsets) - 2):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            pass_on(layers, worth, prices, slope.shift, i, q, best)
    return best


@inlined
def pass_on(
    layers: Layers, worth: Int64Array, prices: Int64Array, shift: int, i: int, q: int, best: Int64Array
) -> None:
    """Raise the best values of the states that a state of the op at position *i* leads to."""
    if best[q, 0] > NONE:
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0:
                for x in range(len(prices)):
                    value = best[q, x] + (worth[i, label] << shift) - prices[x] * layers.cost[q, label]
                    best[to, x] = max(best[to, x], value)


@inlined
def in_reach(cost: int, worth: int, prices: Int64Array, shift: int, rest: Int64Array, q: int, need: Int64Array) -> bool:
    """Tell whether an entry of a state may be part of a way that is worth enough, as far as any price tells."""
    good = True
    for x in range(len(prices)):
        good &= (worth << shift) - prices[x] * cost + rest[q, x] >= need[x]
    return good


@kernel
def best_way(layers: Layers, worth: Int64Array, slope: Slope, ahead: Int64Array, labels: Int32Array) -> tuple[int, int]:
    """Write the labels of a way of the best value, and return its ticks and worth; O(n).

    Parameters
    ----------
    ahead
        As :func:`values_ahead` returns it.
    labels
        By position, int32, shape (n,).
    """
    q = cost = gained = np.int64(0)
    for i in range(len(layers.offsets) - 2):
        best, taken = np.int64(NONE), np.int64(-1)
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0:
                value = (worth[i, label] << slope.shift) - slope.price * layers.cost[q, label] + ahead[to]
                if taken < 0 or value > best:
                    best, taken = value, np.int64(label)
        cost += layers.cost[q, taken]
        gained += worth[i, taken]
        labels[i] = taken
        q = np.int64(layers.target[q, taken])
    return int(cost), int(gained)


class Entries(NamedTuple):
    """Ticks and worths of entries, with room for more, int64."""

    cost: Int64Array
    worth: Int64Array


@subroutine
def room_for(size: int) -> Entries:
    """Return entries of no meaning."""
    return Entries(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64))


@inlined
def grown(entries: Entries, used: int, needed: int) -> Entries:
    """Return entries with room for as many as are needed, the used ones kept."""
    size = len(entries.cost)
    if size >= needed:
        return entries
    while size < needed:
        size *= 2
    more = room_for(size)
    more.cost[:used], more.worth[:used] = entries.cost[:used], entries.worth[:used]
    return more


@subroutine
def joined(
    old: Entries,
    count: int,
    other: Entries,
    begin: int,
    end: int,
    more_cost: int,
    more_worth: int,
    most: int,
    to: Entries,
) -> int:
    """Merge a front with a part of another one that is shifted, up to *most* ticks; return how many entries there are.

    Parameters
    ----------
    to
        Room for all of them; neither of the other two.
    """
    cost, worth, other_cost, other_worth = old.cost, old.worth, other.cost, other.worth
    to_cost, to_worth = to.cost, to.worth
    i, j, met, last = np.int64(0), np.int64(begin), np.int64(0), np.int64(end)
    top = np.int64(NONE)
    while last > j and other_cost[last - 1] + more_cost > most:
        last -= 1
    while i < count or j < last:
        if j >= last or (i < count and cost[i] <= other_cost[j] + more_cost):
            c, w = cost[i], worth[i]
            i += 1
        else:
            c, w = other_cost[j] + more_cost, other_worth[j] + more_worth
            j += 1
        if w > top:
            if met and to_cost[met - 1] == c:
                met -= 1
            to_cost[met], to_worth[met] = c, w
            top = w
            met += 1
    return int(met)


@inlined
def front_of(
    layers: Layers,
    arcs: Arcs,
    worth: Int64Array,
    q: int,
    starts: Int64Array,
    ends: Int64Array,
    entries: Entries,
    most: int,
    first: Entries,
    second: Entries,
) -> tuple[int, Entries, Entries]:
    """Put the front of a state together from those that lead to it, up to *most* ticks.

    Parameters
    ----------
    starts, ends
        Where the entries of each state before begin and end, int64.
    first, second
        Room to work in.

    Returns
    -------
    The number of entries, the room that they stand in, and the other one.
    """
    met, total = 0, 0
    for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
        total += ends[arcs.source[e]] - starts[arcs.source[e]]
    first, second = grown(first, 0, total), grown(second, 0, total)
    i = arcs.layer[q] - 1
    for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
        source, label = arcs.source[e], arcs.label[e]
        more_cost, more_worth = layers.cost[source, label], worth[i, label]
        met = joined(first, met, entries, starts[source], ends[source], more_cost, more_worth, most, second)
        first, second = second, first
    return met, first, second


@kernel
def fronts_behind(
    layers: Layers,
    arcs: Arcs,
    worth: Int64Array,
    slope: Slope,
    least_ahead: Int64Array,
    most: int,
    floor: int,
    most_entries: int,
) -> Fronts:
    """Return the fronts of ways from the first layer to each state.

    Parameters
    ----------
    least_ahead
        As :func:`~mtpp.solvers.bounds.frontier.kernels.layers.costs_ahead` returns it.
    most
        Ticks at most of a whole way.
    floor
        Worth of a whole way at least: entries that no way from their state on takes so far are left out.
    most_entries
        Entries in all at most.

    Returns
    -------
    With the state :data:`FULL`, of no use.

    Notes
    -----
    O(entries · arcs of a state).
    """
    count = len(layers.target)
    offsets = np.zeros(count + 1, dtype=np.int64)
    entries, first, second = room_for(FEW), room_for(FEW), room_for(FEW)
    prices, rest = prices_of(slope), rests_ahead(layers, worth, slope)
    need = (floor << slope.shift) - prices * most
    used = 0
    if count:
        entries.cost[0] = entries.worth[0] = 0
        offsets[1] = used = 1
    starts, ends = offsets[:-1], offsets[1:]
    for q in range(1, count):
        met, first, second = front_of(
            layers, arcs, worth, q, starts, ends, entries, most - least_ahead[q], first, second
        )
        entries = grown(entries, used, used + met)
        for e in range(met):
            if in_reach(first.cost[e], first.worth[e], prices, slope.shift, rest, q, need):
                entries.cost[used], entries.worth[used] = first.cost[e], first.worth[e]
                used += 1
        if used > most_entries:
            return Fronts(offsets, entries.cost[:0].copy(), entries.worth[:0].copy(), FULL)
        offsets[q + 1] = used
    return Fronts(offsets, entries.cost[:used].copy(), entries.worth[:used].copy(), EXACT)


@kernel
def way_to(
    layers: Layers, arcs: Arcs, worth: Int64Array, fronts: Fronts, state: int, entry: int, labels: Int32Array
) -> bool:
    """Write the labels of a way that an entry of exact fronts stands for, up to its state; return whether there is one.

    O(n · log(entries of a state)).
    """
    cost, gained, q = fronts.cost[entry], fronts.worth[entry], np.int64(state)
    while arcs.layer[q] > 0:
        i = arcs.layer[q] - 1
        found = False
        for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
            source, label = arcs.source[e], arcs.label[e]
            before, had = cost - layers.cost[source, label], gained - worth[i, label]
            begin, end = fronts.offsets[source], fronts.offsets[source + 1]
            at = begin + np.searchsorted(fronts.cost[begin:end], before)
            if at < end and fronts.cost[at] == before and fronts.worth[at] == had:
                labels[i] = label
                q, cost, gained = np.int64(source), before, had
                found = True
                break
        if not found:
            return False
    return True


@kernel
def closings(
    layers: Layers, worth: Int64Array, fronts: Fronts, closing: Int64Array, most: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return for each op the most worth of a set that ends with it, its ticks, and state and entry before; −1: none.

    Parameters
    ----------
    closing
        Ticks that ending the set in each state costs, int64, shape (states,); above *most* where it cannot be.

    Notes
    -----
    O(states · log(entries of a state)).
    """
    n = len(layers.offsets) - 2
    best = np.full(n, NONE, dtype=np.int64)
    paid = np.zeros(n, dtype=np.int64)
    where = np.full(n, -1, dtype=np.int64)
    which = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            to = layers.target[q, INSIDE]
            if to < 0:
                continue
            begin, end = fronts.offsets[q], fronts.offsets[q + 1]
            more = layers.cost[q, INSIDE] + closing[to]
            at = begin + np.searchsorted(fronts.cost[begin:end], most - more, side="right") - 1
            if at >= begin and fronts.worth[at] + worth[i, INSIDE] > best[i]:
                best[i], paid[i] = fronts.worth[at] + worth[i, INSIDE], fronts.cost[at] + more
                where[i], which[i] = q, at
    return best, paid, where, which
