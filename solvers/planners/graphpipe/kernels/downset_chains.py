"""Least time in which all stages of some chain of downsets could end: no stage graph takes less."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int32Array, Int64Array, UInt64Array
from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.planners.graphpipe.kernels.chain_arrays import NONE, UNKNOWN, BranchEdges, Branches, ChainLimits

_FIRST_ROOM = 256
"""Downsets that there is room for at first: a power of 2."""


class _Expanded(NamedTuple):
    """Downset that a stage is added to, by branch.

    Attributes
    ----------
    old, now
        Layers that the downset has, and with the stage.
    waiting, pending
        Edges from branches that are not whole yet, and the same before there is a stage.
    rest
        Device-ticks and device-bytes at least that are left of this branch and all later ones.
    enter
        As ``BranchEdges.inner``, of a stage that takes layers of this branch.
    stairs
        Devices and ticks of chains that end here: the more devices, the fewer ticks.
    """

    old: Int64Array
    now: Int64Array
    waiting: Int64Array
    pending: Int64Array
    rest: Int64Array
    enter: Int64Array
    stairs: Int64Array


class _Stage(NamedTuple):
    """Stage by the number of its branches: a row is made of the row above it and layers of one more branch.

    Attributes
    ----------
    cursor, horizon
        That branch, and the last one that may be next.
    opened
        Edges out of the stage; those within a branch count as more than all others.
    least
        Fewest devices of a usable option; more than there are without one.
    gained
        Device-ticks and device-bytes at least of its layers.
    usable
        Options that keep to time and memory so far.
    total, begin
        By option, as ``Branches.sums`` and ``BranchEdges.inner``.
    ends
        By option, of the latest row: ticks when all is over.
    """

    cursor: Int64Array
    horizon: Int64Array
    opened: Int64Array
    least: Int64Array
    gained: Int64Array
    usable: BoolArray
    total: Int64Array
    begin: Int64Array
    ends: Int64Array


class _Spare(NamedTuple):
    """Ticks in all, and without stages before in a line; devices and stairs before; device-ticks and bytes spare."""

    ticks: int
    left: int
    used: int
    stairs: int
    device_ticks: int
    device_bytes: int


@kernel
def least_ticks(limits: ChainLimits, branches: Branches, edges: BranchEdges) -> tuple[int, int]:
    """Return the least ticks in which stages, on so many devices in all, could each end that make up a model.

    Returns
    -------
    The ticks, :data:`NONE` or :data:`UNKNOWN`; and the steps made.

    Notes
    -----
    Dynamic programming over downsets, smallest first, with the least ticks of each by number of devices; a stage is
    what a downset has more than another. Invariant: those of downsets with no more layers than the level are final, for
    each stage has a layer. A partial chain is given up when the work left, in device-ticks or device-bytes, is more
    than the devices left have in the most ticks of interest. The code of a downset tells it from all others but for the
    order of equal branches, so downsets are compared without error. Space is O(downsets · (branches + devices)).
    """
    count, options, layers = len(branches.length), len(branches.replicas), 0
    for p in range(count):
        layers += branches.length[p]
    row, rows = np.zeros((4, count), dtype=np.int64), np.zeros((4, count + 2), dtype=np.int64)
    base = _Expanded(
        row[0],
        row[1],
        row[2],
        row[3],
        np.zeros((count + 1, 2), dtype=np.int64),
        np.zeros((count, options, 3), dtype=np.int64),
        np.zeros((limits.devices + 1, 2), dtype=np.int64),
    )
    stage = _Stage(
        rows[0],
        rows[1],
        rows[2],
        rows[3],
        np.zeros((count + 2, 2), dtype=np.int64),
        np.zeros((count + 2, options), dtype=np.bool_),
        np.zeros((count + 2, options, 4), dtype=np.int64),
        np.zeros((count + 2, options, 3), dtype=np.int64),
        np.zeros(options, dtype=np.int64),
    )
    codes = np.zeros((_FIRST_ROOM, branches.code_word.max() + 1), dtype=np.uint64)
    reaches = np.zeros((_FIRST_ROOM, count), dtype=np.int32)
    best = np.zeros((_FIRST_ROOM, limits.devices + 1), dtype=np.int64)  # ticks, with no more devices
    following = np.full(_FIRST_ROOM, -1, dtype=np.int32)  # another downset of as many layers
    table = np.full(2 * _FIRST_ROOM, -1, dtype=np.int32)
    newest = np.full(layers + 1, -1, dtype=np.int32)
    code = codes[0].copy()
    table[place(code, codes, table)] = newest[0] = 0
    never = limits.most_ticks + 1
    known, steps, found = 1, 0, never
    for level in range(layers):
        at = newest[level]
        while at >= 0:
            here, at = at, following[at]
            ticks = min(limits.most_ticks, found - 1)
            spare = _expand(ticks, reaches[here], best[here], limits, branches, edges, base, stage)
            depth = 0
            while spare.stairs > 0:
                depth, steps = _next_stage(depth, steps, spare, limits, branches, edges, base, stage)
                if steps > limits.most_steps:
                    return UNKNOWN, steps
                if depth == 0:
                    break
                for w in range(len(code)):
                    code[w] = codes[here, w]
                size = level
                for k in range(1, depth + 1):
                    p = stage.cursor[k]
                    q, from_q = branches.start[p] + base.now[p], branches.start[p] + base.old[p]
                    code[branches.code_word[q]] += branches.code_value[q]
                    code[branches.code_word[from_q]] -= branches.code_value[from_q]
                    size += q - from_q
                larger = table[place(code, codes, table)]
                if larger < 0:
                    if known == limits.most_downsets:
                        return UNKNOWN, steps
                    if known == len(codes):
                        codes, reaches = longer(codes), longer(reaches)
                        best, following = longer(best), longer(following)
                        table = np.full(2 * len(table), -1, dtype=np.int32)
                        for i in range(known):
                            table[place(codes[i], codes, table)] = i
                    larger = known
                    known += 1
                    for w in range(len(code)):
                        codes[larger, w] = code[w]
                    best[larger] = never
                    table[place(code, codes, table)] = larger
                    keep_reaches(reaches[larger], base.now, branches.follows)
                    following[larger] = newest[size]
                    newest[size] = larger
                _keep_best(best[larger], depth, spare, limits, branches.replicas, base.stairs, stage)
                if size == layers:
                    for used in range(limits.devices + 1):
                        found = min(found, best[larger, used])
                    if found <= limits.enough_ticks:
                        return found, steps
    return (NONE if found == never else found), steps


@subroutine
def _expand(
    ticks: int,
    reaches: Int32Array,
    best: Int64Array,
    limits: ChainLimits,
    branches: Branches,
    edges: BranchEdges,
    base: _Expanded,
    stage: _Stage,
) -> _Spare:
    """Prepare to add stages to a downset; there are no stairs if no chain that ends here can go on."""
    options, devices, stairs = len(branches.replicas), limits.devices, 0
    for used in range(devices + 1):
        if best[used] <= ticks and (stairs == 0 or best[used] < base.stairs[stairs - 1, 1]):
            base.stairs[stairs, 0], base.stairs[stairs, 1] = used, best[used]
            stairs += 1
    left, forward_left = ticks, ticks
    for p in range(len(reaches) - 1, -1, -1):
        base.old[p] = base.now[p] = reaches[p]
        q, end = branches.start[p] + reaches[p], branches.start[p] + branches.length[p]
        left -= branches.passed[q, 0]
        forward_left -= branches.passed[q, 1]
        for kind in range(2):
            base.rest[p, kind] = base.rest[p + 1, kind] + branches.works[end, kind] - branches.works[q, kind]
    used = base.stairs[0, 0]
    device_ticks = (devices - used) * left - base.rest[0, 0]
    device_bytes = (devices - used) * limits.memory_bytes - base.rest[0, 1]
    if left < 0 or device_ticks < 0 or device_bytes < 0:
        stairs = 0
    stage.cursor[0], stage.horizon[0], stage.least[0] = -1, -1, devices + 1
    for p in range(len(reaches) if stairs > 0 else 0):
        base.waiting[p] = 0
        if base.old[p] == branches.length[p]:
            continue
        for o in range(options):
            for kind in range(3):
                base.enter[p, o, kind] = edges.inner[branches.start[p] + base.old[p], o, kind]
        if base.old[p] == 0:
            for e in range(edges.entering[p], edges.entering[p + 1]):
                if base.old[edges.sources[e]] < branches.length[edges.sources[e]]:
                    base.waiting[p] += 1
                    continue
                for o in range(options):
                    for kind in range(3):
                        base.enter[p, o, kind] = max(base.enter[p, o, kind], edges.entrances[e, o, kind])
        base.pending[p] = base.waiting[p]
        if base.waiting[p] == 0:
            stage.horizon[0] = p
    for o in range(options):
        stage.usable[0, o] = used + branches.replicas[o] <= devices
        stage.begin[0, o, 0], stage.begin[0, o, 1] = ticks - left, ticks - forward_left
        if stage.usable[0, o]:
            stage.least[0] = min(stage.least[0], branches.replicas[o])
    return _Spare(ticks, left, used, stairs, device_ticks, device_bytes)


@subroutine
def _next_stage(
    depth: int,
    steps: int,
    spare: _Spare,
    limits: ChainLimits,
    branches: Branches,
    edges: BranchEdges,
    base: _Expanded,
    stage: _Stage,
) -> tuple[int, int]:
    """Go on to the next stage that keeps to time, memory and devices.

    Parameters
    ----------
    depth
        Branches of the last one; 0 at first.

    Returns
    -------
    Branches of the next one, 0 if there is none; and the steps.

    Notes
    -----
    A step adds layers of one branch to a stage. What a stage takes only grows with its layers, so that a branch ends
    where it takes too much; and a stage, where it leaves too much even with all that it may still get. Of equal
    branches that a downset has as much of, the first ones get more.

    Invariant: *now* is *old* but for the branches of rows 1 to depth, and *waiting* leaves out the edges from branches
    that are whole in a row before the last. So a row is left without a trace.
    """
    follows, start, length, replicas, batches, sums, works, _, _, _ = branches
    _, _, _, _, _, leaving, targets, _ = edges
    old, now, waiting, pending, rest, enter, _ = base
    cursor, horizon, opened, least, gained, usable, total, begin, ends = stage
    deeper = True
    while True:
        p = cursor[depth]
        if deeper:
            if depth > 0:
                horizon[depth] = horizon[depth - 1]
                if now[p] == length[p]:
                    for e in range(leaving[p], leaving[p + 1]):
                        waiting[targets[e]] -= 1
                        horizon[depth] = max(horizon[depth], targets[e])
            depth += 1
            p += 1
        elif least[depth] > limits.devices:
            now[p] = old[p]
            p += 1
        elif now[p] == length[p]:
            for e in range(leaving[p], leaving[p + 1]):
                waiting[targets[e]] += 1
        up = depth - 1
        work_ticks, work_bytes = least[up] * spare.left - gained[up, 0], least[up] * limits.memory_bytes - gained[up, 1]
        deeper = False
        while (
            p <= horizon[up]
            and work_ticks - rest[p, 0] <= spare.device_ticks
            and work_bytes - rest[p, 1] <= spare.device_bytes
        ):
            if waiting[p] == 0 and now[p] < (now[p - 1] if follows[p] and old[p] == old[p - 1] else length[p]):
                deeper = True
                break
            now[p] = old[p]
            p += 1
        if not deeper:
            depth = up
            if depth == 0:
                return 0, steps
            continue
        cursor[depth] = p
        now[p] += 1
        steps += 1
        if steps > limits.most_steps:
            return depth, steps
        q, from_q = start[p] + now[p], start[p] + old[p]
        gained[depth, 0] = gained[up, 0] + works[q, 0] - works[from_q, 0]
        gained[depth, 1] = gained[up, 1] + works[q, 1] - works[from_q, 1]
        opened[depth] = opened[up] - pending[p]
        opened[depth] += leaving[p + 1] - leaving[p] if now[p] == length[p] else len(targets) + 1
        least[depth] = limits.devices + 1
        fits = False
        for o in range(len(replicas)):
            usable[depth, o] = usable[up, o]
            if not usable[up, o]:
                continue
            for kind in range(4):
                total[depth, o, kind] = total[up, o, kind] + sums[q, o, kind] - sums[from_q, o, kind]
            for kind in range(3):
                begin[depth, o, kind] = max(begin[up, o, kind], enter[p, o, kind])
            end = max(begin[depth, o, 0] + total[depth, o, 0], begin[depth, o, 1] + total[depth, o, 1])
            end = max(end, begin[depth, o, 2] + total[depth, o, 0] // batches[o])
            usable[depth, o] = end <= spare.ticks and total[depth, o, 2] <= limits.memory_bytes
            if usable[depth, o]:
                least[depth] = min(least[depth], replicas[o])
                roomy = opened[depth] == 0 or total[depth, o, 3] <= limits.memory_bytes
                ends[o] = end if roomy else limits.most_ticks + 1
                fits |= roomy
        deeper = least[depth] <= limits.devices
        if (
            fits
            and least[depth] * spare.left - gained[depth, 0] <= spare.device_ticks
            and least[depth] * limits.memory_bytes - gained[depth, 1] <= spare.device_bytes
            and _ends_in_time(depth, spare.ticks, branches, edges, now, stage)
        ):
            return depth, steps


@subroutine
def _ends_in_time(
    depth: int, ticks: int, branches: Branches, edges: BranchEdges, now: Int64Array, stage: _Stage
) -> bool:
    """Delay the ends of a stage by what is behind it; return whether that leaves an option."""
    fits = False
    for o in range(len(branches.replicas)):
        if stage.usable[depth, o] and stage.ends[o] <= ticks:
            trip = stage.begin[depth, o, 0] + stage.total[depth, o, 0] // branches.batches[o]
            for k in range(1, depth + 1):
                p = stage.cursor[k]
                if now[p] < branches.length[p]:
                    stage.ends[o] = max(stage.ends[o], trip + edges.outer[branches.start[p] + now[p], o])
                    continue
                for e in range(edges.leaving[p], edges.leaving[p + 1]):
                    if now[edges.targets[e]] == 0:
                        stage.ends[o] = max(stage.ends[o], trip + edges.exits[e, o])
            fits |= stage.ends[o] <= ticks
    return fits


@subroutine
def _keep_best(
    best: Int64Array,
    depth: int,
    spare: _Spare,
    limits: ChainLimits,
    replicas: Int64Array,
    stairs: Int64Array,
    stage: _Stage,
) -> None:
    """Note the ticks by devices of chains to a downset whose last stage is this one."""
    for o in range(len(replicas)):
        if not stage.usable[depth, o] or stage.ends[o] > spare.ticks:
            continue
        for i in range(spare.stairs):
            devices = replicas[o] + stairs[i, 0] - spare.used
            if (
                spare.used + devices > limits.devices
                or devices * spare.left - stage.gained[depth, 0] > spare.device_ticks
                or devices * limits.memory_bytes - stage.gained[depth, 1] > spare.device_bytes
            ):
                break
            best[spare.used + devices] = min(best[spare.used + devices], max(stage.ends[o], stairs[i, 1]))
            if stairs[i, 1] <= stage.ends[o]:
                break


@inlined
def longer(array: Any) -> Any:
    """Return an array with twice the rows."""
    longer = np.empty((2 * array.shape[0], *array.shape[1:]), dtype=array.dtype)
    for at, value in np.ndenumerate(array):
        longer[at] = value
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
def keep_reaches(reaches: Int32Array, now: Int64Array, follows: BoolArray) -> None:
    """Write the layers reached of each branch, those of equal branches in descending order."""
    for b in range(len(now)):
        at = b
        while follows[at] and reaches[at - 1] < now[b]:
            reaches[at] = reaches[at - 1]
            at -= 1
        reaches[at] = now[b]
