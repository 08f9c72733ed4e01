"""A small random stream whose state is an array, so that a search can stop and go on where it was.

SplitMix64 (Steele, Lea and Flood, 2014): one 64-bit word of state, any seed is good, equal on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtpp.solvers.jit import kernel

UInt64Array = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIT = 1.0 / (1 << 53)


@kernel
def next_word(stream: UInt64Array) -> np.uint64:
    """Return the next 64 random bits of *stream*, uint64, shape (1,)."""
    stream[0] += _STEP
    word: np.uint64 = stream[0]
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@kernel
def next_float(stream: UInt64Array) -> float:
    """Return a number in [0, 1), uniform on multiples of 2^-53."""
    return np.float64(next_word(stream) >> np.uint64(11)) * _UNIT


@kernel
def next_below(stream: UInt64Array, count: int) -> int:
    """Return an integer in 0 … *count* − 1; *count* is at most 2^32, the bias below count · 2^-32."""
    return int(((next_word(stream) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))
