"""A claim as the kernel of its search takes it; see :mod:`mtpp.solvers.recheck.kernels.downsets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.recheck.claim import DownsetClaim, StageMemory, members

LARGEST_TOTAL = 2**61
"""Ticks and bytes that all ops and tensors may come to, for sums in 64 bits; a link may have as many bytes per s."""

UNLIMITED_BYTES = 2**62 - 1
"""Stands for a memory that nothing can fill."""

_BLOCK = 1024


class ClaimArrays(NamedTuple):
    """Ops and tensors of a claim, and its limits.

    Attributes
    ----------
    work, param_bytes, least_peak
        Of each op; the last is what the activations of any stage with the op come to at least. int64.
    following
        Work of each op and of all that waits for it, int64.
    giver
        1 for ops that could be added for nothing, where that counts; else 0. uint8.
    order
        Topological order, by falling *following*, int32.
    transfer, owed, maker
        Of each tensor: ticks of a stage that cuts it, the least that a later stage loses for it, and the op that makes
        it; int64, int64, int32. On equal devices the first two are the same.
    made_offsets, made, read_offsets, read
        Tensors that each op makes, and reads, CSR.
    after_offsets, after, before_offsets, before
        Ops that read from each op, by rising *following*, and those that it reads from, CSR.
    rest_ticks, rest_bytes
        By level of a downset: what the stages after the next one can take in ticks, and in bytes of parameters. int64.
    both_ticks
        By level: what the next stage and those after it can take together in ticks, int64.
    weight, capacity, rest_weight
        Of each op; what a stage holds at most, one item; and by level, what the stages after the next one do. int64.
    shared, shared_offsets, shared_readers
        What a stage holds whole: bytes, and the op whose parameters have them, −1 for none; int64, shape (w, 2). Ops
        that read each, CSR.
    """

    work: Int64Array
    param_bytes: Int64Array
    least_peak: Int64Array
    following: Int64Array
    giver: NDArray[np.uint8]
    order: Int32Array
    transfer: Int64Array
    owed: Int64Array
    maker: Int32Array
    made_offsets: Int64Array
    made: Int32Array
    read_offsets: Int64Array
    read: Int32Array
    after_offsets: Int64Array
    after: Int32Array
    before_offsets: Int64Array
    before: Int32Array
    rest_ticks: Int64Array
    rest_bytes: Int64Array
    both_ticks: Int64Array
    shared: Int64Array
    shared_offsets: Int64Array
    shared_readers: Int32Array
    weight: Int64Array
    capacity: Int64Array
    rest_weight: Int64Array


class Limits(NamedTuple):
    """What one stage may be.

    Attributes
    ----------
    ticks
        It costs at most that much.
    last_level
        Downsets above this level are not expanded.
    fast_bytes, most_bytes
        What exceeds the first is streamed at *bandwidth* / *parts* bytes per second; no stage may exceed the second.
    reserve
        Activations of every stage, where they are not counted.
    counted
        Whether activations have to be counted in the graph's order.
    """

    ticks: int
    last_level: int
    fast_bytes: int
    most_bytes: int
    bandwidth: int
    parts: int
    reserve: int
    counted: bool


class GroundArrays(NamedTuple):
    """Tensors that take memory in the graph as it was before merges; empty where activations are not counted.

    Attributes
    ----------
    op_at
        The merged op that the op at each place of the graph's order went into, int32.
    tensor_offsets, tensors
        Tensors that the op at each place touches, CSR.
    size, maker_op, pins
        Of each tensor: its bytes, the merged op that makes it, and how many ops of the graph touch it: one more for a
        result, which stays where it was made, and none for an input, which no op makes.
    """

    op_at: Int32Array
    tensor_offsets: Int64Array
    tensors: Int32Array
    size: Int64Array
    maker_op: Int32Array
    pins: Int32Array


def fits_arrays(claim: DownsetClaim) -> bool:
    """Tell whether all sums of a claim stay within 64 bits."""
    memory = claim.memory
    held = sum(claim.param_bytes) + claim.kept(claim.everything) + memory.most_activations
    ticks = sum(claim.work) + 2 * sum(edge.transfer for edge in claim.edges) + memory.overflow(held)
    return max(ticks, held * memory.parts, memory.bandwidth, sum(claim.weights)) < LARGEST_TOTAL


def claim_arrays(claim: DownsetClaim, onward: Sequence[int], least: Sequence[int]) -> ClaimArrays:
    """Return the arrays of a claim whose sums stay within 64 bits.

    Parameters
    ----------
    onward
        Work of each op and of all that follows it.
    least
        What has to cross from each stage to later ones (:mod:`mtpp.solvers.recheck.crossings`).
    """
    n = claim.op_count
    made: list[list[int]] = [[] for _ in range(n)]
    read: list[list[int]] = [[] for _ in range(n)]
    after: list[set[int]] = [set() for _ in range(n)]
    for t, edge in enumerate(claim.edges):
        made[edge.maker].append(t)
        after[edge.maker].update(edge.readers)
        for v in edge.readers:
            read[v].append(t)
    order = sorted(claim.order, key=onward.__getitem__, reverse=True)  # stable: ties stay in topological order
    place = {v: i for i, v in enumerate(order)}
    levels = range(max(1, claim.stages - 1))
    transfer = _int64([edge.transfer for edge in claim.edges])
    all_ticks = sum(claim.work) + sum(edge.transfer for edge in claim.edges)
    givers = claim.givers if claim.maximal else 0
    rest_ticks = [max(-1, min(claim.rest_ticks(level, least), all_ticks)) for level in levels]
    return ClaimArrays(
        _int64(claim.work),
        _int64(claim.param_bytes),
        _int64(_least_peaks(claim.memory, n)),
        _int64(onward),
        np.array([givers >> v & 1 for v in range(n)], dtype=np.uint8),
        _int32(order),
        transfer,
        transfer,
        _int32([edge.maker for edge in claim.edges]),
        *_rows(made),
        *_rows(read),
        *_rows([sorted(ops, key=place.__getitem__, reverse=True) for ops in after]),
        *_rows([list(members(ops)) for ops in claim.before]),
        _int64(rest_ticks),
        _int64([min(claim.rest_bytes(level), sum(claim.param_bytes)) for level in levels]),
        _int64([claim.limit + ticks for ticks in rest_ticks]),
        _int64([value for row in claim.shared for value in (row.size, -1 if row.home is None else row.home)]).reshape(
            -1, 2
        ),
        *_rows([list(members(row.readers)) for row in claim.shared]),
        _int64(claim.weights or [0] * n),
        _int64([min(claim.capacity, sum(claim.weights))]),
        _int64([min(claim.rest_weight(level), sum(claim.weights)) for level in levels]),
    )


def stage_limits(claim: DownsetClaim, matters: bool | None = None) -> Limits:
    """Return what one stage of a claim may be; *matters* tells whether memory does, None: as the claim says."""
    memory = claim.memory
    matters = claim.memory_matters if matters is None else matters
    fast, most = (
        UNLIMITED_BYTES if size is None or not matters else min(size, UNLIMITED_BYTES)
        for size in (memory.fast_bytes, memory.limit_bytes)
    )
    counted = memory.reserve is None and matters
    reserve = memory.reserve if memory.reserve is not None and matters else 0
    return Limits(claim.limit, claim.stages - 2, fast, most, memory.bandwidth, memory.parts, reserve, counted)


def ground_arrays(claim: DownsetClaim, matters: bool | None = None) -> GroundArrays:
    """Return what activations in the graph's order depend on; *matters* as in :func:`stage_limits`; O(pins)."""
    op_at, tensors = (claim.memory.op_at, claim.memory.ground) if stage_limits(claim, matters).counted else ((), ())
    touched: list[list[int]] = [[] for _ in op_at]
    for t, tensor in enumerate(tensors):
        for place in tensor.touched:
            touched[place].append(t)
    return GroundArrays(
        _int32(op_at),
        *_rows(touched),
        _int64([tensor.size for tensor in tensors]),
        _int32([0 if tensor.maker is None else op_at[tensor.maker] for tensor in tensors]),
        _int32([0 if tensor.maker is None else 1 + tensor.kept + len(tensor.readers) for tensor in tensors]),
    )


def work_around(claim: DownsetClaim) -> tuple[list[int], list[int]]:
    """Return the work of each op and of all that leads to it, and of it and all that follows, however many ways do.

    O(n·m / 1024) operations on arrays; the claim's sums have to stay within 64 bits.
    """
    n = claim.op_count
    work = np.array(claim.work, dtype=np.int64)
    sums = []
    for neighbours, order in ((claim.before, claim.order), (claim.after, claim.order[::-1])):
        total = np.zeros(n, dtype=np.int64)
        for begin in range(0, n, _BLOCK):
            end = min(n, begin + _BLOCK)
            reached = np.zeros((n, end - begin), dtype=np.bool_)
            for v in order:
                if begin <= v < end:
                    reached[v, v - begin] = True
                for u in members(neighbours[v]):
                    reached[v] |= reached[u]
            total += reached.astype(np.int64) @ work[begin:end]
        sums.append([int(value) for value in total])
    return sums[0], sums[1]


def _least_peaks(memory: StageMemory, op_count: int) -> list[int]:
    """Return what the activations of any stage with an op come to at least.

    Counted in order, all tensors that an op of the graph reads or makes are live while it runs.
    """
    live = [0] * len(memory.op_at)
    for tensor in memory.ground:
        for place in tensor.touched:
            live[place] += tensor.size
    least = [0] * op_count
    for place, op in enumerate(memory.op_at):
        least[op] = max(least[op], live[place])
    return least


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Int64Array, Int32Array]:
    """Return rows as CSR: offsets and items."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return offsets, _int32([item for row in rows for item in row])


def _int64(values: Iterable[int]) -> Int64Array:
    return np.array(list(values), dtype=np.int64)


def _int32(values: Iterable[int]) -> Int32Array:
    return np.array(list(values), dtype=np.int32)
