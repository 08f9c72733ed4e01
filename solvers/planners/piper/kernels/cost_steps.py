"""Least cost of each stage by micro-batches in flight: a step function per stage and pair of degrees.

The more micro-batches a stage has in flight, the more memory they take and the slower the choices that fit. A staircase
is that of a stage, a degree of tensor parallelism and one of data parallelism: steps (y, cost), ascending in both, cost
being the least with up to y micro-batches in flight, times the common denominator of the degree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.planners.piper.kernels.saving_classes import UNDECIDED
from mtpp.solvers.planners.piper.kernels.stage_choices import BANG_PER_BUCK, LEAST, UNBOUNDED, least_cost
from mtpp.solvers.planners.piper.kernels.stage_options import Demand, KnapsackScratch, StageLayers, gather_members

if TYPE_CHECKING:
    from mtpp.solvers.planners.piper.arrays import ChoiceArrays
    from mtpp.solvers.planners.piper.layer_downsets import Sets

_NONE, _ONE = 0, 1
"""Passed on as ``int(_ONE)``: each combination of literals as arguments would be compiled anew."""


class Nested(NamedTuple):
    """Downsets, the smallest first, and the pairs of which one holds the other.

    Attributes
    ----------
    sets
        Bits of the layers, shape (D, words); the first is empty, the last holds all layers.
    pair_of
        Number of the pair (outer, inner), -1 where *outer* does not hold *inner* or is the same; int32, shape (D, D).
    outer, inner
        The downsets of each pair, int64, shape (P,).
    """

    sets: Sets
    pair_of: Int32Array
    outer: Int64Array
    inner: Int64Array


class StageKinds(NamedTuple):
    """Degrees that a stage of level 1 may have, I kinds in all, the degree of tensor parallelism ascending.

    Attributes
    ----------
    degree
        Position of t among the problem's degrees.
    data, uses
        d, and the d · t devices.
    spread
        Costs are in units of 1 / (d · spread) ticks: d by the paper's convention, N by the program's.
    """

    degree: Int64Array
    data: Int64Array
    uses: Int64Array
    spread: Int64Array


@subroutine
def _edges_of_stage(stage: StageLayers, j: int, arrays: ChoiceArrays, scratch: KnapsackScratch) -> int:
    """Return the least that a stage pays for its edges to other stages, in ticks."""
    count, outer, inner = stage
    ticks = 0
    for i in range(count):
        v = scratch.members[i]
        for place in range(arrays.in_start[v], arrays.in_start[v + 1]):
            e = arrays.in_edges[place]
            if not _holds(arrays.source[e], outer, inner):
                ticks += arrays.pays_in[j, e]
        for place in range(arrays.out_start[v], arrays.out_start[v + 1]):
            e = arrays.out_edges[place]
            if not _holds(arrays.target[e], outer, inner):
                ticks += arrays.pays_out[j, e]
    return ticks


@subroutine
def _holds(v: int, outer: NDArray[np.uint64], inner: NDArray[np.uint64]) -> bool:
    """Tell whether layer v is in *outer* and not in *inner*."""
    word, bit = v // 64, np.uint64(1) << np.uint64(v % 64)
    return bool((outer[word] & ~inner[word] & bit) != 0)


@subroutine
def _fits_until(count: int, memory: int, arrays: ChoiceArrays, scratch: KnapsackScratch) -> int:
    """Return the most micro-batches in flight with which the chosen configurations fit into *memory*."""
    a = 0
    b = 0
    for i in range(count):
        a += arrays.memory_a[scratch.chosen[i]]
        b += arrays.memory_b[scratch.chosen[i]]
    if a == 0:
        return UNBOUNDED
    return (memory - b) // a


@kernel
def cost_steps(
    first: int,
    last: int,
    nested: Nested,
    arrays: ChoiceArrays,
    kinds: StageKinds,
    most: int,
    memory: int,
    scratch: KnapsackScratch,
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Work out the cost steps of the pairs *first* to *last* (not included) of downsets.

    Parameters
    ----------
    kinds
        Costs are ``spread`` · (compute + edges) + (d - 1) · weights.
    most
        Micro-batches in flight that matter, divided by d.

    Returns
    -------
    Where the steps of each pair and kind start, shape ((last - first) · I + 1,); the y and the cost of each step;
    and how many knapsacks were not solved to the end: there the heuristic's cost is taken.

    Notes
    -----
    Degrees whose choices differ in time and memory only need one knapsack per step for all d together. Invariant: the
    steps of the pairs and kinds so far are in the first *total* places.
    """
    sets, pair_outer, pair_inner = nested.sets, nested.outer, nested.inner
    item_degree, item_data, item_spread = kinds.degree, kinds.data, kinds.spread
    items = len(item_degree)
    pairs = last - first
    starts = np.zeros(pairs * items + 1, dtype=np.int64)
    capacity = 1024
    steps_y = np.empty(capacity, dtype=np.int64)
    steps_cost = np.empty(capacity, dtype=np.int64)
    total = 0
    undecided = 0
    n = len(arrays.in_start) - 1
    one, none = int(_ONE), int(_NONE)
    shared_y = np.empty(most + 1, dtype=np.int64)
    shared_cost = np.empty(most + 1, dtype=np.int64)
    for pair in range(pairs):
        outer, inner = sets[pair_outer[first + pair]], sets[pair_inner[first + pair]]
        count = gather_members(len(arrays.in_start) - 1, outer, inner, scratch)
        stage = StageLayers(count, outer, inner)
        shared_for = -1
        shared = 0
        possible = False
        edges = 0
        weights = 0
        for item in range(items):
            j, d, spread = item_degree[item], item_data[item], item_spread[item]
            cap = -(-most // d)
            plain = arrays.plain[j] != 0
            if j != shared_for:
                shared_for = j
                edges = _edges_of_stage(stage, j, arrays, scratch)
                shared = 0
                weights = 0
                possible = _has_choices(count, j, arrays, scratch)
                if plain and possible:
                    shared, failed = _steps(stage, j, one, none, most, memory, arrays, scratch, shared_y, shared_cost)
                    undecided += failed
                    for i in range(count):
                        weights += arrays.weights[arrays.start[j * n + scratch.members[i]]]
            found = shared
            if possible and not plain:
                found, failed = _steps(stage, j, spread, d - 1, cap, memory, arrays, scratch, shared_y, shared_cost)
                undecided += failed
            while total + found > capacity:
                steps_y = _doubled(steps_y)
                steps_cost = _doubled(steps_cost)
                capacity *= 2
            for k in range(found):
                cost = shared_cost[k]
                if plain:
                    cost = spread * (edges + cost) + (d - 1) * weights
                else:
                    cost += spread * edges
                steps_y[total] = min(shared_y[k], cap)
                steps_cost[total] = cost
                total += 1
                if shared_y[k] >= cap:
                    break
            starts[pair * items + item + 1] = total
    return starts, steps_y[:total].copy(), steps_cost[:total].copy(), undecided


@subroutine
def _has_choices(count: int, j: int, arrays: ChoiceArrays, scratch: KnapsackScratch) -> bool:
    """Tell whether each member has a choice for degree j."""
    n = len(arrays.in_start) - 1
    for i in range(count):
        place = j * n + scratch.members[i]
        if arrays.start[place] == arrays.start[place + 1]:
            return False
    return True


@subroutine
def _doubled(values: Int64Array) -> Int64Array:
    larger = np.empty(2 * len(values), dtype=np.int64)
    for i in range(len(values)):
        larger[i] = values[i]
    return larger


@subroutine
def _steps(
    stage: StageLayers,
    j: int,
    scale_p: int,
    scale_w: int,
    most: int,
    memory: int,
    arrays: ChoiceArrays,
    scratch: KnapsackScratch,
    steps_y: Int64Array,
    steps_cost: Int64Array,
) -> tuple[int, int]:
    """Write the steps of one stage without its edges; return their number, and how many knapsacks were given up.

    Invariant: the steps written so far hold for all micro-batches in flight below *y*.
    """
    found = 0
    failed = 0
    y, any_cost = int(_ONE), int(UNBOUNDED)
    least, by_heuristic = int(LEAST), int(BANG_PER_BUCK)
    while y <= most:
        cost = least_cost(stage, Demand(j, scale_p, scale_w, y, memory, any_cost, least), arrays, scratch)
        if cost == UNDECIDED:
            failed += 1
            demand = Demand(j, scale_p, scale_w, y, memory, any_cost, by_heuristic)
            cost = least_cost(stage, demand, arrays, scratch)
        if cost < 0:
            break
        until = min(_fits_until(stage.size, memory, arrays, scratch), most)
        if found > 0 and steps_cost[found - 1] >= cost:
            steps_y[found - 1] = until
        else:
            steps_y[found] = until
            steps_cost[found] = cost
            found += 1
        y = until + 1
    return found, failed


@kernel
def tolerated_in_flight(
    starts: Int64Array, steps_y: Int64Array, steps_cost: Int64Array, data: Int64Array, budgets: Int64Array, cap: int
) -> NDArray[np.int32]:
    """Return how many micro-batches in flight, from it on, each stage tolerates at a cost within its kind's budget.

    Shape (pairs, I); d times the y of the last step within the budget, at most *cap*; 0 if the first is not.
    """
    items = len(data)
    pairs = (len(starts) - 1) // items
    most = np.zeros((pairs, items), dtype=np.int32)
    for pair in range(pairs):
        for i in range(items):
            low, high = starts[pair * items + i], starts[pair * items + i + 1]
            begin = low
            while low < high:
                middle = (low + high) // 2
                if steps_cost[middle] <= budgets[i]:
                    low = middle + 1
                else:
                    high = middle
            if low > begin:
                most[pair, i] = min(cap, steps_y[low - 1] * data[i])
    return most


@kernel
def fit_until(
    nested: Nested, arrays: ChoiceArrays, kinds: StageKinds, most: int, memory: int, scratch: KnapsackScratch
) -> Int64Array:
    """Return with how many micro-batches in flight, up to *most* / d, some choices of each stage fit into *memory*.

    Shape (pairs, I); 0 if they fit with none. Invariant: choices fit with *low* micro-batches, not with *high*.
    """
    sets, pair_outer, pair_inner = nested.sets, nested.outer, nested.inner
    item_degree, item_data = kinds.degree, kinds.data
    items = len(item_degree)
    until = np.zeros((len(pair_outer), items), dtype=np.int64)
    for pair in range(len(pair_outer)):
        count = gather_members(len(arrays.in_start) - 1, sets[pair_outer[pair]], sets[pair_inner[pair]], scratch)
        known_for = -1
        known = 0
        for item in range(items):
            if item_degree[item] != known_for:
                known_for = item_degree[item]
                low, high = 0, most + 1
                while high - low > 1:
                    middle = (low + high) // 2
                    if _least_memory(count, known_for, middle, arrays, scratch) <= memory:
                        low = middle
                    else:
                        high = middle
                known = low
            until[pair, item] = min(known, -(-most // item_data[item]))
    return until


@subroutine
def _least_memory(count: int, j: int, in_flight: int, arrays: ChoiceArrays, scratch: KnapsackScratch) -> int:
    """Return the fewest bytes that a stage's layers take; too many if one of them has no choice."""
    n = len(arrays.in_start) - 1
    total = 0
    for i in range(count):
        v = scratch.members[i]
        least = UNBOUNDED
        for row in range(arrays.start[j * n + v], arrays.start[j * n + v + 1]):
            least = min(least, arrays.memory_a[row] * in_flight + arrays.memory_b[row])
        if least == UNBOUNDED:
            return UNBOUNDED
        total += least
    return total
