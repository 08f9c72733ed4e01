"""Memory layout of a downset search run again; see :mod:`mtpp.solvers.recheck.kernels.downsets`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.recheck.arrays import ClaimArrays, GroundArrays
from mtpp.solvers.recheck.kernels.state import COLUMNS


class Store(NamedTuple):
    """The downsets reached, in the order in which they were: those of lower level first.

    Attributes
    ----------
    sets
        A bit per op, uint64, shape (capacity, words).
    level
        int32, shape (capacity,).
    table
        Hash table of 1 + place in the store, 0 where free; int64, a power of two long.
    """

    sets: NDArray[np.uint64]
    level: Int32Array
    table: Int64Array


class Scratch(NamedTuple):
    """What the search keeps of the downset that it goes on from.

    Attributes
    ----------
    state
        Where the search is, int64; see :mod:`mtpp.solvers.recheck.kernels.state`.
    status
        Of each op: before the stage, in it, undecided or later, uint8.
    inside
        The downset with the stage added, a bit per op, uint64.
    longest
        Work on the longest way to each op through undecided ones, int64.
    missing
        How many undecided ops each undecided op waits for, int32.
    window
        Ops that were undecided in the beginning, int32.
    listed, below
        Entries of the list of ready ops: the op, and the entry below. int32.
    trail
        Ops left since the beginning, int32.
    passed
        Those of them that were ready when they were left, int32.
    joined_readers, left_readers
        Of each tensor: how many of its readers are in the stage, and later. int32.
    first, last, touched, change
        Of the ground's tensors and steps, for peaks.
    """

    state: Int64Array
    status: NDArray[np.uint8]
    inside: NDArray[np.uint64]
    longest: Int64Array
    missing: Int32Array
    window: Int32Array
    listed: Int32Array
    below: Int32Array
    trail: Int32Array
    passed: Int32Array
    joined_readers: Int32Array
    left_readers: Int32Array
    first: Int32Array
    last: Int32Array
    touched: Int32Array
    change: Int64Array


def scratch(claim: ClaimArrays, ground: GroundArrays, words: int) -> Scratch:
    """Return scratch for one search, which begins at the first downset of the store."""
    n, m, tensors = len(claim.work), len(claim.transfer), len(ground.size)
    return Scratch(
        state=np.zeros(8, dtype=np.int64),
        status=np.zeros(n, dtype=np.uint8),
        inside=np.zeros(words, dtype=np.uint64),
        longest=np.zeros(n, dtype=np.int64),
        missing=_numbers(n),
        window=_numbers(n),
        listed=_numbers(n),
        below=_numbers(n),
        trail=_numbers(n),
        passed=_numbers(n),
        joined_readers=_numbers(m),
        left_readers=_numbers(m),
        first=_numbers(tensors),
        last=_numbers(tensors),
        touched=_numbers(tensors),
        change=np.zeros(len(ground.op_at) + 1, dtype=np.int64),
    )


def _numbers(count: int) -> Int32Array:
    return np.zeros(count, dtype=np.int32)


def nodes(op_count: int) -> Int64Array:
    """Return room for the figures of a way of *op_count* decisions, int64, a row each; the root's is the first."""
    return np.zeros((op_count + 1, COLUMNS), dtype=np.int64)
