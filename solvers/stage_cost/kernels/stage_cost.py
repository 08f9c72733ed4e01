"""Cost of a stage, f_j(S) of :mod:`mtpp.inference.stage_cost`, by its parts, in exact int64 arithmetic.

A search keeps the sums of work and transfers of its stages up to date, by the ticks of each op and tensor on the class
of the stage's device; :func:`stage_ticks` adds the memory (eq. 2 of Archer et al. 2024, and a hard limit).
"""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.stage_cost.cost_arrays import (
    CHUNK,
    DENOMINATOR,
    FAST_BYTES,
    LIMIT_BYTES,
    NUMERATOR,
    SPLIT,
    UNIT,
    UNLIMITED_BYTES,
    CostRows,
    MemoryArrays,
)

EQUAL = 0
"""Class of all devices, in kernels for devices that are equal."""

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


@subroutine
def row_begin(rows: Int64Array | None, stage: int) -> int:
    """Return the offset of a stage's row, or its class; 0 if *rows* is None."""
    if rows is None:
        return 0
    return int(rows[stage])


@inlined
def work_ticks(op: int, stage: int, costs: CostRows) -> int:
    """Return the work of an op on the device of a stage."""
    return int(costs.work[row_begin(costs.work_row, stage) + op])


@inlined
def transfer_ticks(tensor: int, stage: int, costs: CostRows) -> int:
    """Return what a stage pays for a tensor that it cuts."""
    return int(costs.transfer[row_begin(costs.transfer_row, stage) + tensor])


@inlined
def stage_ticks(paid: int, param_bytes: int, peak_bytes: int, c: int, memory: MemoryArrays) -> int:
    """Return f_j(S) of a stage that is not empty, on a device of class *c*, in ticks.

    Parameters
    ----------
    paid
        Σ work + Σ transfer of the tensors that it cuts.

    Returns
    -------
    The cost; at least :data:`NEVER` if the stage is above the hard limit of its memory.
    """
    return paid + memory_ticks(param_bytes, peak_bytes, c, memory)


@kernel
def memory_ticks(param_bytes: int, peak_bytes: int, c: int, memory: MemoryArrays) -> int:
    """Return what a non-empty stage on a device of class *c* pays for its parameters and activations, in ticks.

    Parameters
    ----------
    param_bytes
        Of parameters, and of states by their code.

    Returns
    -------
    Its overflow, or :data:`NEVER` if it is above the hard limit. Grows with both sizes. A peak of up to 2^62 that is
    no real one is above any hard limit.
    """
    held = param_bytes + peak_bytes
    split = memory.figures[c, SPLIT]
    if split > 0:
        held = param_bytes % split + peak_bytes
        if held + param_bytes // split * memory.figures[c, UNIT] > memory.figures[c, LIMIT_BYTES]:
            return NEVER
    elif held > memory.figures[c, LIMIT_BYTES]:
        return NEVER
    if held <= memory.figures[c, FAST_BYTES]:
        return 0
    return ceil_scaled(
        held - memory.figures[c, FAST_BYTES],
        memory.figures[c, NUMERATOR],
        memory.figures[c, DENOMINATOR],
        memory.figures[c, CHUNK],
    )


@kernel
def most_held(cutoff: int, c: int, memory: MemoryArrays) -> int:
    """Return bytes above which a stage on a device of class *c* pays *cutoff* ticks or more for its memory alone.

    No sum is above them where states have a code.
    """
    if memory.figures[c, SPLIT] > 0:
        return int(UNLIMITED_BYTES)
    # One part in 10⁹ more than overflow⁻¹(cutoff): far above what a float loses, and harmless.
    streamed = (float(cutoff) / memory.figures[c, NUMERATOR] + 1.0) * memory.figures[c, DENOMINATOR] * (1.0 + 1e-9)
    if streamed >= UNLIMITED_BYTES - memory.figures[c, FAST_BYTES]:
        return int(memory.figures[c, LIMIT_BYTES])
    return int(min(memory.figures[c, LIMIT_BYTES], memory.figures[c, FAST_BYTES] + int(streamed)))
