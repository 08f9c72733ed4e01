"""Fronts of a scan: for each state, ticks paid and worth gathered so far, of which none beats another in both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.kernels.layers import INSIDE, LABELS, Layers
from mtpp.solvers.jit import kernel, subroutine

NONE = -(2**62)
"""Worth where there is no way."""

EXACT, MERGED, FULL = 0, 1, 2
"""Fronts are whole, or some were merged, or there was no room for all of them."""


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
        :data:`EXACT`, :data:`MERGED` or :data:`FULL`.
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
def values_behind(layers: Layers, worth: Int64Array, slope: Slope) -> Int64Array:
    """Return the best value of a way from the first layer to each state, int64, shape (states,); O(states)."""
    count, n = len(layers.target), len(layers.offsets) - 2
    best = np.full(count, NONE, dtype=np.int64)
    if count:
        best[0] = 0
    for i in range(n):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    value = (worth[i, label] << slope.shift) - slope.price * layers.cost[q, label] + best[q]
                    best[to] = max(best[to], value)
    return best


@kernel
def costs_ahead(layers: Layers) -> Int64Array:
    """Return the least ticks of a way from each state to the last layer, int64, shape (states,); O(states)."""
    count, n = len(layers.target), len(layers.offsets) - 2
    least = np.full(count, -NONE, dtype=np.int64)
    for q in range(layers.offsets[n], count):
        least[q] = 0
    for q in range(layers.offsets[n] - 1, -1, -1):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0:
                least[q] = min(least[q], layers.cost[q, label] + least[to])
    return least


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


@subroutine
def _joined(
    cost: Int64Array,
    worth: Int64Array,
    count: int,
    from_cost: Int64Array,
    from_worth: Int64Array,
    more_cost: int,
    more_worth: int,
    most: int,
    to_cost: Int64Array,
    to_worth: Int64Array,
) -> int:
    """Merge a front with another one that is shifted, up to *most* ticks; return how many entries there are."""
    i = j = met = 0
    others = len(from_cost)
    top = np.int64(NONE)
    while i < count or j < others:
        if j < others and from_cost[j] + more_cost > most:
            others = j
            continue
        if j >= others or (i < count and cost[i] <= from_cost[j] + more_cost):
            c, w = cost[i], worth[i]
            i += 1
        else:
            c, w = from_cost[j] + more_cost, from_worth[j] + more_worth
            j += 1
        if w > top:
            if met and to_cost[met - 1] == c:
                met -= 1
            to_cost[met], to_worth[met] = c, w
            top = w
            met += 1
    return met


@kernel
def fronts_behind(
    layers: Layers,
    arcs: Arcs,
    worth: Int64Array,
    slope: Slope,
    ahead: Int64Array,
    least_ahead: Int64Array,
    most: int,
    floor: int,
    longest: int,
    most_entries: int,
) -> Fronts:
    """Return the fronts of ways from the first layer to each state.

    Parameters
    ----------
    ahead, least_ahead
        As :func:`values_ahead` and :func:`costs_ahead` return them.
    most
        Ticks at most of a whole way.
    floor
        Worth of a whole way at least: entries that no way from their state on takes so far are left out.
    longest
        Entries of a state at most: longer fronts are merged, which lowers ticks and raises worth.
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
    room = 4096
    cost, gained = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    first_cost, first_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    second_cost, second_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    state = EXACT
    need = (floor << slope.shift) - slope.price * most
    if count == 0:
        return Fronts(offsets, cost[:0].copy(), gained[:0].copy(), state)
    cost[0] = gained[0] = 0
    offsets[1] = 1
    used = 1
    for q in range(1, count):
        met = 0
        i = arcs.layer[q] - 1
        total = 0
        for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
            total += offsets[arcs.source[e] + 1] - offsets[arcs.source[e]]
        if total > len(first_cost):
            size = len(first_cost)
            while size < total:
                size *= 2
            first_cost, first_worth = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
            second_cost, second_worth = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
            source, label = arcs.source[e], arcs.label[e]
            begin, end = offsets[source], offsets[source + 1]
            if begin == end:
                continue
            met = _joined(
                first_cost,
                first_worth,
                met,
                cost[begin:end],
                gained[begin:end],
                layers.cost[source, label],
                worth[i, label],
                most - least_ahead[q],
                second_cost,
                second_worth,
            )
            first_cost, second_cost = second_cost, first_cost
            first_worth, second_worth = second_worth, first_worth
        if used + met > room:
            while used + met > room:
                room *= 2
            more_cost, more_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
            more_cost[:used], more_worth[:used] = cost[:used], gained[:used]
            cost, gained = more_cost, more_worth
        begin = used
        for e in range(met):
            value = (first_worth[e] << slope.shift) - slope.price * first_cost[e] + ahead[q]
            if value >= need:
                cost[used], gained[used] = first_cost[e], first_worth[e]
                used += 1
        met = used - begin
        if met > longest:
            state = MERGED
            for bucket in range(longest):
                least, last = begin + bucket * met // longest, begin + (bucket + 1) * met // longest - 1
                cost[begin + bucket], gained[begin + bucket] = cost[least], gained[last]
            used = begin + longest
        if used > most_entries:
            return Fronts(offsets, cost[:0].copy(), gained[:0].copy(), FULL)
        offsets[q + 1] = used
    return Fronts(offsets, cost[:used].copy(), gained[:used].copy(), state)


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


@kernel
def closing_costs(layers: Layers) -> Int64Array:
    """Return the least ticks of a way from each state on which no op is in the stage, int64; O(states)."""
    count, n = len(layers.target), len(layers.offsets) - 2
    least = np.full(count, -NONE, dtype=np.int64)
    for q in range(layers.offsets[n], count):
        least[q] = 0
    for q in range(layers.offsets[n] - 1, -1, -1):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0 and label != INSIDE:
                least[q] = min(least[q], layers.cost[q, label] + least[to])
    return least
