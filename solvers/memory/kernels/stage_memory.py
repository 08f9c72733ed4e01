"""Memory cost of a stage in exact int64 arithmetic (eq. 2 of Archer et al. 2024, and a hard limit)."""

from __future__ import annotations

import numpy as np

from mtpp.solvers.jit import kernel
from mtpp.solvers.memory.memory_arrays import UNLIMITED_BYTES, MemoryArrays

NEVER = 2**62
"""Cost of a stage above the hard limit: more than k stages can cost together, and still no sum with it wraps."""


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
def stage_memory_cost(param_bytes: int, peak_bytes: int, memory: MemoryArrays) -> int:
    """Return what a non-empty stage with these bytes of parameters and activations pays, in ticks.

    Returns
    -------
    Its overflow, or :data:`NEVER` if it is above the hard limit. Grows with both sizes. A peak of up to 2^62 that is
    no real one is above any hard limit.
    """
    held = param_bytes + peak_bytes
    if held > memory.limit_bytes:
        return NEVER
    if held <= memory.fast_bytes:
        return 0
    return ceil_scaled(held - memory.fast_bytes, memory.numerator, memory.denominator, memory.chunk)


@kernel
def most_held(cutoff: int, memory: MemoryArrays) -> int:
    """Return bytes above which a stage pays *cutoff* ticks or more for its memory alone."""
    # One part in 10⁹ more than overflow_ticks⁻¹(cutoff): far above what a float loses, and harmless.
    streamed = (float(cutoff) / memory.numerator + 1.0) * memory.denominator * (1.0 + 1e-9)
    if streamed >= UNLIMITED_BYTES - memory.fast_bytes:
        return memory.limit_bytes
    return min(memory.limit_bytes, memory.fast_bytes + int(streamed))
