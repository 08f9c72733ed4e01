"""Best worths of a stage's labellings with each label of each op, and weights that even them out among stages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.solvers.bounds.frontier.kernels.fronts import (
    EXACT,
    FEW,
    FULL,
    NONE,
    Arcs,
    Entries,
    front_of,
    grown,
    joined,
    room_for,
)
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


class FrontsAhead(NamedTuple):
    """Entries of ways from each state to the last layer, in increasing ticks and worth.

    Attributes
    ----------
    starts, ends
        Where the entries of each state begin and end, int64, shape (states,).
    entries
        Of all states, those of later ones first.
    used
        Number of them.
    full
        Whether there was no room for them; then they are of no use.
    """

    starts: Int64Array
    ends: Int64Array
    entries: Entries
    used: int
    full: bool


@kernel
def fronts_ahead(
    layers: Layers, worth: Int64Array, least_behind: Int64Array, most: int, most_entries: int
) -> FrontsAhead:
    """Return the fronts of ways from each state to the last layer; O(entries).

    Parameters
    ----------
    least_behind
        As :func:`~mtpp.solvers.bounds.frontier.kernels.layers.costs_behind` returns it.
    most
        Ticks of a whole way at most.
    most_entries
        Entries in all at most.
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    entries, first, second = room_for(FEW), room_for(FEW), room_for(FEW)
    used = 0
    for q in range(layers.offsets[n], count):
        entries.cost[used] = entries.worth[used] = 0
        starts[q] = used
        used += 1
        ends[q] = used
    for i in range(n - 1, -1, -1):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            met, total = 0, 0
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    total += ends[to] - starts[to]
            first, second = grown(first, 0, total), grown(second, 0, total)
            left = most - least_behind[q]
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    more_cost, more_worth = layers.cost[q, label], worth[i, label]
                    met = joined(first, met, entries, starts[to], ends[to], more_cost, more_worth, left, second)
                    first, second = second, first
            if used + met > most_entries:
                return FrontsAhead(starts, ends, entries, 0, True)
            entries = grown(entries, used, used + met)
            entries.cost[used : used + met], entries.worth[used : used + met] = first.cost[:met], first.worth[:met]
            starts[q] = used
            used += met
            ends[q] = used
    return FrontsAhead(starts, ends, entries, int(used), False)


@subroutine
def _best_pair(one: Entries, begin: int, end: int, other: Entries, first: int, last: int, most: int) -> int:
    """Return the most worth of an entry of each of two fronts that cost no more than *most* together."""
    best = np.int64(NONE)
    j = np.int64(last) - 1
    for i in range(begin, end):
        while j >= first and one.cost[i] + other.cost[j] > most:
            j -= 1
        if j < first:
            break
        best = max(best, one.worth[i] + other.worth[j])
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
    if back.full or count == 0:
        return Swept(FULL if back.full else EXACT, through, moved, nothing, nothing, 0)
    entries, first, second = room_for(FEW), room_for(FEW), room_for(FEW)
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    entries.cost[0] = entries.worth[0] = 0
    ends[0] = 1
    used = total_entries = 1
    for i in range(n):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0:
                    left = most - layers.cost[q, label]
                    value = _best_pair(entries, starts[q], ends[q], back.entries, back.starts[to], back.ends[to], left)
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
        # Fronts of the next layer; those of this one are not needed any more.
        begin = used
        for q in range(layers.offsets[i + 1], layers.offsets[i + 2]):
            met, first, second = front_of(
                layers, arcs, worth, q, starts, ends, entries, most - least_ahead[q], first, second
            )
            if used + met > most_entries:
                return Swept(FULL, through, moved, nothing, nothing, 0)
            entries = grown(entries, used, used + met)
            entries.cost[used : used + met], entries.worth[used : used + met] = first.cost[:met], first.worth[:met]
            starts[q] = used - begin
            used += met
            ends[q] = used - begin
        size = used - begin
        entries.cost[:size] = entries.cost[begin:used].copy()
        entries.worth[:size] = entries.worth[begin:used].copy()
        used = size
        total_entries += size
    cost, gained = entries.cost[:used].copy(), entries.worth[:used].copy()
    return Swept(EXACT, through, moved, cost, gained, int(total_entries + back.used))
