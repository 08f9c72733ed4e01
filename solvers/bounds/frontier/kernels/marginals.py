"""Best worths of a stage's labellings with each label of each op, and weights that even them out among stages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.solvers.bounds.frontier.kernels.fronts import EXACT, FULL, NONE, Arcs, Fronts
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS, Layers
from mtpp.solvers.jit import kernel, subroutine


class Swept(NamedTuple):
    """Result of a pass over the ops of a stage.

    Attributes
    ----------
    state
        :data:`~mtpp.solvers.bounds.frontier.kernels.fronts.EXACT`, or FULL where there was no room: of no use.
    through
        Best worth of a labelling with each label of each op, by position, when the pass came to it, int64, shape
        (n, 3); NONE where there is none.
    moved
        Worth that the pass took from each op's side, int64, shape (n,).
    cost, worth
        Last front, after the pass, int64.
    entries
        Of both kinds of fronts.
    """

    state: int
    through: Int64Array
    moved: Int64Array
    cost: Int64Array
    worth: Int64Array
    entries: int


@subroutine
def _taken_in(
    cost: Int64Array,
    worth: Int64Array,
    count: int,
    from_cost: Int64Array,
    from_worth: Int64Array,
    begin: int,
    end: int,
    more_cost: int,
    more_worth: int,
    most: int,
    to_cost: Int64Array,
    to_worth: Int64Array,
) -> int:
    """Merge a front with a shifted one, up to *most* ticks; return how many entries there are."""
    i, j = np.int64(0), np.int64(begin)
    met = np.int64(0)
    top = np.int64(NONE)
    last = np.int64(end)
    while last > j and from_cost[last - 1] + more_cost > most:
        last -= 1
    while i < count or j < last:
        if j >= last or (i < count and cost[i] <= from_cost[j] + more_cost):
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
    return int(met)


@kernel
def fronts_ahead(layers: Layers, worth: Int64Array, least_behind: Int64Array, most: int, most_entries: int) -> Fronts:
    """Return the fronts of ways from each state to the last layer.

    Parameters
    ----------
    least_behind
        Least ticks of a way from the first layer to each state, int64, shape (states,).
    most
        Ticks of a whole way at most.
    most_entries
        Entries in all at most; beyond, the state is FULL and the rest of no use.

    Notes
    -----
    Entries of a state stand together, those of later states first. O(entries).
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    begin_of = np.zeros(count + 1, dtype=np.int64)
    room = 4096
    cost, gained = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    first_cost, first_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    second_cost, second_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    used = np.int64(0)
    for i in range(n, -1, -1):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            starts[q] = used
            met = 0
            if i == n:
                first_cost[0] = first_worth[0] = 0
                met = 1
            else:
                total = 0
                for label in range(LABELS):
                    to = layers.target[q, label]
                    if to >= 0:
                        total += ends[to] - starts[to]
                if total > len(first_cost):
                    size = len(first_cost)
                    while size < total:
                        size *= 2
                    first_cost, first_worth = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
                    second_cost, second_worth = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
                for label in range(LABELS):
                    to = layers.target[q, label]
                    if to >= 0:
                        met = _taken_in(
                            first_cost,
                            first_worth,
                            met,
                            cost,
                            gained,
                            starts[to],
                            ends[to],
                            layers.cost[q, label],
                            worth[i, label],
                            most - least_behind[q],
                            second_cost,
                            second_worth,
                        )
                        first_cost, second_cost = second_cost, first_cost
                        first_worth, second_worth = second_worth, first_worth
            if used + met > most_entries:
                return Fronts(begin_of, cost[:0].copy(), gained[:0].copy(), FULL)
            if used + met > room:
                while used + met > room:
                    room *= 2
                more_cost, more_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
                more_cost[:used], more_worth[:used] = cost[:used], gained[:used]
                cost, gained = more_cost, more_worth
            cost[used : used + met] = first_cost[:met]
            gained[used : used + met] = first_worth[:met]
            used += met
            ends[q] = used
    # Entries are told by where they end: those of state q begin where those of state q + 1 of its walk ended.
    offsets = np.empty(2 * count, dtype=np.int64)
    for q in range(count):
        offsets[2 * q], offsets[2 * q + 1] = starts[q], ends[q]
    return Fronts(offsets, cost[:used].copy(), gained[:used].copy(), EXACT)


@subroutine
def _best_pair(
    cost: Int64Array,
    worth: Int64Array,
    begin: int,
    end: int,
    other_cost: Int64Array,
    other_worth: Int64Array,
    other_begin: int,
    other_end: int,
    most: int,
) -> int:
    """Return the most worth of an entry of each of two fronts that cost no more than *most* together."""
    best = np.int64(NONE)
    j = np.int64(other_end) - 1
    for i in range(begin, end):
        while j >= other_begin and cost[i] + other_cost[j] > most:
            j -= 1
        if j < other_begin:
            break
        best = max(best, worth[i] + other_worth[j])
    return int(best)


@kernel
def sweep(
    layers: Layers,
    arcs: Arcs,
    worth: Int64Array,
    movable: BoolArray,
    forwards: bool,
    least_ahead: Int64Array,
    least_behind: Int64Array,
    most: int,
    most_entries: int,
) -> Swept:
    """Go through the ops of a stage, and give half of what one side of an op is better by to the neighbouring stage.

    Parameters
    ----------
    worth
        Of each label of each op, by position, int64, shape (n, 3); changed in place.
    movable
        Ops whose sides may be evened out, by position, bool, shape (n,).
    forwards
        Whether the sides are "in this stage or before" and "after", with the next stage as neighbour; else "before" and
        "in this stage or after", with the one before.

    Returns
    -------
    With *moved*, which the neighbour gains on the same side.

    Notes
    -----
    Marginals are exact, so that what the stages are worth at most, in all, never rises. O(entries).
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    through = np.full((n, LABELS), NONE, dtype=np.int64)
    moved = np.zeros(n, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    back = fronts_ahead(layers, worth, least_behind, most, most_entries)
    if back.state == FULL or count == 0:
        return Swept(back.state, through, moved, nothing, nothing, 0)
    room = 4096
    cost, gained = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    first_cost, first_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    second_cost, second_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    cost[0] = gained[0] = 0
    ends[0] = 1
    used = total_entries = np.int64(1)
    for i in range(n):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    left = most - layers.cost[q, label]
                    value = _best_pair(
                        cost,
                        gained,
                        starts[q],
                        ends[q],
                        back.cost,
                        back.worth,
                        back.offsets[2 * to],
                        back.offsets[2 * to + 1],
                        left,
                    )
                    if value > NONE:
                        through[i, label] = max(through[i, label], value + worth[i, label])
        if movable[i]:
            if forwards:
                one, other = max(through[i, BEFORE], through[i, INSIDE]), through[i, AFTER]
            else:
                one, other = through[i, BEFORE], max(through[i, INSIDE], through[i, AFTER])
            if one > NONE and other > NONE:
                shift = (one - other) // 2 if one >= other else -((other - one) // 2)
                moved[i] = shift
                worth[i, BEFORE] -= shift
                if forwards:
                    worth[i, INSIDE] -= shift
        # fronts of the next layer; those of this one are not needed any more
        next_begin = used
        for q in range(layers.offsets[i + 1], layers.offsets[i + 2]):
            met = 0
            total = 0
            for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
                total += ends[arcs.source[e]] - starts[arcs.source[e]]
            if total > len(first_cost):
                size = len(first_cost)
                while size < total:
                    size *= 2
                first_cost, first_worth = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
                second_cost, second_worth = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
            for e in range(arcs.offsets[q], arcs.offsets[q + 1]):
                source, label = arcs.source[e], arcs.label[e]
                met = _taken_in(
                    first_cost,
                    first_worth,
                    met,
                    cost,
                    gained,
                    starts[source],
                    ends[source],
                    layers.cost[source, label],
                    worth[i, label],
                    most - least_ahead[q],
                    second_cost,
                    second_worth,
                )
                first_cost, second_cost = second_cost, first_cost
                first_worth, second_worth = second_worth, first_worth
            if used + met > most_entries:
                return Swept(FULL, through, moved, nothing, nothing, 0)
            if used + met > room:
                while used + met > room:
                    room *= 2
                more_cost, more_worth = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
                more_cost[:used], more_worth[:used] = cost[:used], gained[:used]
                cost, gained = more_cost, more_worth
            starts[q] = used
            cost[used : used + met] = first_cost[:met]
            gained[used : used + met] = first_worth[:met]
            used += met
            ends[q] = used
        # move the next layer to the front of the arrays
        size_of_layer = used - next_begin
        cost[:size_of_layer] = cost[next_begin:used].copy()
        gained[:size_of_layer] = gained[next_begin:used].copy()
        for q in range(layers.offsets[i + 1], layers.offsets[i + 2]):
            starts[q] -= next_begin
            ends[q] -= next_begin
        used = size_of_layer
        total_entries += size_of_layer
    return Swept(EXACT, through, moved, cost[:used].copy(), gained[:used].copy(), int(total_entries + len(back.cost)))


@kernel
def costs_behind(layers: Layers) -> Int64Array:
    """Return the least ticks of a way from the first layer to each state, int64, shape (states,); O(states)."""
    count, n = len(layers.target), len(layers.offsets) - 2
    least = np.full(count, -NONE, dtype=np.int64)
    if count:
        least[0] = 0
    for q in range(layers.offsets[n]):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0:
                least[to] = min(least[to], least[q] + layers.cost[q, label])
    return least
