"""What the layers of a stage run as: the knapsack of the paper's section 4, solved exactly and by bang per buck.

A stage with degrees d and t and y micro-batches in flight takes one choice for each of its layers, so that Σ (a · y +
b) fits into the memory and Σ cost is least. A cost is ``scale_p`` · (compute + sync) + ``scale_w`` · weights, the
layer's part of the stage's time times a common denominator, an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.graph import Int64Array
from mtpp.solvers.kernels.jit import kernel

if TYPE_CHECKING:
    from mtpp.solvers.planners.piper_arrays import ChoiceArrays

NOTHING_FITS = -1
"""No choices fit into the memory, or none that cost at most what was asked for."""

UNDECIDED = -2
"""The search was ended: there may be choices."""

_NODES = 200_000
_SAFE = 1.0 - 1e-9


class KnapsackScratch(NamedTuple):
    """Space for one thread; n layers, c choices.

    Attributes
    ----------
    members
        The layers of the stage.
    chosen
        Result: the choice of each of *members*, as a row of the choice arrays.
    cost, memory, choice, option_start
        Options of layers that are worth considering, by layer, each cheaper and larger than the next.
    step_layer, step_save, step_extra, step_ratio, step_class, by_ratio
        Steps from one option to the next on the lower convex hull.
    class_start, class_items, class_at
        Layers whose savings are alike, cheapest first; how many of each class save in the best solution so far.
    class_depth, class_best
        State of the search.
    counters
        Knapsacks that were searched, nodes of these searches, searches that were ended.
    """

    members: Int64Array
    chosen: Int64Array
    cost: Int64Array
    memory: Int64Array
    choice: Int64Array
    option_start: Int64Array
    step_layer: Int64Array
    step_save: Int64Array
    step_extra: Int64Array
    step_ratio: NDArray[np.float64]
    step_class: Int64Array
    by_ratio: Int64Array
    class_start: Int64Array
    class_items: Int64Array
    class_at: Int64Array
    class_best: Int64Array
    need_at: Int64Array
    extra_at: Int64Array
    counters: Int64Array


def knapsack_scratch(layers: int, choices: int) -> KnapsackScratch:
    """Return space for stages of up to *layers* layers with *choices* choices in all."""
    n, c = layers + 2, choices + 2
    sizes = (n, n, c, c, c, n, c, c, c)
    first = [np.zeros(size, dtype=np.int64) for size in sizes]
    rest = [np.zeros(size, dtype=np.int64) for size in (c, c, n, n, n, n, n, n, 3)]
    return KnapsackScratch(*first, np.zeros(c, dtype=np.float64), *rest)


@kernel
def _sync(v: int, choice: int, arrays: ChoiceArrays, outer: NDArray[np.uint64], inner: NDArray[np.uint64]) -> int:
    """Return what a choice pays more than the least for the edges of its layer that leave the stage."""
    ticks = 0
    place = arrays.sync_start[choice]
    for i in range(arrays.in_start[v], arrays.in_start[v + 1]):
        u = arrays.source[arrays.in_edges[i]]
        if not (outer[u >> 6] >> np.uint64(u & 63)) & np.uint64(1):
            ticks += arrays.sync[place]
        place += 1
    for i in range(arrays.out_start[v], arrays.out_start[v + 1]):
        w = arrays.target[arrays.out_edges[i]]
        if (inner[w >> 6] >> np.uint64(w & 63)) & np.uint64(1):
            ticks += arrays.sync[place]
        place += 1
    return ticks


@kernel
def gather_members(outer: NDArray[np.uint64], inner: NDArray[np.uint64], scratch: KnapsackScratch) -> int:
    """List the layers of the stage *outer* without *inner*, ascending; return how many there are."""
    count = 0
    for word in range(len(outer)):
        left = outer[word] & ~inner[word]
        while left != 0:
            lowest = left & (~left + np.uint64(1))
            bit = 0
            probe = lowest
            if probe >> np.uint64(32):
                bit += 32
                probe >>= np.uint64(32)
            if probe >> np.uint64(16):
                bit += 16
                probe >>= np.uint64(16)
            if probe >> np.uint64(8):
                bit += 8
                probe >>= np.uint64(8)
            if probe >> np.uint64(4):
                bit += 4
                probe >>= np.uint64(4)
            if probe >> np.uint64(2):
                bit += 2
                probe >>= np.uint64(2)
            if probe >> np.uint64(1):
                bit += 1
            scratch.members[count] = word * 64 + bit
            count += 1
            left &= ~lowest
    return count


@kernel
def _gather_options(
    count: int,
    j: int,
    scale_p: int,
    scale_w: int,
    in_flight: int,
    arrays: ChoiceArrays,
    outer: NDArray[np.uint64],
    inner: NDArray[np.uint64],
    scratch: KnapsackScratch,
) -> None:
    """List each member's options by cost, without those that another one beats in both cost and memory."""
    n = len(arrays.in_start) - 1
    top = 0
    for i in range(count):
        v = scratch.members[i]
        scratch.option_start[i] = top
        for row in range(arrays.start[j * n + v], arrays.start[j * n + v + 1]):
            ticks = arrays.compute[row]
            if not arrays.plain[j]:
                ticks += _sync(v, row, arrays, outer, inner)
            cost = scale_p * ticks + scale_w * arrays.weights[row]
            memory = arrays.memory_a[row] * in_flight + arrays.memory_b[row]
            place = top
            while place > scratch.option_start[i] and (
                scratch.cost[place - 1] > cost
                or (scratch.cost[place - 1] == cost and scratch.memory[place - 1] > memory)
            ):
                scratch.cost[place] = scratch.cost[place - 1]
                scratch.memory[place] = scratch.memory[place - 1]
                scratch.choice[place] = scratch.choice[place - 1]
                place -= 1
            scratch.cost[place] = cost
            scratch.memory[place] = memory
            scratch.choice[place] = row
            top += 1
        kept = scratch.option_start[i] + 1
        for place in range(scratch.option_start[i] + 1, top):
            if scratch.memory[place] < scratch.memory[kept - 1]:
                scratch.cost[kept] = scratch.cost[place]
                scratch.memory[kept] = scratch.memory[place]
                scratch.choice[kept] = scratch.choice[place]
                kept += 1
        top = kept
    scratch.option_start[count] = top


@kernel
def _later(step: int, other: int, scratch: KnapsackScratch) -> bool:
    """Tell whether *step* costs more per byte than *other*, or as much and was listed behind it."""
    ratio, another = scratch.step_ratio[step], scratch.step_ratio[other]
    return ratio > another or (ratio == another and step > other)


@kernel
def _gather_steps(count: int, scratch: KnapsackScratch) -> int:
    """List the steps along each member's lower convex hull of cost over memory saved, by extra cost per byte."""
    steps = 0
    for i in range(count):
        first, last = scratch.option_start[i], scratch.option_start[i + 1]
        here = first
        while here + 1 < last:
            best, ratio = here + 1, np.inf
            for place in range(here + 1, last):
                one = (scratch.cost[place] - scratch.cost[here]) / (scratch.memory[here] - scratch.memory[place])
                if one <= ratio:
                    best, ratio = place, one
            scratch.step_layer[steps] = i
            scratch.step_save[steps] = scratch.memory[here] - scratch.memory[best]
            scratch.step_extra[steps] = scratch.cost[best] - scratch.cost[here]
            if here > first:  # convex, rounding aside
                ratio = max(ratio, scratch.step_ratio[steps - 1])
            scratch.step_ratio[steps] = ratio
            steps += 1
            here = best
    gap = 1
    while gap < steps // 3:
        gap = 3 * gap + 1
    for k in range(steps):
        scratch.by_ratio[k] = k
    while gap > 0:
        for k in range(gap, steps):
            one = scratch.by_ratio[k]
            place = k
            while place >= gap and _later(scratch.by_ratio[place - gap], one, scratch):
                scratch.by_ratio[place] = scratch.by_ratio[place - gap]
                place -= gap
            scratch.by_ratio[place] = one
        gap //= 3
    return steps


@kernel
def least_cost(
    count: int,
    j: int,
    scale_p: int,
    scale_w: int,
    in_flight: int,
    memory: int,
    budget: int,
    exactly: bool,
    arrays: ChoiceArrays,
    outer: NDArray[np.uint64],
    inner: NDArray[np.uint64],
    scratch: KnapsackScratch,
) -> int:
    """Return the cost of choices for the first *count* members that fit into *memory* and cost at most *budget*.

    The least there is if *exactly*, otherwise that of any such choices. They are left in ``scratch.chosen``.

    Returns
    -------
    The cost, :data:`NOTHING_FITS`, or :data:`UNDECIDED` if the search was ended after many nodes.

    Notes
    -----
    The linear relaxation (steps along convex hulls, by cost per byte) refutes or its rounding answers nearly all.
    Otherwise branch and bound over classes of layers that save alike, of which the cheapest go first. O(n log n) plus
    O(n) a node.
    """
    _gather_options(count, j, scale_p, scale_w, in_flight, arrays, outer, inner, scratch)
    base = 0
    used = 0
    least_used = 0
    for i in range(count):
        first = scratch.option_start[i]
        if first == scratch.option_start[i + 1]:
            return NOTHING_FITS
        base += scratch.cost[first]
        used += scratch.memory[first]
        least_used += scratch.memory[scratch.option_start[i + 1] - 1]
        scratch.chosen[i] = scratch.choice[first]
    if base > budget or least_used > memory:
        return NOTHING_FITS
    need = used - memory
    if need <= 0:
        return base
    spare = budget - base
    steps = _gather_steps(count, scratch)
    extra = 0
    saved = 0
    bound = 0.0
    taken = 0
    for k in range(steps):
        step = scratch.by_ratio[k]
        if saved + scratch.step_save[step] >= need:
            bound = extra + scratch.step_ratio[step] * (need - saved)
            extra += scratch.step_extra[step]
            taken = k + 1
            break
        saved += scratch.step_save[step]
        extra += scratch.step_extra[step]
    if bound * _SAFE > spare:
        return NOTHING_FITS
    if extra <= spare and not exactly:
        _take_steps(taken, scratch)
        return base + extra
    best = min(extra, spare + 1)
    if extra <= spare:
        _take_steps(taken, scratch)
        if bound * _SAFE > extra - 1:
            return base + extra
    found = _branch(count, need, best, steps, exactly, scratch)
    if found == UNDECIDED:
        return UNDECIDED
    if found <= spare:
        return base + found
    return NOTHING_FITS


@kernel
def _take_steps(taken: int, scratch: KnapsackScratch) -> None:
    """Choose for each member the option that the first *taken* steps lead to."""
    for k in range(taken):
        step = scratch.by_ratio[k]
        i = scratch.step_layer[step]
        # Steps of one layer follow each other, so the memory saved so far says where the layer stands.
        place = scratch.option_start[i]
        while scratch.choice[place] != scratch.chosen[i]:
            place += 1
        target = scratch.memory[place] - scratch.step_save[step]
        while scratch.memory[place] != target:
            place += 1
        scratch.chosen[i] = scratch.choice[place]


@kernel
def _classes(count: int, scratch: KnapsackScratch) -> int:
    """Sort the members that can save into classes: two options with the same saving, cheapest first, or one layer."""
    items = 0
    for i in range(count):
        if scratch.option_start[i + 1] - scratch.option_start[i] > 1:
            place = items
            while place > 0 and _before(i, scratch.class_items[place - 1], scratch):
                scratch.class_items[place] = scratch.class_items[place - 1]
                place -= 1
            scratch.class_items[place] = i
            items += 1
    classes = 0
    for k in range(items):
        if k == 0 or not _alike(scratch.class_items[k - 1], scratch.class_items[k], scratch):
            scratch.class_start[classes] = k
            classes += 1
    scratch.class_start[classes] = items
    return classes


@kernel
def _saving(i: int, scratch: KnapsackScratch) -> int:
    return scratch.memory[scratch.option_start[i]] - scratch.memory[scratch.option_start[i + 1] - 1]


@kernel
def _price(i: int, scratch: KnapsackScratch) -> int:
    return scratch.cost[scratch.option_start[i + 1] - 1] - scratch.cost[scratch.option_start[i]]


@kernel
def _alike(i: int, k: int, scratch: KnapsackScratch) -> bool:
    """Tell whether two members have two options each, with the same saving."""
    two = scratch.option_start[i + 1] - scratch.option_start[i] == 2
    return (
        two
        and scratch.option_start[k + 1] - scratch.option_start[k] == 2
        and _saving(i, scratch) == _saving(k, scratch)
    )


@kernel
def _before(i: int, k: int, scratch: KnapsackScratch) -> bool:
    """Tell whether member i is listed before k: larger savings, then fewer options, then lower prices."""
    saving, other = _saving(i, scratch), _saving(k, scratch)
    if saving != other:
        return saving > other
    options = scratch.option_start[i + 1] - scratch.option_start[i]
    others = scratch.option_start[k + 1] - scratch.option_start[k]
    if options != others:
        return options < others
    return _price(i, scratch) < _price(k, scratch)


@kernel
def _relaxed(depth: int, need: int, steps: int, scratch: KnapsackScratch) -> float:
    """Return the least that saving *need* bytes may take of the classes from *depth* on; infinite if they cannot."""
    extra = 0.0
    for k in range(steps):
        step = scratch.by_ratio[k]
        if scratch.step_class[step] < depth:
            continue
        if scratch.step_save[step] >= need:
            return extra + scratch.step_ratio[step] * need
        need -= scratch.step_save[step]
        extra += scratch.step_extra[step]
    return np.inf


@kernel
def _branch(count: int, need: int, best: int, steps: int, exactly: bool, scratch: KnapsackScratch) -> int:
    """Return the least extra cost below *best* that saves *need* bytes, or *best*; the choices are left if it is new.

    Without *exactly* the first one below is taken.
    """
    scratch.counters[0] += 1
    classes = _classes(count, scratch)
    for c in range(classes):
        for k in range(scratch.class_start[c], scratch.class_start[c + 1]):
            scratch.class_at[scratch.class_items[k]] = c
    for k in range(steps):
        scratch.step_class[k] = scratch.class_at[scratch.step_layer[k]]
    depth = 0
    # Options of a class are numbered: how many of its layers save, or which of the options of its only layer.
    scratch.class_at[0] = -1
    scratch.need_at[0], scratch.extra_at[0] = need, 0
    nodes = 0
    found = False
    while depth >= 0:
        if depth == classes:
            depth -= 1
            continue
        first, last = scratch.class_start[depth], scratch.class_start[depth + 1]
        single = last - first == 1
        i = scratch.class_items[first]
        options = scratch.option_start[i + 1] - scratch.option_start[i] if single else last - first + 1
        scratch.class_at[depth] += 1
        at = scratch.class_at[depth]
        if at == options:
            depth -= 1
            continue
        nodes += 1
        if nodes > _NODES:
            scratch.counters[1] += nodes
            scratch.counters[2] += 1
            return UNDECIDED
        if at == 0:
            left, extra = scratch.need_at[depth], scratch.extra_at[depth]
        elif single:
            place = scratch.option_start[i]
            left = scratch.need_at[depth] - (scratch.memory[place] - scratch.memory[place + at])
            extra = scratch.extra_at[depth] + scratch.cost[place + at] - scratch.cost[place]
        else:
            left, extra = scratch.need_at[depth], scratch.extra_at[depth]
            for k in range(first, first + at):
                left -= _saving(scratch.class_items[k], scratch)
                extra += _price(scratch.class_items[k], scratch)
        if extra >= best:
            depth -= 1  # further options of this class cost more
            continue
        if left <= 0:
            best = extra
            found = True
            for c in range(classes):
                scratch.class_best[c] = scratch.class_at[c] if c <= depth else 0
            if not exactly:
                break
            depth -= 1  # and so they do from here on
            continue
        if extra + _relaxed(depth + 1, left, steps, scratch) * _SAFE > best - 1:
            continue
        depth += 1
        if depth < classes:
            scratch.class_at[depth] = -1
            scratch.need_at[depth], scratch.extra_at[depth] = left, extra
    scratch.counters[1] += nodes
    if found:
        for i in range(count):
            scratch.chosen[i] = scratch.choice[scratch.option_start[i]]
        for c in range(classes):
            first, last = scratch.class_start[c], scratch.class_start[c + 1]
            if last - first == 1:
                i = scratch.class_items[first]
                scratch.chosen[i] = scratch.choice[scratch.option_start[i] + scratch.class_best[c]]
            else:
                for k in range(first, first + scratch.class_best[c]):
                    i = scratch.class_items[k]
                    scratch.chosen[i] = scratch.choice[scratch.option_start[i + 1] - 1]
    return best


@kernel
def bang_per_buck(
    count: int,
    j: int,
    scale_p: int,
    scale_w: int,
    in_flight: int,
    memory: int,
    arrays: ChoiceArrays,
    outer: NDArray[np.uint64],
    inner: NDArray[np.uint64],
    scratch: KnapsackScratch,
) -> int:
    """Return the cost of the choices that the paper's heuristic makes, or :data:`NOTHING_FITS` if none fit.

    From the fastest choices on, the change with the largest ratio of memory saved to time lost is made until the rest
    fits; earlier layers and choices go first among equals. They are left in ``scratch.chosen``. O(c) a change.
    """
    _gather_options(count, j, scale_p, scale_w, in_flight, arrays, outer, inner, scratch)
    cost = 0
    used = 0
    for i in range(count):
        if scratch.option_start[i] == scratch.option_start[i + 1]:
            return NOTHING_FITS
        scratch.class_at[i] = scratch.option_start[i]
        cost += scratch.cost[scratch.option_start[i]]
        used += scratch.memory[scratch.option_start[i]]
    while used > memory:
        best_i, best_place, best_ratio = -1, -1, np.inf
        for i in range(count):
            here = scratch.class_at[i]
            for place in range(here + 1, scratch.option_start[i + 1]):
                ratio = (scratch.cost[place] - scratch.cost[here]) / (scratch.memory[here] - scratch.memory[place])
                if ratio < best_ratio:
                    best_i, best_place, best_ratio = i, place, ratio
        if best_i < 0:
            return NOTHING_FITS
        here = scratch.class_at[best_i]
        cost += scratch.cost[best_place] - scratch.cost[here]
        used -= scratch.memory[here] - scratch.memory[best_place]
        scratch.class_at[best_i] = best_place
    for i in range(count):
        scratch.chosen[i] = scratch.choice[scratch.class_at[i]]
    return cost
