"""Memory that every range of consecutive ops of a chain needs, on each class of devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.graph import CostGraph
from mtpp.inference.weights import Weights
from mtpp.machine.device import Device


def memory_needs(graph: CostGraph, device: Device) -> Int64Array:
    """Return the bytes of weights, states and working memory of stages of consecutive ops.

    Parameters
    ----------
    graph
        Whose tensors all lead from an op to later ones of the file's order.

    Returns
    -------
    int64, shape (n, n + 1): of the ops from the first index to before the second; 0 where there are none. The memory of
    a range is no less than that of any range inside it.

    Notes
    -----
    O(n²·(1 + t)) time with t tensors that are read later than by the next op, or inputs that several ops read.
    """
    n = len(graph.op_names)
    needs = (
        _sums(graph.param_bytes) + _read_once(graph.weights, n) + device.sequences * _read_once(graph.states.held, n)
    )
    peaks = device.activation_reserve_bytes if device.peak == "reserve" else _peaks(graph)
    stop = np.arange(n + 1)
    return np.where(stop > np.arange(n)[:, None], needs + peaks, 0)


def _sums(sizes: Int64Array) -> Int64Array:
    """Return the sums over ranges, int64, shape (n, n + 1)."""
    until = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return until[None, :] - until[:-1, None]


def _read_once(held: Weights, n: int) -> Int64Array:
    """Return the bytes of what several ops may read, each once for a range, int64, shape (n, n + 1)."""
    own, total = np.zeros(n, dtype=np.int64), np.zeros((n, n + 1), dtype=np.int64)
    stop = np.arange(n + 1)
    for size, readers in zip(held.bytes.tolist(), held.reader_lists(), strict=True):
        if len(readers) == 1:
            own[readers[0]] += size
        else:
            total += size * (_next(readers, n)[:, None] < stop)
    return total + _sums(own)


def _next(places: Iterable[int], n: int) -> Int64Array:
    """Return the first of some ops at or after each op, int64, shape (n,); n + 1 where there is none."""
    found = np.full(n + 1, n + 1, dtype=np.int64)
    found[list(places)] = list(places)
    return np.minimum.accumulate(found[::-1])[::-1][:n]


def _last(places: Iterable[int], n: int) -> Int64Array:
    """Return the last of some ops before each place from 0 to n, int64, shape (n + 1,); -1 where there is none."""
    found = np.full(n + 1, -1, dtype=np.int64)
    found[[place + 1 for place in places]] = list(places)
    return np.maximum.accumulate(found)


def _peaks(graph: CostGraph) -> Int64Array:
    """Return the most bytes live at once, int64, shape (n, n + 1).

    A tensor between neighbours, and an input of one op, is live where it is touched, whatever the range. Others are
    live from their first op in the range to the last, or to the end of the range where they are needed behind it.
    """
    n = len(graph.op_names)
    steady, spans = _live(graph)
    if not spans:
        rows = np.triu(np.broadcast_to(steady, (n, n)))
        return np.concatenate([np.zeros((n, 1), dtype=np.int64), np.maximum.accumulate(rows, axis=1)], axis=1)
    found = np.zeros((n, n + 1), dtype=np.int64)
    op, stop = np.arange(n)[None, :], np.arange(n + 1)[:, None]
    ends = [(size, _next(pins, n), _last(pins, n), made, last) for size, pins, made, last in spans]
    for start in range(n):
        live = np.broadcast_to(steady, (n + 1, n)).copy()
        for size, following, before, made, last in ends:
            until = before[:, None]
            if made >= start:  # kept to the end where it is made here and needed behind the range
                until = np.where((stop > made) & (stop <= last), stop - 1, until)
            live += size * ((op >= following[start]) & (op <= until))
        found[start] = np.where((op >= start) & (op < stop), live, 0).max(axis=1)
    return found


def _live(graph: CostGraph) -> tuple[Int64Array, list[tuple[int, Sequence[int], int, int]]]:
    """Return the bytes of each op that do not depend on the range, and the spans of those that do.

    Each of the latter with its size, the ops that touch it, the op that makes it or -1, and its last reader: n for a
    result.
    """
    n = len(graph.op_names)
    steady = np.zeros(n, dtype=np.int64)
    spans: list[tuple[int, Sequence[int], int, int]] = []
    results = set(graph.results)
    offsets, readers = graph.consumer_offsets.tolist(), graph.consumers.tolist()
    sizes, makers = np.maximum(graph.tensor_bytes, 0).tolist(), graph.tensor_producer.tolist()
    for t, (size, made) in enumerate(zip(sizes, makers, strict=True)):
        pins = sorted([made, *readers[offsets[t] : offsets[t + 1]]])
        last = n if t in results else pins[-1]
        if last - made <= 1:
            steady[pins] += size
        else:
            spans.append((size, pins, made, last))
    kept = set(graph.states.inputs)
    inputs = graph.inputs
    for name, size, touched in zip(inputs.names, inputs.bytes.tolist(), inputs.reader_lists(), strict=True):
        if name in kept:
            continue
        if len(touched) == 1:
            steady[touched] += size
        else:
            spans.append((size, sorted(touched), -1, max(touched)))
    return steady, spans
