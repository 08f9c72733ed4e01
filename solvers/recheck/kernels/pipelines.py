"""All pipelines of a model to be trained, by a dynamic programme over downsets: what ``verify --deep`` runs again.

Downsets are closed under successors: a downset is what the last stages of a pipeline hold together. For each downset
and each sum s of the degrees of data parallelism of its stages, all that matters is the fewest devices they need.
Shares no code with the planners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.recheck.kernels.stages import (
    Choices,
    crossing_edges,
    layers_between,
    least_cost,
    most_in_flight,
    options_of_stage,
    times_of_options,
)


class Downsets(NamedTuple):
    """Every downset, the empty one first and larger ones later.

    Attributes
    ----------
    members
        Bits of the layers in each, uint64, (downsets, words).
    grow_offsets, grow_to
        Downsets that are larger by one layer, CSR, int64 and int32.
    rest_devices, rest_degrees
        How many devices, and what sum of degrees, the layers outside need at least in stages below the limit of time.
    work, compute, leanest
        Of the layers inside: Σ of the least t · compute, of the least compute, and of the least a + b. int64.
    """

    members: NDArray[np.uint64]
    grow_offsets: Int64Array
    grow_to: Int32Array
    rest_devices: Int64Array
    rest_degrees: Int64Array
    work: Int64Array
    compute: Int64Array
    leanest: Int64Array


class Rules(NamedTuple):
    """What a stage, and a pipeline, may be.

    Attributes
    ----------
    devices, memory, most_degrees
        K, M, and the most that degrees of data parallelism may come to: at most K and N.
    tensor_degrees, data_degrees
        The degrees t and d, ascending, int64.
    spread
        By place of d: gradients take (d - 1) / (d · spread) of the weights.
    most_cost
        By place of d: the most that d · spread times the time of a stage may be.
    most_work, most_compute
        By m: the most that t · compute of a stage on m devices, or compute of a stage with d = m, may be. int64.
    """

    devices: int
    memory: int
    most_degrees: int
    tensor_degrees: Int64Array
    data_degrees: Int64Array
    spread: Int64Array
    most_cost: Int64Array
    most_work: Int64Array
    most_compute: Int64Array


@kernel
def search_pipelines(
    first: int, last: int, downsets: Downsets, choices: Choices, rules: Rules, fewest: Int32Array, seen: Int32Array
) -> int:
    """Go on from downsets *first* to *last* - 1; return how many stages were looked at.

    Parameters
    ----------
    fewest
        Fewest devices by downset and s, more than K where there is no pipeline; written for later downsets. int32.
    seen
        Room for one number by downset, all -1 at first.
    """
    waiting = np.empty(downsets.work.shape[0], np.int32)
    looked_at = 0
    for low in range(first, last):
        spare, least_s = _spare(low, downsets, rules, fewest)
        if spare < 1:
            continue
        seen[low] = low
        waiting[0] = low
        count = 1
        while count > 0:
            count -= 1
            inner = waiting[count]
            for g in range(downsets.grow_offsets[inner], downsets.grow_offsets[inner + 1]):
                high = downsets.grow_to[g]
                if seen[high] == low:
                    continue
                seen[high] = low
                if (
                    downsets.work[high] - downsets.work[low] > rules.most_work[spare]
                    or downsets.compute[high] - downsets.compute[low] > rules.most_compute[rules.most_degrees - least_s]
                    or downsets.leanest[high] - downsets.leanest[low] > rules.memory
                ):
                    continue  # so are all stages that hold these layers and more
                waiting[count] = high
                count += 1
                left = spare - downsets.rest_devices[high]
                if left > 0 and downsets.work[high] - downsets.work[low] <= rules.most_work[left]:
                    _add_stage(low, high, left, downsets, choices, rules, fewest)
                    looked_at += 1
    return looked_at


@subroutine
def _spare(low: int, downsets: Downsets, rules: Rules, fewest: Int32Array) -> tuple[int, int]:
    """Return how many devices are left at most once a downset is placed, and the least s that leaves any."""
    spare, least_s = 0, rules.most_degrees
    for s in range(rules.most_degrees + 1):
        left = rules.devices - fewest[low, s]
        if left >= downsets.rest_devices[low] and s + downsets.rest_degrees[low] <= rules.most_degrees:
            spare = max(spare, left)
            least_s = min(least_s, s)
    return spare, least_s


@subroutine
def _add_stage(
    low: int, high: int, left: int, downsets: Downsets, choices: Choices, rules: Rules, fewest: Int32Array
) -> None:
    """Put the layers between two downsets into a stage, with all degrees and all s that are possible."""
    layers = layers_between(downsets.members[low], downsets.members[high], choices.edge_offsets.shape[0] - 1)
    inside, edges = crossing_edges(layers, choices)
    for p in range(rules.tensor_degrees.shape[0]):
        t = rules.tensor_degrees[p]
        if t > left:
            break
        options, offsets = options_of_stage(layers, choices.offsets[p])
        if options.shape[0] == 0:
            continue
        time = times_of_options(layers, inside, options, offsets, choices)
        cost = np.empty_like(time)
        for q in range(rules.data_degrees.shape[0]):
            d = rules.data_degrees[q]
            if d * t > left or d > rules.most_degrees:
                break
            budget = rules.most_cost[q] - rules.spread[q] * edges
            for i in range(options.shape[0]):
                cost[i] = rules.spread[q] * time[i] + (d - 1) * choices.weights[options[i]]
            if least_cost(offsets, cost) > budget:
                continue
            least, largest = _range_in_flight(low, high, d, t, downsets, rules, fewest)
            if largest == 0:
                continue
            most = most_in_flight(0, least, largest, choices, options, offsets, cost, budget, rules.memory)
            for s in range(rules.most_degrees - d + 1):
                taken = fewest[low, s] + d * t
                if (s + 2 * d - 1) // d <= most and taken < fewest[high, s + d]:
                    fewest[high, s + d] = taken


@subroutine
def _range_in_flight(
    low: int, high: int, d: int, t: int, downsets: Downsets, rules: Rules, fewest: Int32Array
) -> tuple[int, int]:
    """Return the least and the largest number of micro-batches in flight that come up; twice 0 for none.

    They grow with s: so far *least* is that of the first s that leaves enough devices, and *largest* of the last.
    """
    least, largest = 0, 0
    for s in range(rules.most_degrees - d + 1):
        if fewest[low, s] + d * t + downsets.rest_devices[high] <= rules.devices:
            largest = (s + 2 * d - 1) // d
            if least == 0:
                least = largest
    return least, largest
