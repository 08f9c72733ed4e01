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
    Slope,
    front_of,
    grown,
    in_reach,
    joined,
    pass_on,
    prices_of,
    rests_ahead,
    rests_behind,
    room_for,
)
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS, Layers
from mtpp.solvers.jit import kernel, subroutine

WHOLE = 2**40
"""Reach within which all labellings are, whatever they are worth."""

_TRIALS = 4
"""Guesses of the most worth of a stage, each lower than the one before, before all labellings are looked at."""


class Swept(NamedTuple):
    """Result of a pass over the ops of a stage.

    Attributes
    ----------
    state
        :data:`~mtpp.solvers.bounds.frontier.kernels.fronts.EXACT`, or FULL where there was no room: of no use.
    through
        Best worth of a labelling with each label of each op, by position, when the pass came to it, int64, shape
        (n, 3); NONE where there is none that is worth *least*.
    moved
        Worth that the pass took from each op's side, int64, shape (n,).
    cost, worth
        Last front, after the pass, int64.
    least
        All labellings that are worth as much after the pass are in the front, NONE if all are.
    entries
        Of both kinds of fronts.
    """

    state: int
    through: Int64Array
    moved: Int64Array
    cost: Int64Array
    worth: Int64Array
    least: int
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
    layers: Layers,
    worth: Int64Array,
    slope: Slope,
    behind: Int64Array,
    need: Int64Array,
    least_behind: Int64Array,
    most: int,
    most_entries: int,
) -> FrontsAhead:
    """Return the fronts of ways from each state to the last layer; O(entries).

    Parameters
    ----------
    behind
        As :func:`~mtpp.solvers.bounds.frontier.kernels.fronts.rests_behind` returns it.
    need
        Value of a whole way at least, at each price: entries that no way to their state takes so far are left out.
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
    prices = prices_of(slope)
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
            starts[q] = ends[q] = used
            if total == 0:
                continue
            first, second = grown(first, 0, total), grown(second, 0, total)
            left = most - least_behind[q]
            for label in range(LABELS):
                to = layers.target[q, label]
                if to >= 0 and ends[to] > starts[to]:
                    more_cost, more_worth = layers.cost[q, label], worth[i, label]
                    met = joined(first, met, entries, starts[to], ends[to], more_cost, more_worth, left, second)
                    first, second = second, first
            if used + met > most_entries:
                return FrontsAhead(starts, ends, entries, 0, True)
            entries = grown(entries, used, used + met)
            for e in range(met):
                if in_reach(first.cost[e], first.worth[e], prices, slope.shift, behind, q, need):
                    entries.cost[used], entries.worth[used] = first.cost[e], first.worth[e]
                    used += 1
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
    slope: Slope,
    guess: int,
    reach: int,
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
    slope
        Price of ticks of the Lagrangian values by which entries are left out.
    guess
        About the most worth of a labelling.
    reach
        Labellings that are worth less than the best one by more are left out; :data:`WHOLE`: none is.

    Returns
    -------
    With *moved*, which the neighbour gains on the same side.

    Notes
    -----
    What the stages are worth at most, in all, never rises: a marginal is exact, or that of a label that no labelling
    within reach has, and such an op stays as it is. O(entries).
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    through = np.full((n, LABELS), NONE, dtype=np.int64)
    moved = np.zeros(n, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    ahead, behind = rests_ahead(layers, worth, slope), rests_behind(layers, worth, slope)
    floor, top, used = NONE, NONE, 0
    shift, prices = slope.shift, prices_of(slope)
    need = np.full(len(prices), NONE, dtype=np.int64)
    least_of_all = -int(np.abs(worth).sum())
    for trial in range(_TRIALS + 1):
        whole = reach >= WHOLE or trial == _TRIALS or guess - reach < least_of_all
        floor = NONE if whole else guess - reach
        if not whole:
            need = (floor << shift) - prices * most
        else:
            need[:] = NONE
        back = fronts_ahead(layers, worth, slope, behind, need, least_behind, most, most_entries)
        if back.full or count == 0:
            return Swept(FULL if back.full else EXACT, through, moved, nothing, nothing, NONE, 0)
        used += back.used
        if back.ends[0] > back.starts[0]:
            top = int(back.entries.worth[back.ends[0] - 1])
        if whole or top - reach // 2 >= floor:
            break
        guess = top if top > NONE else guess - reach * (2 << trial)
    if floor > NONE:
        floor = max(floor, top - reach)
        need = (floor << shift) - prices * most
    entries, first, second = room_for(FEW), room_for(FEW), room_for(FEW)
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    entries.cost[0] = entries.worth[0] = 0
    ends[0] = 1
    kept, total_entries = 1, 1
    behind[1:] = NONE
    for i in range(n):
        for label in range(LABELS):
            for q in range(layers.offsets[i], layers.offsets[i + 1]):
                to = layers.target[q, label]
                if to < 0 or ends[q] == starts[q] or back.ends[to] == back.starts[to]:
                    continue
                upper = -NONE
                for x in range(len(prices)):
                    more = (worth[i, label] << shift) - prices[x] * (layers.cost[q, label] - most)
                    upper = min(upper, behind[q, x] + more + ahead[to, x])
                if upper >> shift <= through[i, label]:
                    continue
                left = most - layers.cost[q, label]
                best = _best_pair(entries, starts[q], ends[q], back.entries, back.starts[to], back.ends[to], left)
                if best > NONE and best + worth[i, label] >= floor:
                    through[i, label] = max(through[i, label], best + worth[i, label])
        if movable[i]:
            if forwards:
                one, other = max(through[i, BEFORE], through[i, INSIDE]), through[i, AFTER]
            else:
                one, other = through[i, BEFORE], max(through[i, INSIDE], through[i, AFTER])
            if one > NONE and other > NONE:
                change = (one - other) // 2 if one >= other else -((other - one) // 2)
                moved[i] = change
                worth[i, BEFORE] -= change
                if forwards:
                    worth[i, INSIDE] -= change
                if change < 0 and floor > NONE:
                    floor -= change  # labellings that were left out are worth more, if they have this side
        # Fronts of the next layer; those of this one are not needed any more.
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            pass_on(layers, worth, prices, shift, i, q, behind)
        begin = kept
        for q in range(layers.offsets[i + 1], layers.offsets[i + 2]):
            met, first, second = front_of(
                layers, arcs, worth, q, starts, ends, entries, most - least_ahead[q], first, second
            )
            if kept + met > most_entries:
                return Swept(FULL, through, moved, nothing, nothing, NONE, 0)
            entries = grown(entries, kept, kept + met)
            starts[q] = kept - begin
            for e in range(met):
                if in_reach(first.cost[e], first.worth[e], prices, shift, ahead, q, need):
                    entries.cost[kept], entries.worth[kept] = first.cost[e], first.worth[e]
                    kept += 1
            ends[q] = kept - begin
        size = kept - begin
        entries.cost[:size] = entries.cost[begin:kept].copy()
        entries.worth[:size] = entries.worth[begin:kept].copy()
        kept = size
        total_entries += size
    cost, gained = entries.cost[:kept].copy(), entries.worth[:kept].copy()
    if floor > NONE:
        good = gained >= floor
        cost, gained = cost[good], gained[good]
    return Swept(EXACT, through, moved, cost, gained, floor, int(total_entries + used))
