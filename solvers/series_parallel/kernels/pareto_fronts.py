"""Pareto fronts of the ways to cut a component of a graph, and of components side by side.

A way to cut a component between two ops is a *point*, a row of six integers:

* :data:`CLOSED`: stages that lie wholly inside;
* :data:`TAIL`, :data:`HEAD`: ticks that the stages of the two terminals pay for what they hold of the component, and
  for those of its tensors that they cut;
* :data:`FLAGS`: what is paid once however many components ask for it, see below;
* :data:`TAIL_PARAMS`, :data:`HEAD_PARAMS`: bytes of parameters that those stages hold of it.

A tensor of the tail op that several components read has two flags: the tail's stage has to send it (bit 2j, for the
j-th such tensor), and the head's stage reads it (bit 2j + 1). Their ticks, ``charges[2j]`` and ``charges[2j + 1]``, are
not in the point, so that points of components side by side are added and their flags united. Where the terminals are no
ops but stand for all inputs or all outputs, :data:`TAIL_USED` and :data:`HEAD_USED` tell that their stages hold any op
at all: a stage more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES, MemoryArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, stage_ticks

CLOSED, TAIL, HEAD, FLAGS, TAIL_PARAMS, HEAD_PARAMS = range(6)

TAIL_USED, HEAD_USED = 1 << 40, 1 << 41

MOST_SHARED = 8
"""Tensors of one op that can have flags."""

HEAD_BITS = sum(2 << (2 * j) for j in range(MOST_SHARED))

BUFFER = 1 << 17
"""Points that are gathered before those that are dominated are left out."""


class Terms(NamedTuple):
    """What all components of a graph have in common while the stages below one cutoff are counted.

    Attributes
    ----------
    cutoff
        Every stage has to cost less, in ticks.
    stages
        Most stages there may be.
    total_work
        Σ work of the graph.
    memory
        What stages may hold, and what they pay for more.
    most_points
        A front that is larger is thinned.
    """

    cutoff: int
    stages: int
    total_work: int
    memory: MemoryArrays
    most_points: int


class Ends(NamedTuple):
    """What the stages of a component's terminals hold at least: ticks and bytes of the terminals themselves."""

    tail_work: int
    tail_params: int
    head_work: int
    head_params: int


@kernel
def charged(flags: int, side: int, charges: Int64Array) -> int:
    """Return the ticks of the tensors that *flags* tells the stage of the tail (side 0) or head (side 1) to pay."""
    total = 0
    bits = flags >> side
    for j in range(side, len(charges), 2):
        if bits & 1:
            total += charges[j]
        bits >>= 2
    return total


@kernel
def put(points: Int64Array, i: int, point: Int64Array) -> None:
    """Write a point to row *i* (a loop compiles much faster than an assignment of slices)."""
    for column in range(6):
        points[i, column] = point[column]


@kernel
def fits(cost: int, param_bytes: int, cutoff: int, memory: MemoryArrays) -> bool:
    """Return whether a stage with these ticks, apart from its overflow, and these parameters stays below *cutoff*."""
    if cost >= cutoff or memory.mode == NO_MEMORY:
        return bool(cost < cutoff)
    return bool(stage_ticks(cost, param_bytes, memory.figures[EQUAL, RESERVE_BYTES], EQUAL, memory) < cutoff)


@subroutine
def _precedes(points: Int64Array, i: int, j: int) -> bool:
    for column in range(6):
        if points[i, column] != points[j, column]:
            return bool(points[i, column] < points[j, column])
    return i < j


@kernel
def in_order(points: Int64Array, count: int) -> Int64Array:
    """Return the points in ascending order, column by column (heapsort)."""
    order = np.arange(count)
    end = count
    start = count // 2
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            order[end], order[0] = order[0], order[end]
        parent = start
        item = order[parent]
        while 2 * parent + 1 < end:
            child = 2 * parent + 1
            if child + 1 < end and _precedes(points, order[child], order[child + 1]):
                child += 1
            if not _precedes(points, item, order[child]):
                break
            order[parent] = order[child]
            parent = child
        order[parent] = item
    return order


@kernel
def nondominated(points: Int64Array, count: int, charges: Int64Array, limited: bool) -> Int64Array:
    """Return which of the first *count* points no other dominates; parameters count where they are *limited*.

    A point dominates another if no entry is larger, whatever flags others add: flags that it has and the other has
    not count with their charges.

    Notes
    -----
    Points are taken by closed stages and tail. For each set of flags a staircase holds, by rising tail, the falling
    least heads so far: O(n·(log n + f·log n)) comparisons for f sets of flags. With limited parameters every pair is
    compared.
    """
    order = in_order(points, count)
    kept = np.empty(count, dtype=np.int64)
    size = 0
    if limited:
        for i in range(count):
            y = order[i]
            x = 0
            while x < size and not _dominates(points, kept[x], y, charges):
                x += 1
            if x == size:
                kept[size] = y
                size += 1
        return kept[:size]
    sets = np.empty(count, dtype=np.int64)
    set_of = np.empty(count, dtype=np.int64)
    begin = np.zeros(count + 1, dtype=np.int64)
    set_count = 0
    for i in range(count):
        s = 0
        while s < set_count and sets[s] != points[i, FLAGS]:
            s += 1
        if s == set_count:
            sets[s] = points[i, FLAGS]
            set_count += 1
        set_of[i] = s
        begin[s + 1] += 1
    for s in range(set_count):
        begin[s + 1] += begin[s]
    steps = np.zeros(set_count, dtype=np.int64)
    tails, heads = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for i in range(count):
        y = order[i]
        tail, head, flags = points[y, TAIL], points[y, HEAD], points[y, FLAGS]
        dominated = False
        for s in range(set_count):
            more = sets[s] & ~flags
            if more >= TAIL_USED:
                continue
            low, high = begin[s], begin[s] + steps[s]
            most = tail - charged(more, 0, charges)
            while low < high:
                middle = (low + high) // 2
                if tails[middle] <= most:
                    low = middle + 1
                else:
                    high = middle
            if low > begin[s] and heads[low - 1] + charged(more, 1, charges) <= head:
                dominated = True
                break
        if dominated:
            continue
        kept[size] = y
        size += 1
        s = set_of[y]
        end = begin[s] + steps[s]
        place = end
        while place > begin[s] and tails[place - 1] >= tail:
            place -= 1
        behind = place
        while behind < end and heads[behind] >= head:
            behind += 1
        moved = 1 - (behind - place)
        if moved > 0:
            for step in range(end - 1, behind - 1, -1):
                tails[step + 1], heads[step + 1] = tails[step], heads[step]
        elif moved < 0:
            for step in range(behind, end):
                tails[step + moved], heads[step + moved] = tails[step], heads[step]
        tails[place], heads[place] = tail, head
        steps[s] += moved
    return kept[:size]


@subroutine
def _dominates(points: Int64Array, x: int, y: int, charges: Int64Array) -> bool:
    more = points[x, FLAGS] & ~points[y, FLAGS]
    return bool(
        more < TAIL_USED
        and points[x, CLOSED] <= points[y, CLOSED]
        and points[x, TAIL] + charged(more, 0, charges) <= points[y, TAIL]
        and points[x, HEAD] + charged(more, 1, charges) <= points[y, HEAD]
        and points[x, TAIL_PARAMS] <= points[y, TAIL_PARAMS]
        and points[x, HEAD_PARAMS] <= points[y, HEAD_PARAMS]
    )


@kernel
def thinned(kept: Int64Array, most: int) -> Int64Array:
    """Return *most* points evenly spread over a front, its first and last included."""
    count = len(kept)
    chosen = np.empty(most, dtype=np.int64)
    for i in range(most):
        chosen[i] = kept[i * (count - 1) // (most - 1)]
    return chosen


@subroutine
def affordable(point: Int64Array, outside: int, charges: Int64Array, terms: Terms) -> bool:
    """Return whether what is outside, and what the open stages pay, fits into the stages that are not closed."""
    open_cost = point[TAIL] + point[HEAD] + charged(point[FLAGS], 0, charges) + charged(point[FLAGS], 1, charges)
    return bool(outside + open_cost <= (terms.stages - point[CLOSED]) * (terms.cutoff - 1))


@subroutine
def hopeful(point: Int64Array, outside: int, charges: Int64Array, ends: Ends, terms: Terms) -> bool:
    """Return whether a point may be part of a cut below the cutoff.

    Parameters
    ----------
    outside
        Work that the closed stages and the two open ones do not hold yet, in ticks.

    """
    if not affordable(point, outside, charges, terms):
        return False
    tail = point[TAIL] + charged(point[FLAGS], 0, charges)
    head = point[HEAD] + charged(point[FLAGS], 1, charges)
    return fits(ends.tail_work + tail, ends.tail_params + point[TAIL_PARAMS], terms.cutoff, terms.memory) and fits(
        ends.head_work + head, ends.head_params + point[HEAD_PARAMS], terms.cutoff, terms.memory
    )


@kernel
def side_by_side(
    left: Int64Array,
    right: Int64Array,
    rest: Int64Array,
    beside: int,
    outside: int,
    charges: Int64Array,
    ends: Ends,
    terms: Terms,
) -> tuple[Int64Array, Int64Array, bool]:
    """Return the front of two components between the same terminals, both cut.

    Parameters
    ----------
    left, right
        Their fronts.
    rest
        No way to cut the components that are still to come is better than this point in any entry.
    beside
        Work of the components that are still to come, in ticks.
    outside
        Work outside all these components.

    Returns
    -------
    The points; of each the row in *left* and in *right*; and whether the front was thinned.

    Notes
    -----
    The sums of all pairs (a Minkowski sum), those that are dominated left out: O(p·log p) time for p pairs, and memory
    for the front and a buffer.
    """
    size = len(left) * len(right)
    room = min(size, BUFFER)
    points = np.empty((room, 6), dtype=np.int64)
    pairs = np.empty((room, 2), dtype=np.int64)
    candidate = np.empty(6, dtype=np.int64)
    whole = np.empty(6, dtype=np.int64)
    count = int(np.int64(0))
    lossy = False
    for i in range(len(left)):
        for j in range(len(right)):
            for column in range(6):
                candidate[column] = left[i, column] + right[j, column]
                whole[column] = candidate[column] + rest[column]
            candidate[FLAGS] = left[i, FLAGS] | right[j, FLAGS]
            whole[FLAGS] = candidate[FLAGS]
            if not affordable(candidate, outside + beside, charges, terms):
                continue
            if not hopeful(whole, outside, charges, ends, terms):
                continue
            if count == room:
                count, thin = condense(points, pairs, count, room // 2, charges, terms)
                lossy = lossy or thin
            put(points, count, candidate)
            pairs[count, 0], pairs[count, 1] = i, j
            count += 1
    count, thin = condense(points, pairs, count, terms.most_points, charges, terms)
    return points[:count], pairs[:count], lossy or thin


@kernel
def condense(
    points: Int64Array, pairs: Int64Array, count: int, most: int, charges: Int64Array, terms: Terms
) -> tuple[int, bool]:
    """Move the points that no other dominates to the front, at most *most*.

    Returns
    -------
    Their number, and whether there were more.
    """
    kept = nondominated(points, count, charges, terms.memory.mode != NO_MEMORY)
    lossy = len(kept) > most
    if lossy:
        kept = thinned(kept, most)
    size = len(kept)
    kept_points = np.empty((size, 6), dtype=np.int64)
    kept_pairs = np.empty((size, 2), dtype=np.int64)
    for i in range(size):
        put(kept_points, i, points[kept[i]])
        kept_pairs[i, 0], kept_pairs[i, 1] = pairs[kept[i], 0], pairs[kept[i], 1]
    for i in range(size):
        put(points, i, kept_points[i])
        pairs[i, 0], pairs[i, 1] = kept_pairs[i, 0], kept_pairs[i, 1]
    return size, lossy
