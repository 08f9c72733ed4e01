"""Working memory of sets of ops that run in the graph's own order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine

if TYPE_CHECKING:
    from mtpp.solvers.arrays import SlicingArrays
    from mtpp.solvers.stage_cost.cost_arrays import GroundArrays

NO_PEAK = 2**62
"""Stands for a peak above every memory."""

_ABSENT = -(2**62)
"""Live bytes at a place whose op is not in the set; sums of sizes are within ±2^61, so no sum with it looks real."""

_KEPT = np.iinfo(np.int32).min


@kernel
def peak_of_ops(places: Int32Array, count: int, ground: GroundArrays, pins_left: Int32Array) -> int:
    """Return the most bytes live at once while a stage runs its ops in the graph's order.

    Parameters
    ----------
    places
        The first *count* entries are the places of the stage's ops (of the ground, where ops were merged), ascending.
    pins_left
        Scratch of the caller, int32, one entry per tensor of *ground*: all 0 before and after.

    Notes
    -----
    O(pins of the set) time, no allocation. While a tensor waits for its first op of the set, *pins_left* holds how
    many of them there are; from then on minus those to come, or a mark if it is kept to the end.
    """
    for i in range(count):
        for e in range(ground.tensor_offsets[places[i]], ground.tensor_offsets[places[i] + 1]):
            pins_left[ground.tensors[e]] += 1
    live = np.int64(0)
    peak = np.int64(0)
    for i in range(count):
        place = places[i]
        begin, end = ground.tensor_offsets[place], ground.tensor_offsets[place + 1]
        for e in range(begin, end):
            t = ground.tensors[e]
            if pins_left[t] > 0:
                live += ground.sizes[t]
                kept = ground.producer[t] == place and pins_left[t] <= ground.consumers[t]
                pins_left[t] = _KEPT if kept else -pins_left[t]
        peak = max(peak, live)
        for e in range(begin, end):
            t = ground.tensors[e]
            if pins_left[t] != _KEPT:
                pins_left[t] += 1
                if pins_left[t] == 0:
                    live -= ground.sizes[t]
    for i in range(count):
        for e in range(ground.tensor_offsets[places[i]], ground.tensor_offsets[places[i] + 1]):
            pins_left[ground.tensors[e]] = 0
    return int(peak)


class PeakScratch(NamedTuple):
    """Arrays for :func:`window_peaks`; made by :func:`peak_scratch`, unchanged between calls but for *peaks*.

    Attributes
    ----------
    peaks
        Result: bytes by left end, int64, shape (n,).
    change, most
        A tree over places with the root at 1. By subtree: how the bytes live change from its first place to its
        last, and the most that are live at a place of the set inside, less those that are live before it.
    seen, uses, first, last
        Of each tensor: the window it was last met in, and there its consumers in the set, and the first and last
        place that it is live at.
    """

    peaks: Int64Array
    change: Int64Array
    most: Int64Array
    seen: Int32Array
    uses: Int32Array
    first: Int32Array
    last: Int32Array


@kernel
def peak_scratch(op_count: int, ground: GroundArrays | None) -> PeakScratch | None:
    """Return scratch for one pass over an order, None where no peaks in order are needed."""
    if ground is None:
        return None
    leaves = 1
    while leaves < len(ground.places):
        leaves *= 2
    tensors = len(ground.sizes)
    return PeakScratch(
        np.zeros(op_count, dtype=np.int64),
        np.zeros(2 * leaves, dtype=np.int64),
        np.full(2 * leaves, _ABSENT, dtype=np.int64),
        np.zeros(tensors, dtype=np.int32),
        np.zeros(tensors, dtype=np.int32),
        np.zeros(tensors, dtype=np.int32),
        np.zeros(tensors, dtype=np.int32),
    )


@kernel
def window_peaks(
    order: Int32Array,
    left: int,
    right: int,
    most_held: int,
    slicing: SlicingArrays,
    ground: GroundArrays | None,
    scratch: PeakScratch,
) -> None:
    """Set ``scratch.peaks[l]`` to the working memory of the ops at l … *right* of *order*, for l = *left* … *right*.

    Whatever the order that is cut, a stage runs its ops in the graph's own. From right to left, each op joins the
    set. All its consumers in the set are there before it, so a tensor that it makes becomes live at its place and,
    if an op outside reads it, stays so to the end; one that it reads is live between the first and last consumer met.
    Changes are kept at the places where they happen, and the tree above them adds them up: the greatest sum from
    the left is the peak.

    Parameters
    ----------
    most_held
        A stage that needs more bytes is of no interest: its peak, and those of longer ones, may become
        :data:`NO_PEAK`.

    Notes
    -----
    O(pins·log n) time for the pins of the ops in the window.
    """
    assert ground is not None
    place_offsets, places = ground.place_offsets, ground.places
    tensor_offsets, tensors = ground.tensor_offsets, ground.tensors
    producer, consumers, sizes = ground.producer, ground.consumers, ground.sizes
    seen, uses, first, last = scratch.seen, scratch.uses, scratch.first, scratch.last
    change, most = scratch.change, scratch.most
    leaves = len(most) // 2
    params = 0
    least = 0
    begin = right
    while begin >= left:
        op = order[begin]
        params += slicing.costs.param_bytes[op]
        least = max(least, ground.least_peaks[op])
        if params + least > most_held:
            break
        for i in range(place_offsets[op + 1] - 1, place_offsets[op] - 1, -1):
            place = places[i]
            leaf = leaves + place
            meeting = leaf  # the highest node at which the path of another changed leaf joins this one's
            begins = 0  # bytes that begin to be live here
            ends = 0  # bytes that are no longer live after it
            for e in range(tensor_offsets[place], tensor_offsets[place + 1]):
                t = tensors[e]
                size = sizes[t]
                if seen[t] != right + 1:
                    seen[t] = right + 1
                    uses[t] = 0
                if producer[t] == place:
                    begins += size
                    if uses[t] > 0:
                        meeting = min(meeting, _change(leaves + first[t], -size, 0, leaf, change, most))
                        if uses[t] < consumers[t]:
                            meeting = min(meeting, _change(leaves + last[t], 0, -size, leaf, change, most))
                    elif consumers[t] == 0:
                        ends += size
                else:
                    if uses[t] == 0:
                        begins += size
                        ends += size
                        first[t] = place
                        last[t] = place
                    elif place < first[t]:
                        begins += size
                        meeting = min(meeting, _change(leaves + first[t], -size, 0, leaf, change, most))
                        first[t] = place
                    elif place > last[t]:
                        ends += size
                        meeting = min(meeting, _change(leaves + last[t], 0, -size, leaf, change, most))
                        last[t] = place
                    uses[t] += 1
            change[leaf] = begins - ends
            most[leaf] = begins
            node = leaf >> 1
            while node > 0 and (_sum_up(node, change, most) or node > meeting):
                node >>= 1
        scratch.peaks[begin] = most[1]
        begin -= 1
    for longer in range(left, begin + 1):
        scratch.peaks[longer] = NO_PEAK
    for member in range(begin + 1, right + 1):
        op = order[member]
        for i in range(place_offsets[op], place_offsets[op + 1]):
            node = leaves + places[i]
            while node > 0 and most[node] != _ABSENT:
                change[node] = 0
                most[node] = _ABSENT
                node >>= 1


@subroutine
def _change(leaf: int, begins: int, ends: int, joining: int, change: Int64Array, most: Int64Array) -> int:
    """Add bytes that begin to be live at a leaf's place, and bytes that are no longer live after it.

    Sums up only as far as to the path of the leaf *joining*, and returns the node of it that comes next.
    """
    change[leaf] += begins - ends
    most[leaf] += begins
    node = leaf
    while node >> 1 != joining >> 1:
        node >>= 1
        joining >>= 1
        _sum_up(node, change, most)
    return node >> 1


@subroutine
def _sum_up(node: int, change: Int64Array, most: Int64Array) -> bool:
    """Recompute an inner node from its children; return whether it is another than before."""
    total = change[2 * node] + change[2 * node + 1]
    highest = max(most[2 * node], change[2 * node] + most[2 * node + 1])
    differs = bool(total != change[node] or highest != most[node])
    change[node] = total
    most[node] = highest
    return differs
