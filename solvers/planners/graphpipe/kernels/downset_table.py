"""Hash table of downsets by their codes, of several words each, and the layers that a downset reaches of branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtpp.array_types import Int32Array, Int64Array, UInt64Array
from mtpp.solvers.jit import inlined


@inlined
def longer(array: Any) -> Any:
    """Return an array with twice the rows."""
    longer = np.empty((2 * array.shape[0], *array.shape[1:]), dtype=array.dtype)
    longer[: array.shape[0]] = array
    return longer


@inlined
def place(code: UInt64Array, codes: UInt64Array, table: Int32Array) -> np.int64:
    """Return where a downset is in the hash table, or the empty place where it belongs."""
    mask = len(table) - 1
    mixed = np.uint64(0)
    for w in range(len(code)):
        mixed = (mixed ^ code[w]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    at = np.int64(mixed & np.uint64(mask))
    while table[at] >= 0:
        same = True
        for w in range(len(code)):
            if codes[table[at], w] != code[w]:
                same = False
        if same:
            break
        at = (at + 1) & mask
    return at


@inlined
def keep_reaches(reaches: Int32Array, now: Int64Array, group_start: Int64Array) -> None:
    """Write the layers reached of each branch, those of equal branches in descending order."""
    for g in range(len(group_start) - 1):
        first, last = group_start[g], group_start[g + 1]
        for b in range(first, last):
            reached, at = now[b], b
            while at > first and reaches[at - 1] < reached:
                reaches[at] = reaches[at - 1]
                at -= 1
            reaches[at] = reached
