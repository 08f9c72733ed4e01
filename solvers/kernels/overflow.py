"""Overflow of a stage in exact int64 arithmetic (eq. 2 of Archer et al. 2024)."""

from __future__ import annotations

import numpy as np

from mtpp.graph import Int64Array
from mtpp.solvers.kernels.jit import kernel

NO_LIMIT = -1
"""First entry of the memory array where there is no fast memory, hence no overflow."""


@kernel
def ceil_scaled(count: int, numerator: int, denominator: int, chunk: int) -> int:
    """Return ⌈count · numerator / denominator⌉ without a product that leaves int64.

    *numerator* is fed in pieces of *chunk* bits, as in long division; denominator · 2^(chunk + 1) must stay below
    2^63, as must the result.
    """
    whole = count // denominator
    rest = count % denominator
    quotient = np.int64(0)
    remainder = np.int64(0)
    bits = 0
    while numerator >> bits:
        bits += chunk
    while bits > 0:
        bits -= chunk
        digit = (numerator >> bits) & ((1 << chunk) - 1)
        remainder = (remainder << chunk) + rest * digit
        quotient = (quotient << chunk) + remainder // denominator
        remainder %= denominator
    return int(whole * numerator + quotient + (1 if remainder > 0 else 0))


@kernel
def overflow_ticks(param_bytes: int, memory: Int64Array) -> int:
    """Return the overflow of a stage with that many bytes of parameters, in ticks.

    *memory* is int64, shape (4,): bytes left for parameters (or :data:`NO_LIMIT`), and numerator, denominator and
    chunk of :func:`ceil_scaled` that turn bytes into ticks.
    """
    if memory[0] == NO_LIMIT or param_bytes <= memory[0]:
        return 0
    return ceil_scaled(param_bytes - memory[0], memory[1], memory[2], memory[3])
