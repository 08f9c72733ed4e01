"""Ops that may move to the stage of one neighbour: the rules for pairs of :mod:`mtpp.solvers.reduction.reduction`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine

DOWN, UP = 0, 1
"""Which way an op moves: to an op that reads from it, or to one that it reads from."""


class MergeArrays(NamedTuple):
    """What the rules need of an instance.

    Attributes
    ----------
    charge
        What the stage that an op moves to pays at most for running it; −1 if the op must not move; int64, shape (n,).
    cut
        Transfers of all tensors of an op that have a reader, int64.
    transfer, pin_offsets, pins
        Tensors, as in the instance.
    op_offsets, op_tensors
        Tensors of each op in ascending order, CSR, int64 and int32.
    position
        Place of each op in a topological order, int32.
    """

    charge: Int64Array
    cut: Int64Array
    transfer: Int64Array
    pin_offsets: Int64Array
    pins: Int32Array
    op_offsets: Int64Array
    op_tensors: Int32Array
    position: Int32Array


class Search(NamedTuple):
    """Working space of a search for paths: ops seen and ops looked for by the search's number, and a queue."""

    seen: Int32Array
    wanted: Int32Array
    queue: Int32Array


@kernel
def find_pairs(
    graph: MergeArrays, allowed: NDArray[np.uint8], steps: int, target: Int32Array, rule: Int32Array, root: Int32Array,
    search: Search,
) -> None:  # fmt: skip
    """Find for each op a neighbour whose stage it may move to.

    Parameters
    ----------
    allowed
        Whether each of four rules may be used: down to the only reader, up to the only producer, down to the first of
        several readers, up to the last of several producers.
    steps
        Pins that a search for paths may look at, for which there has to be room in *search*.
    target, rule
        Changed: the op that each op moves to, from itself, and which of the four rules says so, from any number below
        0; int32, shape (n,). Following the moves leads to an op that stays.
    root
        Working space: 0 … n − 1 at first.

    Notes
    -----
    O(pins·log pins + ops·*steps*) time.
    """
    for op in range(len(graph.charge)):
        if graph.charge[op] < 0:
            continue
        for way in range(2):
            if not (allowed[way] or allowed[2 + way]):
                continue
            leader, only = nearest(graph, op, way)
            if leader < 0 or not allowed[way if only else 2 + way]:
                continue
            if graph.charge[op] + graph.cut[op] > _shared(graph, op, leader):
                continue
            if not only and not _beyond(graph, op, leader, way, search, 2 * op + way, steps):
                continue
            if _root(root, leader) == op:
                continue
            target[op] = leader
            rule[op] = way if only else 2 + way
            root[op] = leader
            break


@kernel
def across(graph: MergeArrays, tensor: int, op: int, way: int) -> tuple[int, int]:
    """Return where the pins begin and end to which *tensor* leads from *op* on that way."""
    begin = graph.pin_offsets[tensor]
    made_here = graph.pins[begin] == op
    if made_here == (way == UP):
        return 0, 0
    return (begin + 1, graph.pin_offsets[tensor + 1]) if made_here else (begin, begin + 1)


@kernel
def nearest(graph: MergeArrays, op: int, way: int) -> tuple[int, bool]:
    """Return the first op that reads from *op*, or the last that it reads from, and whether there is no other.

    −1 and False if there is none.
    """
    best = -1
    only = True
    for i in range(graph.op_offsets[op], graph.op_offsets[op + 1]):
        begin, end = across(graph, graph.op_tensors[i], op, way)
        for p in range(begin, end):
            other = graph.pins[p]
            if best < 0:
                best = other
            elif other != best:
                only = False
                if (graph.position[other] < graph.position[best]) == (way == DOWN):
                    best = other
    return best, only and best >= 0


@subroutine
def _shared(graph: MergeArrays, op: int, leader: int) -> int:
    """Return the transfers of the tensors of *op* that *leader* has too, twice if nobody else has them."""
    total = 0
    begin = graph.op_offsets[leader]
    for i in range(graph.op_offsets[op], graph.op_offsets[op + 1]):
        t = graph.op_tensors[i]
        low = begin
        high = graph.op_offsets[leader + 1]
        while low < high:
            middle = (low + high) // 2
            if graph.op_tensors[middle] < t:
                low = middle + 1
            else:
                high = middle
        if low < graph.op_offsets[leader + 1] and graph.op_tensors[low] == t:
            pins = graph.pin_offsets[t + 1] - graph.pin_offsets[t]
            total += 2 * graph.transfer[t] if pins == 2 else graph.transfer[t]
            begin = low
    return total


@subroutine
def _beyond(graph: MergeArrays, op: int, leader: int, way: int, search: Search, number: int, steps: int) -> bool:
    """Tell whether all other neighbours of *op* on that side lie beyond *leader*; False if that takes too long."""
    left = 0
    farthest = graph.position[leader]
    for i in range(graph.op_offsets[op], graph.op_offsets[op + 1]):
        begin, end = across(graph, graph.op_tensors[i], op, way)
        for p in range(begin, end):
            other = graph.pins[p]
            if other != leader and search.wanted[other] != number:
                search.wanted[other] = number
                left += 1
                if (graph.position[other] > farthest) == (way == DOWN):
                    farthest = graph.position[other]
                if left > steps:
                    return False
    search.seen[leader] = number
    search.queue[0] = leader
    first, count, taken = 0, 1, 0
    while first < count:
        here = int(np.int64(search.queue[first]))  # the type of op, or across() compiles once more
        first += 1
        for i in range(graph.op_offsets[here], graph.op_offsets[here + 1]):
            begin, end = across(graph, graph.op_tensors[i], here, way)
            taken += 1 + end - begin
            if taken > steps:
                return False
            for p in range(begin, end):
                other = graph.pins[p]
                if search.seen[other] == number:
                    continue
                position = graph.position[other]
                if position > farthest if way == DOWN else position < farthest:
                    continue
                search.seen[other] = number
                if search.wanted[other] == number:
                    left -= 1
                    if left == 0:
                        return True
                search.queue[count] = other
                count += 1
    return False


@subroutine
def _root(root: Int32Array, op: int) -> int:
    """Return the op that stays at the end of the moves that begin with *op*; halves the way."""
    while root[op] != op:
        root[op] = root[root[op]]
        op = root[op]
    return op
