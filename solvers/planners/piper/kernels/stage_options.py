"""The choices that the layers of a stage have: what each costs and holds, and the steps from one to the next.

A stage with degrees d and t and y micro-batches in flight takes one choice for each of its layers, so that Σ (a · y +
b) fits into the memory and Σ cost is least: the knapsack of section 4 of Piper's paper. A cost is ``scale_p`` ·
(compute + sync) + ``scale_w`` · weights, the layer's part of the stage's time times a common denominator, an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel

if TYPE_CHECKING:
    from mtpp.solvers.planners.piper.arrays import ChoiceArrays


class StageLayers(NamedTuple):
    """The *size* layers of a stage: of the downset *outer*, without *inner*; bits, shape (⌈n / 64⌉,)."""

    size: int
    outer: NDArray[np.uint64]
    inner: NDArray[np.uint64]


class Demand(NamedTuple):
    """What is asked of a stage's choices, for the j-th degree: what costs are scaled by, and what they may come to."""

    j: int
    scale_p: int
    scale_w: int
    in_flight: int
    memory: int
    budget: int
    wanted: int


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
    saving, price
        What the smallest option of each layer saves, and costs more, than the fastest.
    step_layer, step_save, step_extra, step_ratio, step_class, by_ratio
        Steps from one option to the next on the lower convex hull.
    class_start, class_items, class_at
        Layers whose savings are alike, cheapest first; how many of each class save at present, or which class each
        layer is in.
    class_best, need_at, extra_at
        State of the search: the best solution so far; at each depth, bytes to be saved yet, and what it costs so far.
    given_up
        How many searches were ended before they were done, shape (1,).
    """

    members: Int64Array
    chosen: Int64Array
    cost: Int64Array
    memory: Int64Array
    choice: Int64Array
    option_start: Int64Array
    saving: Int64Array
    price: Int64Array
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
    given_up: Int64Array


def knapsack_scratch(layers: int, choices: int) -> KnapsackScratch:
    """Return space for stages of up to *layers* layers with *choices* choices in all."""
    n, c = layers + 2, choices + 2

    def numbers(size: int) -> Int64Array:
        return np.zeros(size, dtype=np.int64)

    return KnapsackScratch(
        members=numbers(n),
        chosen=numbers(n),
        cost=numbers(c),
        memory=numbers(c),
        choice=numbers(c),
        option_start=numbers(n),
        saving=numbers(n),
        price=numbers(n),
        step_layer=numbers(c),
        step_save=numbers(c),
        step_extra=numbers(c),
        step_ratio=np.zeros(c, dtype=np.float64),
        step_class=numbers(c),
        by_ratio=numbers(c),
        class_start=numbers(n),
        class_items=numbers(n),
        class_at=numbers(n),
        class_best=numbers(n),
        need_at=numbers(n),
        extra_at=numbers(n),
        given_up=numbers(1),
    )


@kernel
def gather_members(layers: int, outer: NDArray[np.uint64], inner: NDArray[np.uint64], scratch: KnapsackScratch) -> int:
    """List the layers of the stage *outer* without *inner*, ascending; return how many there are."""
    count = 0
    for v in range(layers):
        if ((outer[v >> 6] & ~inner[v >> 6]) >> np.uint64(v & 63)) & np.uint64(1):
            scratch.members[count] = v
            count += 1
    return count


@inlined
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


@inlined
def gather_options(stage: StageLayers, demand: Demand, arrays: ChoiceArrays, scratch: KnapsackScratch) -> None:
    """List each member's options by cost, without any that another one beats in both cost and memory.

    Invariant: the options below *top*, of the members so far, are ascending in cost and descending in memory by member.
    """
    count, outer, inner = stage
    j, scale_p, scale_w, in_flight = demand.j, demand.scale_p, demand.scale_w, demand.in_flight
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
        kept = min(scratch.option_start[i] + 1, top)
        for place in range(scratch.option_start[i] + 1, top):
            if scratch.memory[place] < scratch.memory[kept - 1]:
                scratch.cost[kept] = scratch.cost[place]
                scratch.memory[kept] = scratch.memory[place]
                scratch.choice[kept] = scratch.choice[place]
                kept += 1
        top = kept
    scratch.option_start[count] = top


@inlined
def _later(step: int, other: int, scratch: KnapsackScratch) -> bool:
    """Tell whether *step* costs more per byte than *other*, or as much and was listed behind it."""
    ratio, another = scratch.step_ratio[step], scratch.step_ratio[other]
    return ratio > another or (ratio == another and step > other)


@inlined
def gather_steps(count: int, scratch: KnapsackScratch) -> int:
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


@inlined
def take_steps(taken: int, scratch: KnapsackScratch) -> None:
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
