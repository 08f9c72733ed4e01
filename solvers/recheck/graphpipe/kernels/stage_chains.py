"""Search for a chain of stages: numbers of layers taken of each path, with the fewest devices that reach them.

The graph is cut into paths of layers that only follow one another. A downset is so many layers of each path, and a
stage takes some more of each. Sums over a stage are differences of sums along paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import BoolArray, Float64Array, Int32Array, Int64Array, UInt64Array
from mtpp.solvers.jit import inlined, kernel

UInt16Array = NDArray[np.uint16]

NONE, FOUND, PAUSED, FULL = 0, 1, 2, 3
"""Outcomes: there is no chain; there is one; go on with the same arrays; go on with more room for downsets."""

LEVEL, STATE, EXPANDING, DEPTH, ACTIVE, COUNT, STEPS = range(7)
"""Places in ``Walk.at``."""

_LARGEST = 4e18


class Paths(NamedTuple):
    """Paths of layers in a topological order, and what they cost by option.

    Attributes
    ----------
    base, length
        Where the sums along each path begin, and its layers.
    follows
        Whether a path is equal to the one before it.
    before_start, before, before_ticks
        CSR of the paths that each one reads from, and when what they send may arrive: there and back, there alone, and
        all through the channel, int64, shape (edges, 3, options).
    after_start, after, after_ticks
        CSR of the paths that read from each one, and what follows a forward pass until their gradients are back, int64,
        shape (edges, options).
    replicas, batches, in_flight, gradients
        By option: d; micro-batches of an iteration; micro-batches in flight of a stage that none reads from, and of
        another, shape (2, options); ticks of synchronising a byte, not above the exact value.
    load, kept, enter, leave
        By option and place: ticks of a whole iteration and bytes of a micro-batch, summed along the path, and when what
        comes from the layer before may arrive, shape (3, options, places), and what follows until gradients are back
        from the layer behind.
    fixed, parameters, work, passed
        By place, summed along the path: bytes; bytes of parameters; device-ticks at least; ticks of one micro-batch at
        least, both passes and forward alone, shape (2, places).
    mixer
        Random odd numbers, by path.
    """

    base: Int64Array
    length: Int64Array
    follows: BoolArray
    before_start: Int64Array
    before: Int64Array
    before_ticks: Int64Array
    after_start: Int64Array
    after: Int64Array
    after_ticks: Int64Array
    replicas: Int64Array
    batches: Int64Array
    in_flight: Int64Array
    gradients: Float64Array
    load: Int64Array
    kept: Int64Array
    enter: Int64Array
    leave: Int64Array
    fixed: Int64Array
    parameters: Int64Array
    work: Int64Array
    passed: Int64Array
    mixer: UInt64Array


class Limits(NamedTuple):
    """Ticks of an iteration, devices in all, bytes on each; and whether stages are in one line."""

    ticks: int
    devices: int
    memory_bytes: int
    line: bool


class Known(NamedTuple):
    """Downsets that were reached: layers of each path, fewest devices, the next of as many layers; a hash table."""

    counts: UInt16Array
    used: Int64Array
    following: Int32Array
    table: Int32Array


class Walk(NamedTuple):
    """State of the search, so that it can pause anywhere: rows are depths, one for each path that is not all taken."""

    at: Int64Array
    newest: Int32Array
    active: Int64Array
    upcoming: Int64Array
    current: UInt16Array
    rest: Int64Array
    entry: Int64Array
    live: Int64Array
    live_count: Int64Array
    load: Int64Array
    kept: Int64Array
    entered: Int64Array
    sums: Int64Array


@inlined
def _place(counts: UInt16Array, mixer: UInt64Array, known: Known) -> int:
    """Return where a downset is in the hash table, or the empty place where it belongs."""
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for c in range(len(mixer)):
        mixed += np.uint64(counts[c]) * mixer[c]
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mask = len(known.table) - 1
    at = np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))
    while known.table[at] >= 0:
        other = known.table[at]
        same = True
        for c in range(len(mixer)):
            if known.counts[other, c] != counts[c]:
                same = False
                break
        if same:
            break
        at = (at + 1) & mask
    return int(at)


@inlined
def _all_before(paths: Paths, counts: UInt16Array, c: int) -> bool:
    for e in range(paths.before_start[c], paths.before_start[c + 1]):
        if counts[paths.before[e]] < paths.length[paths.before[e]]:
            return False
    return True


@kernel
def fill_table(known: Known, mixer: UInt64Array, count: int) -> None:
    """Enter the first *count* downsets into an empty hash table."""
    for s in range(count):
        known.table[_place(known.counts[s], mixer, known)] = s


@inlined
def _begin(paths: Paths, limits: Limits, known: Known, walk: Walk) -> bool:
    """Prepare to expand a downset; return whether what is left could be done by the devices that are left."""
    at, options = walk.at, len(paths.replicas)
    counts, used = known.counts[at[STATE]], known.used[at[STATE]]
    left = count = 0
    line = np.zeros(2, dtype=np.int64)
    for c in range(len(paths.length)):
        walk.current[c] = counts[c]
        begun, end = paths.base[c] + counts[c], paths.base[c] + paths.length[c]
        left += paths.work[end] - paths.work[begun]
        if limits.line:
            line[0] += paths.passed[0, begun]
            line[1] += paths.passed[1, begun]
        if begun == end:
            continue
        walk.active[count] = c
        walk.rest[count] = paths.work[end] - paths.work[begun]
        for kind in range(3):
            for o in range(options):
                enters = np.int64(0)
                if counts[c]:
                    enters = paths.enter[kind, o, begun]
                else:
                    for e in range(paths.before_start[c], paths.before_start[c + 1]):
                        b = paths.before[e]
                        if counts[b] == paths.length[b]:
                            enters = max(enters, paths.before_ticks[e, kind, o])
                walk.entry[count, kind, o] = enters
        count += 1
    at[ACTIVE] = count
    if left > (limits.devices - used) * limits.ticks:
        return False
    walk.rest[count] = 0
    for i in range(count - 1, -1, -1):
        walk.rest[i] += walk.rest[i + 1]
    at[DEPTH] = 0
    walk.upcoming[0] = counts[walk.active[0]]
    walk.sums[0, :] = 0
    live = 0
    for o in range(options):
        if used + paths.replicas[o] <= limits.devices:
            walk.live[0, live] = o
            live += 1
        walk.load[0, o] = walk.kept[0, o] = 0
        walk.entered[0, 0, o], walk.entered[0, 1, o], walk.entered[0, 2, o] = line[0], line[1], 0
    walk.live_count[0] = live
    return live > 0


@inlined
def _after(paths: Paths, counts: UInt16Array, walk: Walk, o: int) -> int:
    """Return what follows the forward pass of the stage that was picked until its gradients are back."""
    longest = np.int64(0)
    for i in range(walk.at[DEPTH]):
        c = walk.active[i]
        if walk.current[c] == counts[c]:
            continue
        if walk.current[c] < paths.length[c]:
            longest = max(longest, paths.leave[o, paths.base[c] + walk.current[c]])
            continue
        for e in range(paths.after_start[c], paths.after_start[c + 1]):
            if walk.current[paths.after[e]] == 0:
                longest = max(longest, paths.after_ticks[e, o])
    return int(longest)


@inlined
def _cheapest(paths: Paths, limits: Limits, known: Known, walk: Walk) -> int:
    """Return the fewest replicas with which the stage that was picked could be one; 0 if with none."""
    depth = walk.at[DEPTH]
    counts = known.counts[walk.at[STATE]]
    read = 0
    for i in range(depth):
        c = walk.active[i]
        if walk.current[c] == counts[c]:
            continue
        if walk.current[c] < paths.length[c]:
            read = 1
        for e in range(paths.after_start[c], paths.after_start[c + 1]):
            if walk.current[paths.after[e]] == 0:
                read = 1
        if read:
            break
    fewest = 0
    for i in range(walk.live_count[depth]):
        o = walk.live[depth, i]
        d = paths.replicas[o]
        if fewest and d >= fewest:
            continue
        if walk.sums[depth, 0] + paths.in_flight[read, o] * walk.kept[depth, o] > limits.memory_bytes:
            continue
        trip = walk.entered[depth, 0, o] + walk.load[depth, o] // paths.batches[o]
        if trip + _after(paths, counts, walk, o) > limits.ticks:
            continue
        gradients = np.ceil(min(walk.sums[depth, 1] * paths.gradients[o], _LARGEST))
        if walk.entered[depth, 1, o] + walk.load[depth, o] <= limits.ticks - np.int64(gradients):
            fewest = d
    return fewest


@inlined
def _reach(paths: Paths, known: Known, walk: Walk, used: int, larger: UInt16Array) -> bool:
    """Note that the downset at hand is reached with so many devices; return False if there is no room for it."""
    at = walk.at
    if at[COUNT] == len(known.used):
        return False
    for c in range(len(larger)):  # of equal paths, those with more layers first
        value, b = walk.current[c], c
        while paths.follows[b] and larger[b - 1] < value:
            larger[b] = larger[b - 1]
            b -= 1
        larger[b] = value
    place = _place(larger, paths.mixer, known)
    state = known.table[place]
    if state >= 0:
        known.used[state] = min(known.used[state], used)
        return True
    level = at[LEVEL] + walk.sums[at[DEPTH], 3]
    state = at[COUNT]
    at[COUNT] += 1
    known.table[place] = state
    known.counts[state] = larger
    known.used[state] = used
    known.following[state] = walk.newest[level]
    walk.newest[level] = state
    return True


@inlined
def _deeper(paths: Paths, limits: Limits, known: Known, walk: Walk, q: int) -> bool:
    """Add the layers of a path up to *q* to the stage; return whether some option could still take as many.

    Options are dropped that take too long or need too much memory, and those with which the devices left could not do
    the work that would be left: layers that are still to come add at most what fits the stage's time.
    """
    at = walk.at
    depth, used = at[DEPTH], known.used[at[STATE]]
    c, deeper = walk.active[depth], depth + 1
    base = paths.base[c]
    p = known.counts[at[STATE], c]
    first, last = base + p, base + q
    walk.sums[deeper, 0] = walk.sums[depth, 0] + paths.fixed[last] - paths.fixed[first]
    walk.sums[deeper, 1] = walk.sums[depth, 1] + paths.parameters[last] - paths.parameters[first]
    walk.sums[deeper, 2] = walk.sums[depth, 2] + paths.work[last] - paths.work[first]
    walk.sums[deeper, 3] = walk.sums[depth, 3] + q - p
    left = walk.rest[0]
    possible = False
    live = 0
    for i in range(walk.live_count[depth]):
        o = walk.live[depth, i]
        load = walk.load[depth, o] + paths.load[o, last] - paths.load[o, first]
        kept = walk.kept[depth, o] + paths.kept[o, last] - paths.kept[o, first]
        both, forward, channel = walk.entered[depth, 0, o], walk.entered[depth, 1, o], walk.entered[depth, 2, o]
        if q > p:
            both, forward = max(both, walk.entry[depth, 0, o]), max(forward, walk.entry[depth, 1, o])
            channel = max(channel, walk.entry[depth, 2, o])
        if both + load > limits.ticks or forward + load > limits.ticks:
            continue
        if channel + load // paths.batches[o] > limits.ticks:
            continue
        if walk.sums[deeper, 0] + paths.in_flight[0, o] * kept > limits.memory_bytes:
            continue
        possible = True
        d = paths.replicas[o]
        more = min(walk.rest[deeper], d * (limits.ticks - both - load))
        if left - walk.sums[deeper, 2] - more > (limits.devices - used - d) * limits.ticks:
            continue
        walk.load[deeper, o], walk.kept[deeper, o] = load, kept
        walk.entered[deeper, 0, o], walk.entered[deeper, 1, o], walk.entered[deeper, 2, o] = both, forward, channel
        walk.live[deeper, live] = o
        live += 1
    walk.live_count[deeper] = live
    return possible


@kernel
def search_chains(
    paths: Paths, limits: Limits, known: Known, walk: Walk, larger: UInt16Array, layers: int, most_steps: int
) -> int:
    """Go on with the search for a chain of stages that takes all layers.

    Parameters
    ----------
    larger
        Room for a downset.
    most_steps
        Pause after as many.

    Returns
    -------
    :data:`NONE`, :data:`FOUND`, :data:`PAUSED` or :data:`FULL`.

    Notes
    -----
    Downsets with fewer layers first. Of equal paths with as many layers taken, one takes no more than the one before:
    exchanging them changes nothing. At most most_steps · options time.
    """
    at = walk.at
    end = at[STEPS] + most_steps
    while True:
        if not at[EXPANDING]:
            while at[STATE] < 0:
                at[LEVEL] += 1
                if at[LEVEL] >= layers:
                    return NONE
                at[STATE] = walk.newest[at[LEVEL]]
            at[STEPS] += 1
            if _begin(paths, limits, known, walk):
                at[EXPANDING] = 1
            else:
                at[STATE] = known.following[at[STATE]]
            continue
        if at[STEPS] >= end:
            return PAUSED
        depth = at[DEPTH]
        if depth == at[ACTIVE]:
            d = _cheapest(paths, limits, known, walk) if walk.sums[depth, 3] else 0
            if d:
                if at[LEVEL] + walk.sums[depth, 3] == layers:
                    return FOUND
                if not _reach(paths, known, walk, known.used[at[STATE]] + d, larger):
                    return FULL
            at[DEPTH] = depth - 1
            continue
        c = walk.active[depth]
        p, q = np.int64(known.counts[at[STATE], c]), walk.upcoming[depth]
        top = paths.length[c]
        if paths.follows[c] and known.counts[at[STATE], c - 1] == p:
            top = min(top, np.int64(walk.current[c - 1]))
        if p == 0 and not _all_before(paths, walk.current, c):
            top = 0
        if q > top:
            walk.current[c] = p
            if depth == 0:
                at[EXPANDING] = 0
                at[STATE] = known.following[at[STATE]]
            else:
                at[DEPTH] = depth - 1
            continue
        at[STEPS] += 1
        walk.upcoming[depth] = q + 1
        if not _deeper(paths, limits, known, walk, q):
            walk.upcoming[depth] = top + 1
            continue
        if walk.live_count[depth + 1] == 0:
            continue
        walk.current[c] = q
        at[DEPTH] = depth + 1
        if depth + 1 < at[ACTIVE]:
            walk.upcoming[depth + 1] = known.counts[at[STATE], walk.active[depth + 1]]
