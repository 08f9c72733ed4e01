"""Pareto fronts of the ways to cut a component of a graph, and of components side by side.

A way to cut a component between two ops is a *point*, a row of six integers:

* :data:`CLOSED`: stages that lie wholly inside, by groups of equal devices in one word (:class:`Devices`);
* :data:`TAIL`, :data:`HEAD`: ticks that the stages of the two terminals pay for what they hold of the component, and
  for those of its tensors that they cut;
* :data:`FLAGS`: what is paid once however many components ask for it, see below;
* :data:`TAIL_PARAMS`, :data:`HEAD_PARAMS`: bytes of parameters that those stages hold of it.

A tensor of the tail op that several components read has two flags: the tail's stage has to send it (bit 2j, for the
j-th such tensor), and the head's stage reads it (bit 2j + 1). Their ticks, ``charges[2j]`` and ``charges[2j + 1]``, are
not in the point, so that points of components side by side are added and their flags united. Where the terminals are no
ops but stand for all inputs or all outputs, :data:`TAIL_USED` and :data:`HEAD_USED` tell that their stages hold any op
at all: a stage more. Above the flags stand the groups of devices of the two stages: ticks are those of their devices,
and only points of the same two groups are compared and added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES, MemoryArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import stage_ticks

CLOSED, TAIL, HEAD, FLAGS, TAIL_PARAMS, HEAD_PARAMS = range(6)

TAIL_USED, HEAD_USED = 1 << 40, 1 << 41

TAIL_SHIFT, HEAD_SHIFT = 44, 52
"""Places of the groups of the two stages among the flags."""

MOST_GROUPS = 1 << 8

TAIL_GROUP, HEAD_GROUP = (MOST_GROUPS - 1) << TAIL_SHIFT, (MOST_GROUPS - 1) << HEAD_SHIFT

PARAMS, LEAST, TICKS = range(3)
"""Columns of costs: bytes of parameters, ticks on the devices that take least, ticks on a device of the first group."""

UNIT, KIND, SHIFT, MASK, RATE = range(5)
"""Columns of groups: what a stage adds to the counts, its class of devices, where its own count stands, and how much of
the :data:`LEAST` work a device does in a tick at most, in parts of :data:`WHOLE`."""

WHOLE = 1 << 20

ALL = -1
"""In place of a class: of all devices."""

MOST_SHARED = 8
"""Tensors of one op that can have flags."""

HEAD_BITS = sum(2 << (2 * j) for j in range(MOST_SHARED))

_SLACK = 1 + 1e-9
"""Far more than a float loses."""

BUFFER = 1 << 17
"""Points that are gathered before those that are dominated are left out."""


class Devices(NamedTuple):
    """Devices by groups of equal ones, and how many of each are used, as fields of one word.

    A field has a guard bit above it, which is 0 in counts that are allowed. Two such counts and one stage more still
    fit into it with its guard.

    Attributes
    ----------
    groups
        Rows of five for each group, int64; see :data:`UNIT`. Where not all devices may be used, all stages are counted
        in a field of their own, that of the last row, which is no group.
    allowed
        All devices that may be used, with the guards.
    guards
        Guard bits of all fields.
    ordered
        Whether groups come one after the other: no stage feeds one of a group before its own.
    equal
        Whether there is one group, all of which may be used.
    """

    groups: Int64Array
    allowed: int
    guards: int
    ordered: bool
    equal: bool


class Terms(NamedTuple):
    """What all components of a graph have in common while stages below one cutoff are looked for.

    Attributes
    ----------
    cutoff
        Every stage has to cost less, in ticks.
    devices
        What stages may stand on.
    total_work
        Σ work of the graph, on the devices that take least.
    memory
        What stages may hold, and what they pay for more.
    most_points
        A front that is larger is thinned.
    """

    cutoff: int
    devices: Devices
    total_work: int
    memory: MemoryArrays
    most_points: int


@inlined
def tail_group(flags: int) -> int:
    """Return the group of devices of the tail's stage."""
    return (flags & TAIL_GROUP) >> TAIL_SHIFT


@inlined
def head_group(flags: int) -> int:
    """Return the group of devices of the head's stage."""
    return (flags & HEAD_GROUP) >> HEAD_SHIFT


@inlined
def allowed(closed: int, devices: Devices) -> bool:
    """Return whether there are devices for so many closed stages."""
    return bool((devices.allowed - closed) & devices.guards == devices.guards)


@inlined
def charged(flags: int, side: int, charges: Int64Array, group: int) -> int:
    """Return the ticks of the tensors that *flags* tells the stage of the tail (side 0) or head (side 1) to pay."""
    total = 0
    bits = flags >> side
    for j in range(side, charges.shape[1], 2):
        if bits & 1:
            total += charges[group, j]
        bits >>= 2
    return total


@inlined
def put(points: Int64Array, i: int, point: Int64Array) -> None:
    """Write a point to row *i* (a loop compiles much faster than an assignment of slices)."""
    for column in range(6):
        points[i, column] = point[column]


@inlined
def fits(cost: int, param_bytes: int, group: int, terms: Terms) -> bool:
    """Return whether a stage with these ticks, apart from its overflow, and these parameters stays below the cutoff."""
    memory = terms.memory
    if cost >= terms.cutoff or memory.mode == NO_MEMORY:
        return bool(cost < terms.cutoff)
    kind = terms.devices.groups[group, KIND]
    return bool(stage_ticks(cost, param_bytes, memory.figures[kind, RESERVE_BYTES], kind, memory) < terms.cutoff)


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
def nondominated(points: Int64Array, count: int, charges: Int64Array, limited: bool, guards: int) -> Int64Array:
    """Return which of the first *count* points no other dominates; parameters count where they are *limited*.

    A point dominates another if no entry is larger, whatever flags others add: flags that it has and the other has
    not count with their charges.

    Notes
    -----
    Points are taken by closed stages and tail. For each set of flags (where there are several groups, with each count
    of closed stages) a staircase holds, by rising tail, the falling least heads so far: O(n·(log n + f·log n))
    comparisons for f sets. With limited parameters every pair is compared.
    """
    order = in_order(points, count)
    kept = np.empty(count, dtype=np.int64)
    size = 0
    if limited:
        for i in range(count):
            y = order[i]
            x = 0
            while x < size and not _dominates(points, kept[x], y, charges, guards):
                x += 1
            if x == size:
                kept[size] = y
                size += 1
        return kept[:size]
    sets, counts = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    several = guards & (guards - 1) != 0
    set_of = np.empty(count, dtype=np.int64)
    begin = np.zeros(count + 1, dtype=np.int64)
    set_count = 0
    for i in range(count):
        s = 0
        while s < set_count and (sets[s] != points[i, FLAGS] or (several and counts[s] != points[i, CLOSED])):
            s += 1
        if s == set_count:
            sets[s], counts[s] = points[i, FLAGS], points[i, CLOSED]
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
        a, b = tail_group(flags), head_group(flags)
        dominated = False
        for s in range(set_count):
            more = sets[s] & ~flags
            if more >= TAIL_USED or (several and (sets[s] ^ flags) & (TAIL_GROUP | HEAD_GROUP)):
                continue
            if several and (points[y, CLOSED] + guards - counts[s]) & guards != guards:
                continue
            low, high = begin[s], begin[s] + steps[s]
            most = tail - charged(more, 0, charges, a)
            while low < high:
                middle = (low + high) // 2
                if tails[middle] <= most:
                    low = middle + 1
                else:
                    high = middle
            if low > begin[s] and heads[low - 1] + charged(more, 1, charges, b) <= head:
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
def _dominates(points: Int64Array, x: int, y: int, charges: Int64Array, guards: int) -> bool:
    more = points[x, FLAGS] & ~points[y, FLAGS]
    return bool(
        more < TAIL_USED
        and (points[x, FLAGS] ^ points[y, FLAGS]) & (TAIL_GROUP | HEAD_GROUP) == 0
        and (points[y, CLOSED] + guards - points[x, CLOSED]) & guards == guards
        and points[x, TAIL] + charged(more, 0, charges, tail_group(points[y, FLAGS])) <= points[y, TAIL]
        and points[x, HEAD] + charged(more, 1, charges, head_group(points[y, FLAGS])) <= points[y, HEAD]
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


@inlined
def affordable(closed: int, tail: int, head: int, ends: int, outside: int, terms: Terms) -> bool:
    """Return whether what is outside, and what the open stages pay, fits onto the devices without closed stages.

    Parameters
    ----------
    ends
        Groups of the open stages, as flags have them.
    """
    devices = terms.devices
    left = devices.allowed - closed
    if left & devices.guards != devices.guards:
        return False
    if devices.equal:
        return bool(outside + tail + head <= (left ^ devices.guards) * (terms.cutoff - 1))
    return _fits_rates(left, tail, head, ends, outside, terms)


@subroutine
def _fits_rates(left: int, tail: int, head: int, ends: int, outside: int, terms: Terms) -> bool:
    groups = terms.devices.groups
    room, most = 0, WHOLE * (1 << 20)
    for g in range(len(groups)):
        devices = left >> groups[g, SHIFT] & groups[g, MASK]
        if groups[g, KIND] == ALL:
            most = devices * WHOLE  # no rate is above it
        else:
            room += devices * groups[g, RATE]
    due = float(outside) * WHOLE
    due += float(tail) * groups[tail_group(ends), RATE] + float(head) * groups[head_group(ends), RATE]
    return bool(due <= float(min(room, most)) * (terms.cutoff - 1) * _SLACK)


@inlined
def hopeful(point: Int64Array, outside: int, charges: Int64Array, ends: Int64Array, terms: Terms) -> bool:
    """Return whether a point may be part of a cut below the cutoff.

    Parameters
    ----------
    outside
        Work that the closed stages and the two open ones do not hold yet, in ticks of the devices that take least.
    ends
        What the stages of the terminals hold at least: costs of the tail and of the head, by columns.
    """
    flags = point[FLAGS]
    a, b = tail_group(flags), head_group(flags)
    tail = point[TAIL] + charged(flags, 0, charges, a)
    head = point[HEAD] + charged(flags, 1, charges, b)
    if not affordable(point[CLOSED], tail, head, flags, outside, terms):
        return False
    return fits(ends[0, TICKS + a] + tail, ends[0, PARAMS] + point[TAIL_PARAMS], a, terms) and fits(
        ends[1, TICKS + b] + head, ends[1, PARAMS] + point[HEAD_PARAMS], b, terms
    )


@kernel
def side_by_side(
    left: Int64Array,
    right: Int64Array,
    rest: Int64Array,
    beside: int,
    outside: int,
    charges: Int64Array,
    ends: Int64Array,
    terms: Terms,
) -> tuple[Int64Array, Int64Array, bool]:
    """Return the front of two components between the same terminals, both cut.

    Parameters
    ----------
    left, right
        Their fronts.
    rest
        No way to cut the components that are still to come is better than this point in any entry but the flags.
    beside
        Work of the components that are still to come, in ticks of the devices that take least.
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
            if (left[i, FLAGS] ^ right[j, FLAGS]) & (TAIL_GROUP | HEAD_GROUP):
                continue
            flags = left[i, FLAGS] | right[j, FLAGS]
            for column in range(6):
                candidate[column] = left[i, column] + right[j, column]
                whole[column] = candidate[column] + rest[column]
            candidate[FLAGS] = flags
            whole[FLAGS] = flags
            tail = candidate[TAIL] + charged(flags, 0, charges, tail_group(flags))
            head = candidate[HEAD] + charged(flags, 1, charges, head_group(flags))
            if not affordable(candidate[CLOSED], tail, head, flags, outside + beside, terms):
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
    kept = nondominated(points, count, charges, terms.memory.mode != NO_MEMORY, terms.devices.guards)
    lossy = len(kept) > most
    if lossy:
        kept = thinned(kept, most)
    size = len(kept)
    kept_points = np.empty((size, 6), dtype=np.int64)
    kept_pairs = np.empty((size, pairs.shape[1]), dtype=np.int64)
    for i in range(size):
        put(kept_points, i, points[kept[i]])
        for column in range(pairs.shape[1]):
            kept_pairs[i, column] = pairs[kept[i], column]
    for i in range(size):
        put(points, i, kept_points[i])
        for column in range(pairs.shape[1]):
            pairs[i, column] = kept_pairs[i, column]
    return size, lossy
