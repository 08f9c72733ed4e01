"""The front of components one after the other: where a series is cut, and how many stages that closes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.series_parallel.kernels.pareto_fronts import (
    BUFFER,
    CLOSED,
    FLAGS,
    HEAD,
    HEAD_BITS,
    HEAD_GROUP,
    HEAD_PARAMS,
    HEAD_SHIFT,
    LEAST,
    PARAMS,
    TAIL,
    TAIL_GROUP,
    TAIL_PARAMS,
    TICKS,
    UNIT,
    Terms,
    allowed,
    charged,
    condense,
    fits,
    head_group,
    hopeful,
    in_order,
    put,
    tail_group,
)
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY

UNCUT = -1
"""In place of a row: the component is not cut, or there is no cut before."""


class Series(NamedTuple):
    """Components and the ops that join them.

    Attributes
    ----------
    fronts
        Points of all components that differ, one front after the other.
    begins, ends
        Rows of each component's front.
    costs
        Of all ops of each component, by columns.
    joint_costs
        Of the op behind each component, zeros behind the last one.
    whole_graph
        Whether the terminals stand for all inputs and outputs of the graph: no op of theirs takes part, and nothing is
        left to be cut beside the components.
    tail_flag, head_flag
        Flags to set where the stage of the tail, or that of the head, holds any op; 0 where the terminal is an op.
    """

    fronts: Int64Array
    begins: Int64Array
    ends: Int64Array
    costs: Int64Array
    joint_costs: Int64Array
    whole_graph: bool
    tail_flag: int
    head_flag: int


@subroutine
def _descending(fronts: Int64Array, begin: int, end: int) -> Int64Array:
    """Return the rows from *begin* to *end* by group of the tail's stage, and by what it pays, the most first."""
    keys = np.zeros((end - begin, 6), dtype=np.int64)
    for row in range(begin, end):
        keys[row - begin, 0] = tail_group(fronts[row, FLAGS])
        keys[row - begin, 1] = -fronts[row, TAIL]
    return in_order(keys, end - begin) + begin


@subroutine
def _open_cost(point: Int64Array, charges: Int64Array) -> int:
    """Return what the open stage of a point pays."""
    return int(point[HEAD] + charged(point[FLAGS], 1, charges, head_group(point[FLAGS])))


@subroutine
def _grouped(live: Int64Array, charges: Int64Array) -> tuple[Int64Array, Int64Array, int]:
    """Return the points by group of devices and cost of the open stage; the set of each, and the number of sets.

    Points of a set have the same closed stages, flags of the tail, and groups of devices.
    """
    size = len(live)
    keys = np.zeros((size, 6), dtype=np.int64)
    member = np.empty(size, dtype=np.int64)
    first = np.empty(size, dtype=np.int64)
    count = int(np.int64(0))
    for s in range(size):
        keys[s, 0] = head_group(live[s, FLAGS])
        keys[s, 1] = _open_cost(live[s], charges)
        g = 0
        while g < count and (
            live[first[g], CLOSED] != live[s, CLOSED] or (live[first[g], FLAGS] ^ live[s, FLAGS]) & ~HEAD_BITS
        ):
            g += 1
        if g == count:
            first[g] = s
            count += 1
        member[s] = g
    return in_order(keys, size), member, count


@kernel
def series_front(
    series: Series, charges: Int64Array, ends: Int64Array, terms: Terms
) -> tuple[Int64Array, Int64Array, Int64Array, bool]:
    """Return the front of a series of components.

    Returns
    -------
    * The points.
    * Of each, the last cut before the last component, or :data:`UNCUT`, and the row by which the last component is cut,
      or :data:`UNCUT`: then the stage after the last cut is that of the head.
    * Of each cut: the cut before, or :data:`UNCUT`, the component, and the row of its front.
    * Whether a front was thinned.

    Notes
    -----
    From component to component, the points of what lies before, their head being the stage that is still open. A
    component that is cut closes it, one that is not adds its work to it. The first open stage is that of the tail. For
    the whole graph it is closed as any other, so that its cost no longer matters, and few points remain. O(l·p·log p)
    time for l components and p points at each; with memory, where every open stage meets every point of a component,
    O(l·p²·log p).
    """
    length, groups = len(series.begins), charges.shape[0]
    live = np.empty((0, 6), dtype=np.int64)
    live_cut = np.empty(0, dtype=np.int64)
    cuts = np.empty((16, 3), dtype=np.int64)
    cut_count = 0
    uncut, uncut_lives = np.zeros(TICKS + groups, dtype=np.int64), np.ones(groups, dtype=np.bool_)
    left = terms.total_work
    lossy = False
    open_ends = ends.copy()
    open_ends[1] = 0
    point = np.empty(6, dtype=np.int64)
    for i in range(length):
        last = i == length - 1
        begin, end = series.begins[i], series.ends[i]
        left -= series.costs[i, LEAST] + series.joint_costs[i, LEAST]
        here = ends if last else open_ends
        starts = series.whole_graph and i == 0
        room = min((len(live) + groups) * (end - begin + 1), BUFFER)
        found = np.empty((room, 6), dtype=np.int64)
        origin = np.empty((room, 2), dtype=np.int64)  # cut before, and row or UNCUT
        count = int(np.int64(0))
        every = terms.memory.mode != NO_MEMORY
        by_tail = _descending(series.fronts, begin, end)
        by_head, member, set_count = _grouped(live, charges)
        best = np.full(set_count, UNCUT, dtype=np.int64)
        closable, closing = 0, UNCUT
        for r in range(end - begin + 1):
            row = end if r == end - begin else by_tail[r]
            pair_all = every or row == end
            a = 0 if row == end else tail_group(series.fronts[row, FLAGS])
            if not pair_all:
                if a != closing:  # open stages on other devices
                    closing = a
                    best[:] = UNCUT
                    while closable < len(live) and head_group(live[by_head[closable], FLAGS]) < a:
                        closable += 1
                # Of the open stages that may close here, those of a set differ only in what the tail's stage pays: the
                # least will do.
                while closable < len(live):
                    s = by_head[closable]
                    if head_group(live[s, FLAGS]) != a:
                        break
                    if _open_cost(live[s], charges) + series.fronts[row, TAIL] >= terms.cutoff:
                        break
                    if best[member[s]] == UNCUT or live[s, TAIL] < live[best[member[s]], TAIL]:
                        best[member[s]] = s
                    closable += 1
            # Below 0 the open stage begins here, or it is that of the tail.
            for n in range(-groups if row == end else -1, len(live) if pair_all else set_count):
                s = n if n < 0 or pair_all else best[n]
                if n >= 0 and s < 0:
                    continue
                if row == end:  # the component is not cut: its work goes to the open stage
                    if s < 0:
                        if not (starts and uncut_lives[-1 - s]):
                            continue
                        point[:] = 0
                        point[FLAGS] = (-1 - s) << HEAD_SHIFT
                    else:
                        for column in range(6):
                            point[column] = live[s, column]
                    point[HEAD] += series.costs[i, TICKS + head_group(point[FLAGS])]
                    point[HEAD_PARAMS] += series.costs[i, PARAMS]
                    if last:
                        point[FLAGS] |= series.head_flag
                else:
                    for column in range(6):
                        point[column] = series.fronts[row, column]
                    if s < 0:  # it is the first to be cut: the open stage is that of the tail
                        if not uncut_lives[a]:
                            continue
                        if i > 0:
                            point[FLAGS] |= series.tail_flag
                        point[TAIL] += uncut[TICKS + a]
                        point[TAIL_PARAMS] += uncut[PARAMS]
                        if series.whole_graph:
                            if not fits(point[TAIL], point[TAIL_PARAMS], a, terms):
                                continue
                            point[TAIL], point[TAIL_PARAMS] = 0, 0
                            point[FLAGS] &= ~TAIL_GROUP
                    else:  # the open stage closes
                        if head_group(live[s, FLAGS]) != a:
                            continue
                        cost = _open_cost(live[s], charges) + point[TAIL]
                        held = live[s, HEAD_PARAMS] + point[TAIL_PARAMS]
                        if not fits(cost, held, a, terms):
                            continue
                        point[CLOSED] += live[s, CLOSED] + terms.devices.groups[a, UNIT]
                        point[FLAGS] = point[FLAGS] & ~TAIL_GROUP | live[s, FLAGS] & ~(HEAD_BITS | HEAD_GROUP)
                        point[TAIL], point[TAIL_PARAMS] = live[s, TAIL], live[s, TAIL_PARAMS]
                b = head_group(point[FLAGS])
                point[HEAD] += series.joint_costs[i, TICKS + b]
                point[HEAD_PARAMS] += series.joint_costs[i, PARAMS]
                if last and series.whole_graph:  # the last stage closes, as all others do
                    if not fits(point[HEAD], point[HEAD_PARAMS], b, terms):
                        continue
                    if row == end:
                        point[CLOSED] += terms.devices.groups[b, UNIT]
                    if not allowed(point[CLOSED], terms.devices):
                        continue
                    point[HEAD], point[HEAD_PARAMS] = 0, 0
                    point[FLAGS] &= ~HEAD_GROUP
                elif not hopeful(point, left, charges, here, terms):
                    continue
                if count == room:
                    count, thin = condense(found, origin, count, room // 2, charges, terms)
                    lossy = lossy or thin
                put(found, count, point)
                origin[count, 0] = UNCUT if s < 0 else live_cut[s]
                origin[count, 1] = UNCUT if row == end else row - begin
                count += 1
        for column in range(TICKS + groups):
            uncut[column] += series.costs[i, column] + series.joint_costs[i, column]
        for g in range(groups):
            held = ends[0, PARAMS] + uncut[PARAMS]
            uncut_lives[g] = (
                not starts and uncut_lives[g] and fits(ends[0, TICKS + g] + uncut[TICKS + g], held, g, terms)
            )
        count, thin = condense(found, origin, count, terms.most_points, charges, terms)
        lossy = lossy or thin
        live = found[:count]
        if last:
            return live, origin[:count], cuts[:cut_count], lossy
        before, live_cut = origin, np.empty(count, dtype=np.int64)
        for n in range(count):
            if before[n, 1] == UNCUT:
                live_cut[n] = before[n, 0]
                continue
            if cut_count == len(cuts):
                grown = np.empty((2 * cut_count, 3), dtype=np.int64)
                for done in range(cut_count):
                    for column in range(3):
                        grown[done, column] = cuts[done, column]
                cuts = grown
            cuts[cut_count, 0] = before[n, 0]
            cuts[cut_count, 1] = i
            cuts[cut_count, 2] = before[n, 1]
            live_cut[n] = cut_count
            cut_count += 1
    return live, np.empty((0, 2), dtype=np.int64), cuts[:cut_count], lossy
