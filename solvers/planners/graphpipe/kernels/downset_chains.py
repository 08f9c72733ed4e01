"""Fewest devices for a chain of downsets whose stages could end in time: what every stage graph needs at least."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array, UInt64Array
from mtpp.solvers.jit import inlined, kernel

NO, YES, UNKNOWN = 0, 1, 2
"""Whether there is a chain; unknown where there were too many downsets or steps."""


@inlined
def _canonical(
    downset: np.uint64, group_start: Int64Array, branch_start: Int64Array, branch_length: Int64Array
) -> np.uint64:
    """Return the same downset up to equal branches: of each group, those with more layers come first."""
    one = np.uint64(1)
    for g in range(len(group_start) - 1):
        first, last = group_start[g], group_start[g + 1]
        if last - first < 2:
            continue
        length = branch_length[first]
        counts = np.zeros(length + 1, dtype=np.int64)
        for b in range(first, last):
            reached = 0
            while reached < length and (downset >> np.uint64(branch_start[b] + reached)) & one:
                reached += 1
            counts[reached] += 1
        reached = length
        for b in range(first, last):
            while counts[reached] == 0:
                reached -= 1
            counts[reached] -= 1
            for i in range(length):
                bit = one << np.uint64(branch_start[b] + i)
                downset = downset | bit if i < reached else downset & ~bit
    return downset


@inlined
def _place(downset: np.uint64, known: UInt64Array, table: Int32Array) -> np.int64:
    """Return where a downset is in the hash table, or the empty place where it belongs."""
    mask = len(table) - 1
    mixed = downset * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while table[at] >= 0 and known[table[at]] != downset:
        at = (at + 1) & mask
    return at


@kernel
def chain_exists(
    ticks: int,
    devices: int,
    memory_bytes: int,
    replicas: Int64Array,
    loads: Int64Array,
    kept: Int64Array,
    fixed: Int64Array,
    parameters: Int64Array,
    gradient_ticks: Float64Array,
    least_work: Int64Array,
    before: UInt64Array,
    entering: Int64Array,
    edges: Int64Array,
    arrival: Int64Array,
    after: UInt64Array,
    group_start: Int64Array,
    branch_start: Int64Array,
    branch_length: Int64Array,
    branch: Int64Array,
    most_downsets: int,
    most_steps: int,
) -> tuple[int, int]:
    """Tell whether stages that could each end in time, on so many devices in all, make up a model of up to 64 layers.

    Parameters
    ----------
    ticks, devices, memory_bytes
        Of the iteration, of all stages together, and on each device.
    replicas
        d of each option, ascending within those of one size of micro-batches, int64, shape (options,).
    loads
        What a layer makes a stage do in an iteration, by option, int64, shape (options, layers).
    kept
        Bytes for the fewest micro-batches in flight, of a stage with none behind it and with one, int64,
        shape (2, options, layers).
    fixed
        Bytes whatever is in flight, int64, shape (layers,).
    parameters
        Bytes of each layer, int64.
    gradient_ticks
        That synchronising a byte takes by option, float64, not above the exact value.
    least_work
        Device-ticks that each layer takes at least, whatever its stage, int64, shape (layers,).
    before, after
        Layers that each one reads from and is read by, uint64.
    entering, edges
        CSR of the edges into each layer, and for each its source, and what it takes at least to hand a micro-batch over
        and back by option, int64, shape (edges, 1 + options · 2): both ways, then forward alone.
    arrival
        When the passes of each layer on a path could have ended, both ways and forward alone, int64, shape (2, layers).
    group_start, branch_start, branch_length, branch
        Groups of equal branches, where each branch begins and how long it is; and the branch of each layer.

    Returns
    -------
    :data:`NO`, :data:`YES` or :data:`UNKNOWN`, and the steps made.

    Notes
    -----
    Dynamic programming over downsets, smallest first, with the fewest devices of each; a stage is what a downset has
    more than another. A partial chain is given up when the work left needs more devices than there are. Layers are in a
    topological order in which branches are contiguous, and equal branches follow each other.
    """
    options, layers = loads.shape
    one, none = np.uint64(1), np.uint64(0)
    full = (~none) >> np.uint64(64 - layers)
    known = np.empty(most_downsets, dtype=np.uint64)
    fewest = np.empty(most_downsets, dtype=np.int64)
    following = np.full(most_downsets, -1, dtype=np.int32)  # another downset of as many layers
    newest = np.full(layers + 1, -1, dtype=np.int32)
    size = 1
    while size < 2 * most_downsets:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    known[0], fewest[0], newest[0] = none, 0, 0
    table[_place(none, known, table)] = 0
    count = 1
    all_work = least_work.sum()
    follows = np.zeros(len(branch_start), dtype=np.bool_)  # an equal branch
    for g in range(len(group_start) - 1):
        follows[group_start[g] + 1 : group_start[g + 1]] = True
    cursor = np.zeros(layers + 2, dtype=np.int64)
    stage = np.zeros(layers + 2, dtype=np.uint64)
    total = np.zeros((layers + 2, options), dtype=np.int64)
    bytes_kept = np.zeros((layers + 2, 2, options), dtype=np.int64)
    sums = np.zeros((layers + 2, 2), dtype=np.int64)  # fixed bytes, parameters
    works = np.zeros(layers + 2, dtype=np.int64)
    enters = np.zeros((layers + 2, 2, options), dtype=np.int64)
    steps = 0
    for level in range(layers):
        at = newest[level]
        while at >= 0:
            downset, used = known[at], fewest[at]
            at = following[at]
            done = 0
            for v in range(layers):
                if (downset >> np.uint64(v)) & one:
                    done += least_work[v]
            if all_work - done > (devices - used) * ticks:
                continue
            depth = 0
            cursor[0] = 0
            works[0] = done
            while depth >= 0:
                v = cursor[depth]
                if v >= layers:
                    depth -= 1
                    continue
                cursor[depth] = v + 1
                bit = one << np.uint64(v)
                inside = stage[depth]
                if (downset | inside) & bit or before[v] & ~(downset | inside):
                    continue
                b = branch[v]
                if follows[b]:
                    mask = (one << np.uint64(branch_length[b])) - one
                    ours = (downset >> np.uint64(branch_start[b])) & mask
                    theirs = (downset >> np.uint64(branch_start[b - 1])) & mask
                    same = np.uint64(v - branch_start[b] + branch_start[b - 1])
                    if ours == theirs and not (inside >> same) & one:
                        continue
                steps += 1
                if steps > most_steps:
                    return UNKNOWN, steps
                deeper = depth + 1
                sums[deeper, 0] = sums[depth, 0] + fixed[v]
                sums[deeper, 1] = sums[depth, 1] + parameters[v]
                works[deeper] = works[depth] + least_work[v]
                inside |= bit
                leaves = False
                for u in range(layers):
                    if (inside >> np.uint64(u)) & one and after[u] & ~inside:
                        leaves = True
                        break
                possible = False
                best = -1
                for o in range(options):
                    total[deeper, o] = total[depth, o] + loads[o, v]
                    bytes_kept[deeper, 0, o] = bytes_kept[depth, 0, o] + kept[0, o, v]
                    bytes_kept[deeper, 1, o] = bytes_kept[depth, 1, o] + kept[1, o, v]
                    both, forward = enters[depth, 0, o], enters[depth, 1, o]
                    for e in range(entering[v], entering[v + 1]):
                        u = edges[e, 0]
                        if not (inside >> np.uint64(u)) & one:
                            both = max(both, arrival[0, u] + edges[e, 1 + o])
                            forward = max(forward, arrival[1, u] + edges[e, 1 + options + o])
                    enters[deeper, 0, o] = both
                    enters[deeper, 1, o] = forward
                    d = replicas[o]
                    if used + d > devices or both + total[deeper, o] > ticks:
                        continue
                    if sums[deeper, 0] + bytes_kept[deeper, 0, o] > memory_bytes:
                        continue
                    possible = True
                    if sums[deeper, 0] + bytes_kept[deeper, 1 if leaves else 0, o] > memory_bytes:
                        continue
                    gradients = np.int64(sums[deeper, 1] * gradient_ticks[o])
                    if forward + total[deeper, o] + gradients <= ticks and (best < 0 or d < replicas[best]):
                        best = o
                if not possible:
                    continue
                if best >= 0:
                    needed = used + replicas[best]
                    if all_work - works[deeper] <= (devices - needed) * ticks:
                        larger = downset | inside
                        if larger == full:
                            return YES, steps
                        larger = _canonical(larger, group_start, branch_start, branch_length)
                        place = _place(larger, known, table)
                        if table[place] >= 0:
                            fewest[table[place]] = min(fewest[table[place]], needed)
                        elif count == most_downsets:
                            return UNKNOWN, steps
                        else:
                            members = 0
                            rest = larger
                            while rest:
                                rest &= rest - one
                                members += 1
                            known[count], fewest[count] = larger, needed
                            following[count] = newest[members]
                            newest[members] = table[place] = count
                            count += 1
                stage[deeper] = inside
                cursor[deeper] = v + 1
                depth = deeper
    return NO, steps
