"""Pipelines that keep every stage within a time: for each downset, the fewest devices by sum of degrees.

The paper's dynamic programme (section 4) for one threshold: ``dp[D][k][s] <= T`` for some k, so that k is a value and
no index. A *state* of a downset is a pair (s, k): its layers can be cut into stages, each within the threshold, whose
degrees of data parallelism sum up to s, on k devices. A state is not needed if another one has both s and k no larger:
that one leaves fewer micro-batches in flight in front of it, and takes fewer devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.planners.piper.kernels.pipeline_layout import (
    BY_BATCH,
    DEVICES,
    EXACTLY,
    KNAPSACK,
    MEMORY,
    MICRO_BATCHES,
    NOT_KNOWN,
    OPTIMISTIC,
    TICKS,
    LeastCompute,
    States,
    StateScratch,
    Threshold,
)
from mtpp.solvers.planners.piper.kernels.saving_classes import UNDECIDED
from mtpp.solvers.planners.piper.kernels.stage_choices import ANY, BANG_PER_BUCK, LEAST, UNBOUNDED, least_cost
from mtpp.solvers.planners.piper.kernels.stage_options import Demand, KnapsackScratch, StageLayers, gather_members

if TYPE_CHECKING:
    from mtpp.solvers.planners.piper.arrays import ChoiceArrays
    from mtpp.solvers.planners.piper.layer_downsets import LayerDownsets

NO_STATE = 2**31 - 1


class Part(NamedTuple):
    """Downsets to be worked out.

    Attributes
    ----------
    first_level, last_level
        Sizes, by their position: from the first to before the last. Several of them only as one part.
    part, parts
        Which of so many equal parts of the downsets of these sizes is meant.
    starts
        The downsets of the i-th size are from ``starts[i]``.
    alive, alive_start
        The smaller downsets that have states, ascending; those of the i-th size are from ``alive_start[i]``. Continued
        if there is one part.
    """

    first_level: int
    last_level: int
    part: int
    parts: int
    starts: Int64Array
    alive: Int64Array
    alive_start: Int64Array


class _Cut(NamedTuple):
    """A stage *outer* without *inner* with the j-th degree of tensor parallelism, and what it pays for *edges*."""

    outer: int
    inner: int
    j: int
    edges: int


@inlined
def _stage_fits(
    g: int,
    degrees_before: int,
    cut: _Cut,
    threshold: Threshold,
    downsets: LayerDownsets,
    arrays: ChoiceArrays,
    table: LeastCompute,
    knapsack: KnapsackScratch,
) -> bool:
    """Tell whether a stage fits with the g-th degree of data parallelism, at which its fastest choices would."""
    outer, inner, j, edges = cut
    d = threshold.data_degrees[g]
    scale_p, scale_w, budget = threshold.scale_p[g], threshold.scale_w[g], threshold.budget[g]
    memory = threshold.numbers[MEMORY]
    in_flight = 1 + (degrees_before + d - 1) // d
    listed = min(in_flight, downsets.least_memory.shape[1] - 1)
    if downsets.least_memory[j, listed, outer] - downsets.least_memory[j, listed, inner] > memory:
        return False
    if budget == UNBOUNDED and listed == in_flight:
        return True
    fastest = downsets.fastest_memory[j, listed, outer] - downsets.fastest_memory[j, listed, inner]
    if arrays.plain[j] and listed == in_flight and fastest <= memory:
        return True
    heuristic = threshold.numbers[KNAPSACK] == BANG_PER_BUCK
    layers = len(arrays.in_start) - 1
    bits, behind = downsets.sets[outer], downsets.sets[inner]
    at = -1
    wanted = BANG_PER_BUCK if heuristic else ANY
    # What the least compute is scaled to: costs as they are, or ticks for the table.
    scaled_p, scaled_w, most = scale_p, scale_w, budget - scale_p * edges
    if arrays.plain[j] and len(table.pair) and listed == in_flight and not heuristic:
        at = table.start[table.pair[outer, inner] * len(arrays.degrees) + j] + in_flight
        wanted, scaled_p, scaled_w, most = LEAST, 1, 0, UNBOUNDED
    cost = NOT_KNOWN if at < 0 else table.ticks[at]
    if cost == NOT_KNOWN:
        count = gather_members(layers, bits, behind, knapsack)
        demand = Demand(j, scaled_p, scaled_w, in_flight, memory, most, wanted)
        cost = least_cost(StageLayers(count, bits, behind), demand, arrays, knapsack)
        if at >= 0:
            table.ticks[at] = cost
    if cost == UNDECIDED:
        knapsack.given_up[0] += at >= 0  # found in the table, it counts as given up once more
        return bool(threshold.numbers[OPTIMISTIC] == 1)
    if cost < 0 or at < 0:
        return bool(cost >= 0)
    weights = downsets.weights[j, outer] - downsets.weights[j, inner]
    return bool(scale_p * (cost + edges) + scale_w * weights <= budget)


@inlined
def _enter(
    s0: int, k0: int, g: int, j: int, t: int, q: int, inner: int, threshold: Threshold, scratch: StateScratch
) -> None:
    """Take note of a stage with the g-th and j-th degrees in front of the q-th state (s0, k0) of *inner*."""
    d = threshold.data_degrees[g]
    s, k = s0 + d, k0 + t * d
    if k < scratch.devices[s]:
        scratch.devices[s] = k
        scratch.inner[s] = inner
        scratch.state[s] = q
        scratch.tensor[s] = j
        scratch.data[s] = g


@inlined
def _extend_to(
    outer: int,
    levels: int,
    which: Part,
    threshold: Threshold,
    downsets: LayerDownsets,
    arrays: ChoiceArrays,
    table: LeastCompute,
    states: States,
    scratch: StateScratch,
    knapsack: KnapsackScratch,
) -> bool:
    """Work out the states of one downset from the ones of *levels* smaller sizes; return whether there was space.

    Invariant: ``scratch.devices[s]`` is the fewest devices with a first stage that ends at a downset seen so far.
    """
    alive, alive_start = which.alive, which.alive_start
    words = downsets.sets.shape[1]
    tensor_degrees = len(arrays.degrees)
    everything = len(downsets.sizes) - 1
    devices, most_degrees = threshold.numbers[DEVICES], threshold.numbers[MICRO_BATCHES]
    exactly = threshold.numbers[EXACTLY] == 1
    by_batch = threshold.numbers[BY_BATCH] == 1
    memory = threshold.numbers[MEMORY]
    # Slightly too small: what is derived from it must never be too large.
    per_tick = (1.0 - 1e-12) / threshold.numbers[TICKS]
    lone = tensor_degrees == 1 and arrays.degrees[0] == 1 and not exactly
    rest_devices, rest_degrees = threshold.rest_devices[outer], threshold.rest_degrees[outer]
    most = min(most_degrees - rest_degrees, devices - rest_devices)
    states.counts[outer] = 0
    if most < 1:
        return True
    complete = True
    for s in range(most + 1):
        scratch.devices[s] = NO_STATE
    lone_best = most + 1
    lone_least = max(1, int(np.ceil(downsets.degree_work[outer] * per_tick)))
    crossing_first = downsets.crossing_start[outer]
    crossing = downsets.crossing_start[outer + 1] - crossing_first
    for level in range(levels - 1, -1, -1):
        level_first, level_last = alive_start[level], alive_start[level + 1]
        for at in range(_heavy_enough(level_first, level_last, outer, threshold, downsets, alive), level_last):
            inner = alive[at]
            known = states.counts[inner]
            fewest_s, fewest_k = states.degrees[inner, 0], states.devices[inner, known - 1]
            work = downsets.degree_work[outer] - downsets.degree_work[inner]
            least = int(np.ceil(work * per_tick))
            if fewest_s + least > most_degrees - rest_degrees:
                continue
            if lone:
                if fewest_s + max(least, 1) >= lone_best:
                    continue
            else:
                if exactly:
                    for q in range(known):
                        fewest_k = min(fewest_k, states.devices[inner, q])
                work = downsets.device_work[outer] - downsets.device_work[inner]
                if fewest_k + int(np.ceil(work * per_tick)) > devices - rest_devices:
                    continue
            inside = True
            for word in range(words):
                if downsets.sets[inner, word] & ~downsets.sets[outer, word]:
                    inside = False
                    break
            if not inside:
                continue
            for j in range(tensor_degrees):
                if downsets.missing[j, outer] != downsets.missing[j, inner]:
                    continue
                if downsets.least_memory[j, 1, outer] - downsets.least_memory[j, 1, inner] > memory:
                    continue
                t = arrays.degrees[j]
                edges = downsets.entering[j, outer] + downsets.leaving[j, inner]
                for i in range(crossing_first, crossing_first + crossing):
                    e = downsets.crossing[i]
                    v = arrays.target[e]
                    if (downsets.sets[inner, v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
                        edges -= arrays.pays_in[j, e] + arrays.pays_out[j, e]
                compute = downsets.compute[j, outer] - downsets.compute[j, inner] + edges
                weights = downsets.weights[j, outer] - downsets.weights[j, inner]
                # Gradients that are spread over the batch take longer the more devices there are, so a stage with
                # more of them than of anything else may take longer as well.
                falling = not by_batch or (arrays.plain[j] == 1 and threshold.scale_p[0] * compute >= weights)
                start = _first_in_time(compute, weights, threshold) if falling else 0
                cut = _Cut(outer, inner, j, edges)
                for q in range(known):
                    s0, k0 = states.degrees[inner, q], states.devices[inner, q]
                    # The last degree that leaves enough for the layers outside.
                    room = min(most_degrees - rest_degrees - s0, (devices - rest_devices - k0) // t)
                    if lone:
                        room = min(room, lone_best - 1 - s0)
                    end = _last_at_most(threshold.data_degrees, room)
                    found, low, high, step = -1, start, end, 1
                    g = start
                    while low <= high:
                        fits = falling or _in_time(g, compute, weights, threshold)
                        if not (exactly and falling and found > 0):  # else more devices do as well
                            fits = fits and _stage_fits(g, s0, cut, threshold, downsets, arrays, table, knapsack)
                        if fits and (exactly or found < 0 or g < found):
                            found = g if found < 0 or not exactly else found
                            if exactly:
                                _enter(s0, k0, g, j, t, q, inner, threshold, scratch)
                        if exactly or not falling:
                            low = g + 1
                            if fits and not exactly:
                                break
                            if g == 0 and falling:
                                low = 1 + _first_in_time_of_several(compute, weights, threshold)
                            g = low
                        elif g == 0:
                            # From two devices on, more of them take less time and less memory each; one is by itself.
                            if fits:
                                break
                            low = 1 + _first_in_time_of_several(compute, weights, threshold)
                            g = low
                        else:
                            if fits:
                                high, step = g - 1, 0
                            else:
                                low = g + 1
                            g = min(low + step, high) if step else (low + high) // 2
                            step *= 2
                    if found > 0:
                        start = found  # later states have more in flight: they need as many devices
                    elif found < 0:
                        start = max(start, end + 1)
                    if found >= 0 and not exactly:
                        _enter(s0, k0, found, j, t, q, inner, threshold, scratch)
                        if lone:
                            lone_best = s0 + threshold.data_degrees[found]
            if lone and lone_best <= lone_least:
                break
        if lone and lone_best <= lone_least:
            break
    kept = 0
    fewest = NO_STATE
    for s in range(most + 1):
        k = scratch.devices[s]
        if k == NO_STATE or (k >= fewest and not exactly):
            continue
        fewest = min(fewest, k)
        if outer == everything and exactly and s != most_degrees:
            continue
        if kept == states.degrees.shape[1]:
            complete = False
            break
        states.degrees[outer, kept] = s
        states.devices[outer, kept] = k
        states.inner[outer, kept] = scratch.inner[s]
        states.state[outer, kept] = scratch.state[s]
        states.tensor[outer, kept] = scratch.tensor[s]
        states.data[outer, kept] = scratch.data[s]
        kept += 1
    states.counts[outer] = kept
    return complete


@kernel
def extend(
    which: Part,
    threshold: Threshold,
    downsets: LayerDownsets,
    arrays: ChoiceArrays,
    table: LeastCompute,
    states: States,
    scratch: StateScratch,
    knapsack: KnapsackScratch,
) -> bool:
    """Work out the states of the downsets of some sizes from the ones of smaller sizes.

    Returns
    -------
    False if a downset had more states than there is space for: what comes of it may be incomplete.

    Notes
    -----
    For each pair of downsets that cannot be a stage a few nanoseconds; the others take the evaluation of a stage for
    each degree t and step of a binary search over d. Invariant: all downsets before *outer* have their states.
    """
    first_level, last_level, part, parts, starts, alive, alive_start = which
    complete = True
    for level in range(first_level, last_level):
        size = starts[level + 1] - starts[level]
        first, last = starts[level] + size * part // parts, starts[level] + size * (part + 1) // parts
        for outer in range(first, last):
            if not _extend_to(outer, level, which, threshold, downsets, arrays, table, states, scratch, knapsack):
                complete = False
        if parts == 1:
            reached = alive_start[level]
            for outer in range(first, last):
                if states.counts[outer]:
                    alive[reached] = outer
                    reached += 1
            alive_start[level + 1] = reached
    return complete


@subroutine
def _heavy_enough(
    first: int, last: int, outer: int, threshold: Threshold, downsets: LayerDownsets, alive: Int64Array
) -> int:
    """Return the first of the downsets ``alive[first:last]`` without which *outer* may fit into the memory."""
    least = downsets.lightest[outer] - threshold.numbers[MEMORY]
    while first < last:
        middle = (first + last) // 2
        if downsets.lightest[alive[middle]] >= least:
            last = middle
        else:
            first = middle + 1
    return first


@subroutine
def _in_time(g: int, compute: int, weights: int, threshold: Threshold) -> bool:
    """Tell whether a stage with these sums is within the threshold at the g-th degree."""
    return bool(threshold.scale_p[g] * compute + threshold.scale_w[g] * weights <= threshold.budget[g])


@subroutine
def _first_in_time(compute: int, weights: int, threshold: Threshold) -> int:
    """Return the position of the first degree at which a stage with these sums is within the threshold."""
    if _in_time(0, compute, weights, threshold):
        return 0
    return 1 + _first_in_time_of_several(compute, weights, threshold)


@subroutine
def _first_in_time_of_several(compute: int, weights: int, threshold: Threshold) -> int:
    """Return how many degrees behind the first one are not enough; time falls from the second one on."""
    low, high = 1, len(threshold.data_degrees)
    while low < high:
        middle = (low + high) // 2
        if _in_time(middle, compute, weights, threshold):
            high = middle
        else:
            low = middle + 1
    return low - 1


@subroutine
def _last_at_most(degrees: Int64Array, most: int) -> int:
    """Return the position of the last degree that is at most *most*, or -1."""
    low, high = 0, len(degrees)
    while low < high:
        middle = (low + high) // 2
        if degrees[middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low - 1
