"""Topological orders made narrower by exchanges of neighbouring runs of ops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine

_LONGEST = 64
"""Ops of a run at most."""

_WIDEST = 60
"""Live tensors that a sum of powers is counted for."""


class Reads(NamedTuple):
    """Tensors that ops read and make.

    Attributes
    ----------
    offsets, maker
        Ops that make what each op reads, CSR by op, int64 and int32.
    pin_offsets, pins
        Ops of each tensor, the one that makes it first, CSR, int64 and int32; tensors that nothing reads left out.
    """

    offsets: Int64Array
    maker: Int32Array
    pin_offsets: Int64Array
    pins: Int32Array


@subroutine
def _weight(place: Int64Array, reads: Reads, change: Int64Array) -> float:
    """Return the sum of 2 to the number of live tensors, over all places; O(n + pins)."""
    change[:] = 0
    for t in range(len(reads.pin_offsets) - 1):
        begin = reads.pin_offsets[t]
        last = np.int64(0)
        for e in range(begin + 1, reads.pin_offsets[t + 1]):
            last = max(last, place[reads.pins[e]])
        change[place[reads.pins[begin]]] += 1
        change[last] -= 1
    total = 0.0
    live = np.int64(0)
    for i in range(len(place)):
        live += change[i]
        total += float(np.int64(1) << min(live, np.int64(_WIDEST)))
    return total


@kernel
def exchange_runs(order: Int32Array, reads: Reads, seed: int, trials: int) -> float:
    """Exchange neighbouring runs of ops where no more states may be met then; return the sum that measures them.

    Parameters
    ----------
    order
        Ops, int32, shape (n,); topological before and after, changed in place.
    trials
        Exchanges that are looked at.

    Notes
    -----
    O(trials · (n + pins)).
    """
    n = len(order)
    np.random.seed(seed)
    place = np.empty(n, dtype=np.int64)
    for i in range(n):
        place[order[i]] = i
    change = np.zeros(n, dtype=np.int64)
    best = _weight(place, reads, change)
    held = np.empty(2 * _LONGEST, dtype=np.int32)
    for _ in range(trials):
        if n < 2:
            break
        longest = np.int64(1) << np.random.randint(0, 7)
        begin: int = int(np.random.randint(0, n - 1))
        middle: int = min(n - 1, begin + int(np.random.randint(1, longest + 1)))
        longest = np.int64(1) << np.random.randint(0, 7)
        end: int = min(n, middle + int(np.random.randint(1, longest + 1)))
        joined = False
        for i in range(middle, end):
            v = order[i]
            for e in range(reads.offsets[v], reads.offsets[v + 1]):
                if begin <= place[reads.maker[e]] < middle:
                    joined = True
                    break
            if joined:
                break
        if joined:
            continue
        size = end - begin
        held[:size] = order[begin:end]
        order[begin : begin + end - middle] = held[middle - begin : size]
        order[begin + end - middle : end] = held[: middle - begin]
        for i in range(begin, end):
            place[order[i]] = i
        found = _weight(place, reads, change)
        if found <= best:
            best = found
        else:
            order[begin:end] = held[:size]
            for i in range(begin, end):
                place[order[i]] = i
    return best
