"""The downsets that a re-checking search has reached: each once, found again by a hash of its ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.recheck.kernels.state import REACHED

if TYPE_CHECKING:
    from mtpp.solvers.recheck.layout import Scratch, Store


@kernel
def reach(store: Store, scratch: Scratch, words: int, level: int) -> bool:
    """Put the downset with the stage added into the store; return whether it is new there."""
    slot = _slot(store, scratch.inside, words)
    if store.table[slot] != 0:
        return False
    place = scratch.state[REACHED]
    for word in range(words):
        store.sets[place, word] = scratch.inside[word]
    store.level[place] = level
    store.table[slot] = place + 1
    scratch.state[REACHED] = place + 1
    return True


@subroutine
def _slot(store: Store, downset: NDArray[np.uint64], words: int) -> int:
    """Return the slot of a downset in the hash table, or the free one that it would have."""
    mixed = np.uint64(0)
    for word in range(words):
        mixed = (mixed ^ downset[word]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    mask = len(store.table) - 1
    slot = np.int64(mixed & np.uint64(mask))
    while store.table[slot] != 0:
        place = store.table[slot] - 1
        same = True
        for word in range(words):
            if store.sets[place, word] != downset[word]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def fill_table(store: Store, count: int) -> None:
    """Enter the first *count* downsets of a store into its hash table, which is empty."""
    for place in range(count):
        slot = _slot(store, store.sets[place], store.sets.shape[1])
        store.table[slot] = place + 1
