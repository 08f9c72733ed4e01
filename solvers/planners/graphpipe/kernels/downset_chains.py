"""Fewest devices for a chain of downsets whose stages could end in time: what every stage graph needs at least."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtpp.array_types import Int32Array, Int64Array, UInt64Array
from mtpp.solvers.jit import inlined, kernel

NO, YES, UNKNOWN = 0, 1, 2
"""Whether there is a chain; unknown where there were too many downsets or steps."""

_FIRST_ROOM = 256
"""Downsets that there is room for at first: a power of 2."""


@inlined
def _longer(array: Any) -> Any:
    """Return an array with twice the rows."""
    longer = np.empty((2 * array.shape[0], *array.shape[1:]), dtype=array.dtype)
    longer[: array.shape[0]] = array
    return longer


@inlined
def _place(code: UInt64Array, codes: UInt64Array, table: Int32Array) -> np.int64:
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
def _keep_reaches(reaches: Int32Array, now: Int64Array, group_start: Int64Array) -> None:
    """Write the layers reached of each branch, those of equal branches in descending order."""
    for g in range(len(group_start) - 1):
        first, last = group_start[g], group_start[g + 1]
        for b in range(first, last):
            reached, at = now[b], b
            while at > first and reaches[at - 1] < reached:
                reaches[at] = reaches[at - 1]
                at -= 1
            reaches[at] = reached


@kernel
def chain_exists(
    ticks: int,
    devices: int,
    memory_bytes: int,
    replicas: Int64Array,
    group_start: Int64Array,
    start: Int64Array,
    sums: Int64Array,
    works: Int64Array,
    passed: Int64Array,
    inner: Int64Array,
    entering: Int64Array,
    sources: Int64Array,
    entrances: Int64Array,
    leaving: Int64Array,
    targets: Int64Array,
    code_word: Int64Array,
    code_value: UInt64Array,
    most_downsets: int,
    most_steps: int,
) -> tuple[int, int]:
    """Tell whether stages that could each end in time, on so many devices in all, make up a model of branches.

    A branch is a path of layers that only its first layer enters from outside and only its last layer leaves, so a
    downset is the number of layers that it has of each branch. *Positions* are those numbers, 0 to length, of one
    branch after the other.

    Parameters
    ----------
    ticks, devices, memory_bytes
        Of the iteration, of all stages together, and on each device.
    replicas
        d of each option, int64, shape (options,).
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
        When a stage that begins at a position within a branch could begin, both ways and forward, int64,
        shape (positions, options, 2).
    entering, sources, entrances
        CSR of the edges into each branch, the branches that they come from, and when a stage that such an edge enters
        could begin, int64, shape (edges, options, 2).
    leaving, targets
        CSR of the edges out of each branch, and the branches that they go to.
    code_word, code_value
        What a position adds to which word of the code of a downset; equal branches add the same. uint64.

    Returns
    -------
    :data:`NO`, :data:`YES` or :data:`UNKNOWN`, and the steps made.

    Notes
    -----
    Dynamic programming over downsets, smallest first, with the fewest devices of each; a stage is what a downset has
    more than another. A step adds layers of one branch to a stage. What a stage takes only grows with its layers, so
    that those that take too much end the branch. A partial chain is given up when the work left, in device-ticks or
    device-bytes, is more than the devices left have; a stage, when it leaves too much even with all that it may still
    get. Of equal branches that a downset has as much of, the first ones get more. The code of a downset tells it from
    all others but for the order of equal branches, so downsets are compared without error.
    """
    branches, options = len(start) - 1, len(replicas)
    words = np.int64(code_word.max() + 1)
    room = _FIRST_ROOM
    codes = np.empty((room, words), dtype=np.uint64)
    reaches = np.empty((room, branches), dtype=np.int32)
    fewest = np.empty(room, dtype=np.int64)
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
    codes[0], reaches[0], fewest[0], newest[0], following[0] = np.uint64(0), 0, 0, 0, -1
    table[_place(code, codes, table)] = 0
    count = 1
    # of the downset that is expanded
    old = np.empty(branches, dtype=np.int64)
    now = np.empty(branches, dtype=np.int64)
    waiting = np.empty(branches, dtype=np.int64)  # edges from branches that are not whole yet
    pending = np.empty(branches, dtype=np.int64)  # the same before there is a stage
    rest = np.zeros((branches + 1, 2), dtype=np.int64)
    enter = np.zeros((branches, options, 2), dtype=np.int64)
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
    usable = np.zeros((branches + 2, options), dtype=np.bool_)
    total = np.zeros((branches + 2, options, 4), dtype=np.int64)
    begin = np.zeros((branches + 2, options, 2), dtype=np.int64)
    steps = 0
    for level in range(layers):
        at = newest[level]
        while at >= 0:
            here, used = at, fewest[at]
            at = following[at]
            left, forward_left, ticks_done, bytes_done = ticks, ticks, 0, 0
            for p in range(branches):
                old[p] = now[p] = reaches[here, p]
                q = start[p] + old[p]
                ticks_done += works[q, 0]
                bytes_done += works[q, 1]
                left -= passed[q, 0]
                forward_left -= passed[q, 1]
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
                    enter[p, o, 0], enter[p, o, 1] = (inner[q, o, 0], inner[q, o, 1]) if old[p] > 0 else (0, 0)
                if old[p] == 0:
                    for e in range(entering[p], entering[p + 1]):
                        if now[sources[e]] < length[sources[e]]:
                            waiting[p] += 1
                            continue
                        for o in range(options):
                            enter[p, o, 0] = max(enter[p, o, 0], entrances[e, o, 0])
                            enter[p, o, 1] = max(enter[p, o, 1], entrances[e, o, 1])
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
                best = least[depth] = devices + 1
                for o in range(options):
                    usable[depth, o] = usable[up, o]
                    if not usable[up, o]:
                        continue
                    for kind in range(4):
                        total[depth, o, kind] = total[up, o, kind] + sums[q, o, kind] - sums[from_q, o, kind]
                    begin[depth, o, 0] = max(begin[up, o, 0], enter[p, o, 0])
                    begin[depth, o, 1] = max(begin[up, o, 1], enter[p, o, 1])
                    usable[depth, o] = (
                        begin[depth, o, 0] + total[depth, o, 0] <= ticks
                        and begin[depth, o, 1] + total[depth, o, 1] <= ticks
                        and total[depth, o, 2] <= memory_bytes
                    )
                    if usable[depth, o]:
                        least[depth] = min(least[depth], replicas[o])
                        if opened[depth] == 0 or total[depth, o, 3] <= memory_bytes:
                            best = min(best, replicas[o])
                alive[depth] = least[depth] <= devices
                if not alive[depth]:
                    continue
                if (
                    best <= devices
                    and best * left - gained[depth, 0] <= slack
                    and best * memory_bytes - gained[depth, 1] <= spare
                ):
                    if level + added[depth] == layers:
                        return YES, steps
                    code[:] = codes[here]
                    for k in range(1, depth + 1):
                        q, from_q = start[cursor[k]] + now[cursor[k]], start[cursor[k]] + old[cursor[k]]
                        code[code_word[q]] += code_value[q]
                        code[code_word[from_q]] -= code_value[from_q]
                    place = _place(code, codes, table)
                    if table[place] >= 0:
                        fewest[table[place]] = min(fewest[table[place]], used + best)
                    elif count == most_downsets:
                        return UNKNOWN, steps
                    else:
                        if count == room:
                            room *= 2
                            codes, reaches = _longer(codes), _longer(reaches)
                            fewest, following = _longer(fewest), _longer(following)
                            table = np.full(2 * room, -1, dtype=np.int32)
                            for i in range(count):
                                table[_place(codes[i], codes, table)] = i
                            place = _place(code, codes, table)
                        codes[count], fewest[count] = code, used + best
                        _keep_reaches(reaches[count], now, group_start)
                        following[count] = newest[level + added[depth]]
                        newest[level + added[depth]] = table[place] = count
                        count += 1
                horizon[depth] = horizon[up]
                if now[p] == length[p]:
                    whole[depth] = True
                    for e in range(leaving[p], leaving[p + 1]):
                        waiting[targets[e]] -= 1
                        horizon[depth] = max(horizon[depth], targets[e])
                depth += 1
                cursor[depth], active[depth] = p, False
    return NO, steps
