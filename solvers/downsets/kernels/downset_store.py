"""The downsets that a search has reached: each once, found again by a hash of its ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from mtpp.solvers.jit import kernel, subroutine

if TYPE_CHECKING:
    from mtpp.array_types import Int32Array
    from mtpp.solvers.downsets.downset_arrays import WordArray


class HashedDownsets(Protocol):
    """Fields of a store that downsets are found by again."""

    @property
    def bits(self) -> WordArray: ...  # noqa: D102
    @property
    def keys(self) -> WordArray: ...  # noqa: D102
    @property
    def table(self) -> Int32Array: ...  # noqa: D102


@subroutine
def keep_downset(new: int, store: HashedDownsets) -> int:
    """Enter downset *new*, whose row and key are filled in, into the table; return the number that it had before.

    That is *new* if it was not there.
    """
    key = store.keys[new]
    mask = len(store.table) - 1
    slot = np.int64(key & np.uint64(mask))
    while store.table[slot] >= 0:
        other = store.table[slot]
        if store.keys[other] == key:
            words = store.bits.shape[1]
            same = 0
            while same < words and store.bits[other, same] == store.bits[new, same]:
                same += 1
            if same == words:
                return int(other)
        slot = (slot + 1) & mask
    store.table[slot] = new
    return new


@kernel
def rebuild_table(count: int, store: HashedDownsets) -> None:
    """Fill the table, which has to be free, with the first *count* downsets, which have to differ."""
    mask = len(store.table) - 1
    for number in range(count):
        slot = np.int64(store.keys[number] & np.uint64(mask))
        while store.table[slot] >= 0:
            slot = (slot + 1) & mask
        store.table[slot] = number
