"""Working memory of sets of ops that run in the graph's own order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtpp.graph import Int32Array, Int64Array
from mtpp.solvers.kernels.jit import kernel

if TYPE_CHECKING:
    from mtpp.solvers.arrays import SlicingArrays
    from mtpp.solvers.memory_arrays import GroundArrays

NO_PEAK = 2**62
"""Stands for a peak above every memory."""

_ABSENT = -(2**62)
"""Live bytes at a place whose op is not in the set; sums of sizes are within ±2^61, so no sum with it looks real."""

_KEPT = np.iinfo(np.int32).min


@kernel
def peak_of_ops(places: Int32Array, count: int, ground: GroundArrays | None, pins_left: Int32Array) -> int:
    """Return the most bytes live at once while a stage runs its ops in the graph's order.

    Parameters
    ----------
    places
        The first *count* entries are the places of the stage's ops (of the ground, where ops were merged), ascending.
    ground
        None gives 0, and a kernel in which nothing else is compiled.
    pins_left
        Scratch of the caller, int32, one entry per tensor of *ground*: all 0 before and after.

    Notes
    -----
    O(pins of the set) time, no allocation. While a tensor waits for its first op of the set, *pins_left* holds how
    many of them there are; from then on minus those to come, or a mark if it is kept to the end.
    """
    if ground is None:
        return 0
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
    params = 0
    least = 0
    begin = right
    while begin >= left:
        op = order[begin]
        params += slicing.param_bytes[op]
        least = max(least, ground.least_peaks[op])
        if params + least > most_held:
            break
        for i in range(ground.place_offsets[op + 1] - 1, ground.place_offsets[op] - 1, -1):
            _join(ground.places[i], right + 1, ground, scratch)
        scratch.peaks[begin] = scratch.most[1]
        begin -= 1
    for longer in range(left, begin + 1):
        scratch.peaks[longer] = NO_PEAK
    leaves = len(scratch.most) // 2
    for member in range(begin + 1, right + 1):
        op = order[member]
        for i in range(ground.place_offsets[op], ground.place_offsets[op + 1]):
            node = leaves + ground.places[i]
            while node > 0 and scratch.most[node] != _ABSENT:
                scratch.change[node] = 0
                scratch.most[node] = _ABSENT
                node >>= 1


@kernel
def _join(place: int, window: int, ground: GroundArrays, scratch: PeakScratch) -> None:
    """Let the op at *place* join the set."""
    uses, first, last = scratch.uses, scratch.first, scratch.last
    begins = 0
    ends = 0
    for e in range(ground.tensor_offsets[place], ground.tensor_offsets[place + 1]):
        t = ground.tensors[e]
        size = ground.sizes[t]
        if scratch.seen[t] != window:
            scratch.seen[t] = window
            uses[t] = 0
        if ground.producer[t] == place:
            begins += size
            if uses[t] > 0:
                _change(first[t], -size, 0, scratch)
                if uses[t] < ground.consumers[t]:
                    _change(last[t], 0, -size, scratch)
            elif ground.consumers[t] == 0:
                ends += size
        else:
            if uses[t] == 0:
                begins += size
                ends += size
                first[t] = place
                last[t] = place
            elif place < first[t]:
                begins += size
                _change(first[t], -size, 0, scratch)
                first[t] = place
            elif place > last[t]:
                ends += size
                _change(last[t], 0, -size, scratch)
                last[t] = place
            uses[t] += 1
    leaf = len(scratch.most) // 2 + place
    scratch.most[leaf] = 0
    _change(place, begins, ends, scratch)


@kernel
def _change(place: int, begins: int, ends: int, scratch: PeakScratch) -> None:
    """Add bytes that begin to be live at *place*, and bytes that end to be live after it."""
    change, most = scratch.change, scratch.most
    node = len(most) // 2 + place
    change[node] += begins - ends
    most[node] += begins
    node >>= 1
    while node > 0:
        change[node] = change[2 * node] + change[2 * node + 1]
        most[node] = max(most[2 * node], change[2 * node] + most[2 * node + 1])
        node >>= 1
