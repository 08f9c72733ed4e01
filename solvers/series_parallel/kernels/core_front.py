"""The front of an irreducible component: chains of downsets, from the stage of its tail to that of its head."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.series_parallel.kernels.pareto_fronts import (
    BUFFER,
    CLOSED,
    FLAGS,
    HEAD,
    HEAD_GROUP,
    HEAD_PARAMS,
    HEAD_SHIFT,
    KIND,
    LEAST,
    PARAMS,
    TAIL,
    TAIL_PARAMS,
    TAIL_SHIFT,
    TICKS,
    UNIT,
    Terms,
    condense,
    head_group,
    hopeful,
    put,
)
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER, memory_ticks


class CoreItems(NamedTuple):
    """The ops of a core, or groups of them that are not cut, and the tensors that they touch.

    Attributes
    ----------
    costs
        Of each item, by columns.
    item_offsets, item_tensors
        Tensors that each item makes or reads, CSR: int64 and int32.
    producer
        Item that makes each tensor, −1 where it is the core's tail, int32.
    readers
        Number of readers of each tensor, int32: items, and one more where the core's head reads it too.
    transfer
        Ticks of each tensor by group, shape (groups, tensors).
    step_offsets, step_items, step_states
        Of each downset: the items that may come next, and the downsets with them, CSR. Downset 0 is empty, the last one
        holds everything, and steps lead to higher numbers.
    """

    costs: Int64Array
    item_offsets: Int64Array
    item_tensors: Int32Array
    producer: Int32Array
    readers: Int32Array
    transfer: Int64Array
    step_offsets: Int64Array
    step_items: Int32Array
    step_states: Int32Array


class CoreStates(NamedTuple):
    """What stages inside a core cost, whatever the cutoff.

    Attributes
    ----------
    below
        Costs of the items of each downset, by columns.
    crossing
        What a stage of each group pays for the tensors from a downset or the tail to the other items or the head,
        flagged tensors left out, shape (groups, downsets).
    flags
        Flags of the tensors of the tail that items outside a downset read.
    stage_offsets, stages
        Stages between two downsets, by the larger one: CSR, rows of the smaller one, f of the difference, and the group
        of devices on which it is that.
    from_start, to_end
        Whether the stage of the tail holds nothing of the core, or that of the head: where they are no ops, a stage
        there is one as any other.
    tail_flag, head_flag
        As those of a series.
    """

    below: Int64Array
    crossing: Int64Array
    flags: Int64Array
    stage_offsets: Int64Array
    stages: Int64Array
    from_start: bool
    to_end: bool
    tail_flag: int
    head_flag: int


@kernel
def core_stages(items: CoreItems, group: int, most_work: int, terms: Terms) -> Int64Array:
    """Return the stages between two downsets that cost less than the cutoff on a device of a group.

    Returns
    -------
    Rows of the smaller downset, the larger one, the cost, and the group.

    Notes
    -----
    From each downset, depth first along its steps, with the cost kept up to date: O(degree) for each pair of downsets
    whose difference has less work than *most_work*.
    """
    state_count, column = len(items.step_offsets) - 1, TICKS + group
    kind = terms.devices.groups[group, KIND]
    found = np.empty((1024, 4), dtype=np.int64)
    count = int(np.int64(0))
    seen = np.full(state_count, -1, dtype=np.int64)  # the last start that led there
    inside = np.zeros(items.transfer.shape[1], dtype=np.int64)  # readers in the stage
    made = np.zeros(items.transfer.shape[1], dtype=np.bool_)
    path = np.empty(len(items.costs) + 1, dtype=np.int64)  # next step of each downset on the path
    taken = np.empty(len(items.costs) + 1, dtype=np.int64)
    states = np.empty(len(items.costs) + 1, dtype=np.int64)
    for start in range(state_count):
        seen[start] = start
        depth = 0
        states[0], path[0] = start, items.step_offsets[start]
        work, params, moved = 0, 0, 0
        while depth >= 0:
            step = path[depth]
            if step == items.step_offsets[states[depth] + 1]:
                if depth > 0:
                    item = taken[depth]
                    work -= items.costs[item, column]
                    params -= items.costs[item, PARAMS]
                    moved -= _moved_by(items, group, item, inside, made, False)
                depth -= 1
                continue
            path[depth] += 1
            item, state = items.step_items[step], items.step_states[step]
            if seen[state] == start or work + items.costs[item, column] >= most_work:
                continue
            seen[state] = start
            work += items.costs[item, column]
            params += items.costs[item, PARAMS]
            moved += _moved_by(items, group, item, inside, made, True)
            depth += 1
            states[depth], path[depth], taken[depth] = state, items.step_offsets[state], item
            cost = work + moved
            if terms.memory.mode != NO_MEMORY:
                overflow = memory_ticks(params, terms.memory.figures[kind, RESERVE_BYTES], kind, terms.memory)
                cost = NEVER if overflow == NEVER else cost + overflow
            if cost < terms.cutoff:
                if count == len(found):
                    found = _doubled(found)
                found[count, 0], found[count, 1], found[count, 2], found[count, 3] = start, state, cost, group
                count += 1
    return found[:count]


@subroutine
def _moved_by(items: CoreItems, group: int, item: int, inside: Int64Array, made: NDArray[np.bool_], added: bool) -> int:
    """Add an item to a stage whose items all come before it, or take the last one away (not *added*).

    Returns
    -------
    What that changes in the ticks that the stage pays for tensors, whether it is added or taken.
    """
    change = 0
    for i in range(items.item_offsets[item], items.item_offsets[item + 1]):
        t = items.item_tensors[i]
        if items.producer[t] == item:
            made[t] = added
            change += items.transfer[group, t]
            continue
        if not added:
            inside[t] -= 1
        if made[t]:
            if inside[t] + 1 == items.readers[t]:
                change -= items.transfer[group, t]
        elif inside[t] == 0:
            change += items.transfer[group, t]
        if added:
            inside[t] += 1
    return change


@kernel
def core_front(
    core: CoreStates, charges: Int64Array, ends: Int64Array, terms: Terms
) -> tuple[Int64Array, Int64Array, Int64Array, bool]:
    """Return the front of a core.

    Returns
    -------
    * The points.
    * Of each, the link of the last downset before the stage of the head, in column 0.
    * Links, each the link before (−1 for none), a downset, and the group of the stage that ends there; the first of a
      chain is what the stage of the tail holds.
    * Whether a front was thinned.

    Notes
    -----
    O(s·p) for s stages and p points at each downset, apart from sorting. Where groups come one after the other, points
    before the stage of the head have the group of the last stage in place of its. The stage of a virtual terminal is
    then the first one, or the last one, where it holds anything of the core.
    """
    state_count, groups = len(core.flags), len(core.crossing)
    last_state = state_count - 1
    begins = np.zeros(state_count + 1, dtype=np.int64)
    chain = np.empty((64, 6), dtype=np.int64)
    links = np.empty((64, 3), dtype=np.int64)
    found = np.empty((64, 6), dtype=np.int64)
    origin = np.empty((64, 3), dtype=np.int64)
    lossy = False
    ordered = terms.devices.ordered
    outside = terms.total_work - core.below[last_state, LEAST]
    open_ends = ends.copy()
    open_ends[1] = 0
    point = np.empty(6, dtype=np.int64)
    for state in range(state_count):
        needs = core.flags[state]
        beyond = outside + core.below[last_state, LEAST] - core.below[state, LEAST]
        count = int(np.int64(0))
        for g in range(1 if core.from_start else groups):
            if core.from_start and state > 0:
                continue
            for column in range(6):
                point[column] = 0
            if not core.from_start:
                point[TAIL] = core.below[state, TICKS + g] + core.crossing[g, state]
                point[TAIL_PARAMS] = core.below[state, PARAMS]
                point[FLAGS] = needs | (core.tail_flag if state > 0 else 0) | g << TAIL_SHIFT
                if ordered and (state > 0 or core.tail_flag == 0):
                    point[FLAGS] |= g << HEAD_SHIFT
            if hopeful(point, beyond, charges, open_ends, terms):
                if count == len(found):
                    found, origin = _doubled(found), _doubled(origin)
                put(found, count, point)
                origin[count, 0], origin[count, 1], origin[count, 2] = -1, state, g
                count += 1
        for s in range(core.stage_offsets[state], core.stage_offsets[state + 1]):
            if core.stages[s, 1] >= terms.cutoff:
                continue
            source, g = core.stages[s, 0], core.stages[s, 2]
            for row in range(begins[source], begins[source + 1]):
                if ordered and head_group(chain[row, FLAGS]) > g:
                    continue
                for column in range(6):
                    point[column] = chain[row, column]
                point[CLOSED] += terms.devices.groups[g, UNIT]
                if ordered:
                    point[FLAGS] = point[FLAGS] & ~HEAD_GROUP | g << HEAD_SHIFT
                if not hopeful(point, beyond, charges, open_ends, terms):
                    continue
                if count == len(found):
                    if count >= BUFFER:
                        count, thin = condense(found, origin, count, count // 2, charges, terms)
                        lossy = lossy or thin
                    else:
                        found, origin = _doubled(found), _doubled(origin)
                put(found, count, point)
                origin[count, 0], origin[count, 1], origin[count, 2] = row, state, g
                count += 1
        count, thin = condense(found, origin, count, terms.most_points, charges, terms)
        lossy = lossy or thin
        begin = begins[state]
        while begin + count > len(chain):
            chain, links = _doubled(chain), _doubled(links)
        for row in range(count):
            put(chain, begin + row, found[row])
            for column in range(3):
                links[begin + row, column] = origin[row, column]
        begins[state + 1] = begin + count
    count = int(np.int64(0))
    for state in range(state_count):
        if core.to_end and state < last_state:
            continue
        for row in range(begins[state], begins[state + 1]):
            for g in range(1 if core.to_end else groups):
                tied = ordered and not (core.to_end or (core.head_flag > 0 and state == last_state))
                if tied and head_group(chain[row, FLAGS]) > g:
                    continue
                for column in range(6):
                    point[column] = chain[row, column]
                point[FLAGS] = point[FLAGS] & ~HEAD_GROUP | g << HEAD_SHIFT
                if not core.to_end:
                    rest = core.below[last_state, TICKS + g] - core.below[state, TICKS + g]
                    point[HEAD] = rest + core.crossing[g, state]
                    point[HEAD_PARAMS] = core.below[last_state, PARAMS] - core.below[state, PARAMS]
                    # Whom the tail's stage does not send a tensor to are all in the head's, or in closed stages before.
                    point[FLAGS] |= _reads(core.flags[state]) | (core.head_flag if state < last_state else 0)
                if not hopeful(point, outside, charges, ends, terms):
                    continue
                if count == len(found):
                    found, origin = _doubled(found), _doubled(origin)
                put(found, count, point)
                origin[count, 0], origin[count, 1], origin[count, 2] = row, 0, 0
                count += 1
    count, thin = condense(found, origin, count, terms.most_points, charges, terms)
    return found[:count], origin[:count], links[: begins[state_count]], lossy or thin


@subroutine
def _reads(flags: int) -> int:
    """Return the flags of the head for tensors that have flags of the tail."""
    return flags << 1


@subroutine
def _doubled(rows: Int64Array) -> Int64Array:
    grown = np.empty((2 * len(rows), rows.shape[1]), dtype=np.int64)
    for i in range(len(rows)):
        for column in range(rows.shape[1]):
            grown[i, column] = rows[i, column]
    return grown
