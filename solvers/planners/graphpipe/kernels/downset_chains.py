"""Least time in which all stages of some chain of downsets could end: no stage graph takes less."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtpp.array_types import Int32Array, Int64Array, UInt64Array
from mtpp.solvers.jit import inlined, kernel

NONE, UNKNOWN = -1, -2
"""There is no chain; or it is unknown, for there were too many downsets or steps."""

_FIRST_ROOM = 256
"""Downsets that there is room for at first: a power of 2."""


@kernel
def least_ticks(
    most_ticks: int,
    enough_ticks: int,
    devices: int,
    memory_bytes: int,
    copies: Int64Array,
    group_start: Int64Array,
    start: Int64Array,
    sums: Int64Array,
    works: Int64Array,
    passed: Int64Array,
    inner: Int64Array,
    entering: Int64Array,
    sources: Int64Array,
    entrances: Int64Array,
    outer: Int64Array,
    leaving: Int64Array,
    targets: Int64Array,
    exits: Int64Array,
    code_word: Int64Array,
    code_value: UInt64Array,
    most_downsets: int,
    most_steps: int,
) -> tuple[int, int]:
    """Return the least ticks in which stages, on so many devices in all, could each end that make up a model.

    The model is made of branches: paths of layers entered from outside only at the first and left only at the last. A
    downset is the number of layers that it has of each branch. *Positions* are those numbers, 0 to length, of one
    branch after the other.

    Parameters
    ----------
    most_ticks, enough_ticks
        More ticks are of no interest, nor are less than these.
    devices, memory_bytes
        Of all stages together, and on each device.
    copies
        d and micro-batches of an iteration of each option, int64, shape (options, 2).
    group_start
        First branch of each group of equal branches, and the number of branches, int64. Branches are in a topological
        order.
    start
        First position of each branch, and the number of positions, int64, shape (branches + 1,).
    sums
        Of the layers of a branch before a position, by option: ticks of an iteration; the same with synchronisation;
        bytes with the fewest micro-batches in flight of a stage that none is behind; and of one that is read by
        another. int64, shape (positions, options, 4).
    works
        Of the same layers: device-ticks and device-bytes that they take at least in any stage, int64,
        shape (positions, 2).
    passed
        Of the same layers: ticks that they delay all layers outside of their stage and the stages before, both ways and
        forward; 0 unless stages form a line. int64, shape (positions, 2).
    inner
        When a stage that begins at a position within a branch could begin, both ways and forward, and what passes
        besides its passes of one micro-batch until all are through the channel to it, int64,
        shape (positions, options, 3).
    entering, sources, entrances
        CSR of the edges into each branch, the branches that they come from, and the same of a stage that such an edge
        enters, int64, shape (edges, options, 3).
    outer
        What follows a stage that ends before a position within a branch, from its forward pass of a micro-batch until
        the gradients are back, int64, shape (positions, options).
    leaving, targets, exits
        CSR of the edges out of each branch, the branches that they go to, and the same of a stage that such an edge
        leaves, int64, shape (edges, options).
    code_word, code_value
        What a position adds to which word of the code of a downset; equal branches add the same. uint64.

    Returns
    -------
    The ticks, :data:`NONE` or :data:`UNKNOWN`; and the steps made.

    Notes
    -----
    Dynamic programming over downsets, smallest first, with the least ticks of each by number of devices; a stage is
    what a downset has more than another. A step adds layers of one branch to a stage. What a stage takes only grows
    with its layers, so that a branch ends where it takes too much. A partial chain is given up when the work left, in
    device-ticks or device-bytes, is more than the devices left have in the most ticks of interest; a stage, when it
    leaves too much even with all that it may still get. Of equal branches that a downset has as much of, the first
    ones get more. The code of a downset tells it from all others but for the order of equal branches, so downsets are
    compared without error. Space is O(downsets · (branches + devices)).
    """
    replicas, batches = copies[:, 0].copy(), copies[:, 1].copy()
    branches, options = len(start) - 1, len(replicas)
    words = np.int64(code_word.max() + 1)
    room = _FIRST_ROOM
    codes = np.empty((room, words), dtype=np.uint64)
    reaches = np.empty((room, branches), dtype=np.int32)
    best = np.empty((room, devices + 1), dtype=np.int64)  # ticks, with no more devices
    following = np.empty(room, dtype=np.int32)  # another downset of as many layers
    table = np.full(2 * room, -1, dtype=np.int32)
    length = np.empty(branches, dtype=np.int64)
    follows = np.ones(branches, dtype=np.bool_)  # an equal branch
    all_ticks, all_bytes, layers = 0, 0, 0
    for p in range(branches):
        length[p] = start[p + 1] - start[p] - 1
        layers += length[p]
        all_ticks += works[start[p + 1] - 1, 0]
        all_bytes += works[start[p + 1] - 1, 1]
    for g in range(len(group_start) - 1):
        follows[group_start[g]] = False
    newest = np.full(layers + 1, -1, dtype=np.int32)
    code = np.zeros(words, dtype=np.uint64)
    codes[0], reaches[0], best[0], newest[0], following[0] = np.uint64(0), 0, 0, 0, -1
    table[place(code, codes, table)] = 0
    count = 1
    never = most_ticks + 1
    # of the downset that is expanded
    old = np.empty(branches, dtype=np.int64)
    now = np.empty(branches, dtype=np.int64)
    waiting = np.empty(branches, dtype=np.int64)  # edges from branches that are not whole yet
    pending = np.empty(branches, dtype=np.int64)  # the same before there is a stage
    rest = np.zeros((branches + 1, 2), dtype=np.int64)
    enter = np.zeros((branches, options, 3), dtype=np.int64)
    # of the stage, by the number of its branches
    cursor = np.zeros(branches + 2, dtype=np.int64)
    most = np.zeros(branches + 2, dtype=np.int64)
    active = np.zeros(branches + 2, dtype=np.bool_)
    alive = np.zeros(branches + 2, dtype=np.bool_)
    whole = np.zeros(branches + 2, dtype=np.bool_)
    horizon = np.zeros(branches + 2, dtype=np.int64)
    opened = np.zeros(branches + 2, dtype=np.int64)  # edges out of the stage
    added = np.zeros(branches + 2, dtype=np.int64)
    gained = np.zeros((branches + 2, 2), dtype=np.int64)
    least = np.zeros(branches + 2, dtype=np.int64)  # devices
    ends = np.zeros(options, dtype=np.int64)
    usable = np.zeros((branches + 2, options), dtype=np.bool_)
    total = np.zeros((branches + 2, options, 4), dtype=np.int64)
    begin = np.zeros((branches + 2, options, 3), dtype=np.int64)
    steps, found = 0, never
    stair_devices = np.empty(devices + 1, dtype=np.int64)
    stair_ticks = np.empty(devices + 1, dtype=np.int64)
    for level in range(layers):
        at = newest[level]
        while at >= 0:
            here, at, stairs = at, following[at], 0
            ticks = min(most_ticks, found - 1)
            for used in range(devices + 1):
                if best[here, used] <= ticks and (stairs == 0 or best[here, used] < stair_ticks[stairs - 1]):
                    stair_devices[stairs], stair_ticks[stairs] = used, best[here, used]
                    stairs += 1
            if stairs == 0:
                continue
            left, forward_left, ticks_done, bytes_done = ticks, ticks, 0, 0
            for p in range(branches):
                old[p] = now[p] = reaches[here, p]
                q = start[p] + old[p]
                ticks_done += works[q, 0]
                bytes_done += works[q, 1]
                left -= passed[q, 0]
                forward_left -= passed[q, 1]
            used = stair_devices[0]
            slack = (devices - used) * left - (all_ticks - ticks_done)
            spare = (devices - used) * memory_bytes - (all_bytes - bytes_done)
            if left < 0 or slack < 0 or spare < 0:
                continue
            horizon[0] = -1
            for p in range(branches - 1, -1, -1):
                q = start[p] + old[p]
                for kind in range(2):
                    rest[p, kind] = rest[p + 1, kind] + works[start[p + 1] - 1, kind] - works[q, kind]
                waiting[p] = 0
                if old[p] == length[p]:
                    continue
                for o in range(options):
                    for kind in range(3):
                        enter[p, o, kind] = inner[q, o, kind] if old[p] > 0 else 0
                if old[p] == 0:
                    for e in range(entering[p], entering[p + 1]):
                        if now[sources[e]] < length[sources[e]]:
                            waiting[p] += 1
                            continue
                        for o in range(options):
                            for kind in range(3):
                                enter[p, o, kind] = max(enter[p, o, kind], entrances[e, o, kind])
                pending[p] = waiting[p]
                if waiting[p] == 0:
                    horizon[0] = max(horizon[0], p)
            least[0] = devices + 1
            for o in range(options):
                usable[0, o] = used + replicas[o] <= devices
                begin[0, o, 0], begin[0, o, 1] = ticks - left, ticks - forward_left
                if usable[0, o]:
                    least[0] = min(least[0], replicas[o])
            depth, cursor[1], active[1] = 1, -1, False
            while depth > 0:
                up, p = depth - 1, cursor[depth]
                if active[depth]:
                    if whole[depth]:
                        whole[depth] = False
                        for e in range(leaving[p], leaving[p + 1]):
                            waiting[targets[e]] += 1
                    if alive[depth] and now[p] < most[depth]:
                        now[p] += 1
                    else:
                        now[p] = old[p]
                        active[depth] = False
                if not active[depth]:
                    p += 1
                    while p <= horizon[up]:
                        if (
                            least[up] * left - gained[up, 0] - rest[p, 0] > slack
                            or least[up] * memory_bytes - gained[up, 1] - rest[p, 1] > spare
                        ):
                            p = branches
                            break
                        if old[p] < length[p] and waiting[p] == 0:
                            most[depth] = length[p]
                            if follows[p] and old[p] == old[p - 1]:
                                most[depth] = now[p - 1]
                            if most[depth] > old[p]:
                                break
                        p += 1
                    if p > horizon[up]:
                        depth -= 1
                        continue
                    cursor[depth], active[depth] = p, True
                    now[p] = old[p] + 1
                steps += 1
                if steps > most_steps:
                    return UNKNOWN, steps
                q, from_q = start[p] + now[p], start[p] + old[p]
                gained[depth, 0] = gained[up, 0] + works[q, 0] - works[from_q, 0]
                gained[depth, 1] = gained[up, 1] + works[q, 1] - works[from_q, 1]
                added[depth] = added[up] + now[p] - old[p]
                opened[depth] = opened[up] - pending[p]
                opened[depth] += leaving[p + 1] - leaving[p] if now[p] == length[p] else len(targets) + 1
                least[depth] = devices + 1
                fits = False
                for o in range(options):
                    usable[depth, o] = usable[up, o]
                    if not usable[up, o]:
                        continue
                    for kind in range(4):
                        total[depth, o, kind] = total[up, o, kind] + sums[q, o, kind] - sums[from_q, o, kind]
                    for kind in range(3):
                        begin[depth, o, kind] = max(begin[up, o, kind], enter[p, o, kind])
                    end = max(begin[depth, o, 0] + total[depth, o, 0], begin[depth, o, 1] + total[depth, o, 1])
                    end = max(end, begin[depth, o, 2] + total[depth, o, 0] // batches[o])
                    usable[depth, o] = end <= ticks and total[depth, o, 2] <= memory_bytes
                    if usable[depth, o]:
                        least[depth] = min(least[depth], replicas[o])
                        ends[o] = end if opened[depth] == 0 or total[depth, o, 3] <= memory_bytes else never
                        fits |= ends[o] < never
                alive[depth] = least[depth] <= devices
                if not alive[depth]:
                    continue
                if fits:
                    fits = False
                    for o in range(options):
                        if usable[depth, o] and ends[o] <= ticks:
                            trip = begin[depth, o, 0] + total[depth, o, 0] // batches[o]
                            for k in range(1, depth + 1):
                                c = cursor[k]
                                if now[c] < length[c]:
                                    ends[o] = max(ends[o], trip + outer[start[c] + now[c], o])
                                    continue
                                for e in range(leaving[c], leaving[c + 1]):
                                    if now[targets[e]] == 0:
                                        ends[o] = max(ends[o], trip + exits[e, o])
                            fits |= ends[o] <= ticks
                if (
                    fits
                    and least[depth] * left - gained[depth, 0] <= slack
                    and least[depth] * memory_bytes - gained[depth, 1] <= spare
                ):
                    code[:] = codes[here]
                    for k in range(1, depth + 1):
                        q, from_q = start[cursor[k]] + now[cursor[k]], start[cursor[k]] + old[cursor[k]]
                        code[code_word[q]] += code_value[q]
                        code[code_word[from_q]] -= code_value[from_q]
                    empty = place(code, codes, table)
                    larger = table[empty]
                    if larger < 0:
                        if count == most_downsets:
                            return UNKNOWN, steps
                        if count == room:
                            room *= 2
                            codes, reaches = longer(codes), longer(reaches)
                            best, following = longer(best), longer(following)
                            table = np.full(2 * room, -1, dtype=np.int32)
                            for i in range(count):
                                table[place(codes[i], codes, table)] = i
                            empty = place(code, codes, table)
                        larger = count
                        codes[larger], best[larger] = code, never
                        keep_reaches(reaches[larger], now, group_start)
                        following[larger] = newest[level + added[depth]]
                        newest[level + added[depth]] = table[empty] = larger
                        count += 1
                    for o in range(options):
                        if not usable[depth, o] or ends[o] > ticks:
                            continue
                        for i in range(stairs):
                            needed = replicas[o] + stair_devices[i] - used
                            if (
                                used + needed > devices
                                or needed * left - gained[depth, 0] > slack
                                or needed * memory_bytes - gained[depth, 1] > spare
                            ):
                                break
                            best[larger, used + needed] = min(best[larger, used + needed], max(ends[o], stair_ticks[i]))
                            if stair_ticks[i] <= ends[o]:
                                break
                    if level + added[depth] == layers:
                        for needed in range(devices + 1):
                            found = min(found, best[larger, needed])
                        if found <= enough_ticks:
                            return found, steps
                horizon[depth] = horizon[up]
                if now[p] == length[p]:
                    whole[depth] = True
                    for e in range(leaving[p], leaving[p + 1]):
                        waiting[targets[e]] -= 1
                        horizon[depth] = max(horizon[depth], targets[e])
                depth += 1
                cursor[depth], active[depth] = p, False
    return (NONE if found == never else found), steps


@inlined
def longer(array: Any) -> Any:
    """Return an array with twice the rows."""
    longer = np.empty((2 * array.shape[0], *array.shape[1:]), dtype=array.dtype)
    longer[: array.shape[0]] = array
    return longer


@inlined
def place(code: UInt64Array, codes: UInt64Array, table: Int32Array) -> np.int64:
    """Return where a downset is in the hash table, or the empty place where it belongs."""
    mask = len(table) - 1
    mixed = np.uint64(0)
    for w in range(len(code)):
        mixed = (mixed ^ code[w]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    at = np.int64(mixed & np.uint64(mask))
    while table[at] >= 0:
        same = True
        for w in range(len(code)):
            if codes[table[at], w] != code[w]:
                same = False
        if same:
            break
        at = (at + 1) & mask
    return at


@inlined
def keep_reaches(reaches: Int32Array, now: Int64Array, group_start: Int64Array) -> None:
    """Write the layers reached of each branch, those of equal branches in descending order."""
    for g in range(len(group_start) - 1):
        first, last = group_start[g], group_start[g + 1]
        for b in range(first, last):
            reached, at = now[b], b
            while at > first and reaches[at - 1] < reached:
                reaches[at] = reaches[at - 1]
                at -= 1
            reaches[at] = reached
