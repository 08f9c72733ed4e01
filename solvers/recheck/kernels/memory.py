"""Memory cost of a stage for a downset search run again: written from the definition, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.solvers.jit import kernel, subroutine

if TYPE_CHECKING:
    from mtpp.solvers.recheck.arrays import GroundArrays, Limits
    from mtpp.solvers.recheck.layout import Scratch

NEVER = 2**62
"""More ticks than any stage costs; a stage's cost can be added to it."""

_TICKS_PER_S = 10**12
_TICKS_PER_S_BITS = 40


@kernel
def overflow(held: int, limits: Limits) -> int:
    """Return what a stage that needs that many bytes pays for it, more than any limit if it may not be.

    The product of bytes and ticks per second is built up bit by bit, divided at once: it would not fit into 64 bits.
    """
    if held > limits.most_bytes:
        return NEVER
    if held <= limits.fast_bytes:
        return 0
    excess = held - limits.fast_bytes
    whole, part = excess // limits.bandwidth, excess % limits.bandwidth
    ticks = 0
    remainder = 0
    for bit in range(_TICKS_PER_S_BITS - 1, -1, -1):
        ticks *= 2
        remainder *= 2
        if (_TICKS_PER_S >> bit) & 1:
            ticks += whole
            remainder += part
        while remainder >= limits.bandwidth:
            remainder -= limits.bandwidth
            ticks += 1
    return ticks + (1 if remainder > 0 else 0)


@subroutine
def peak_of(ground: GroundArrays, scratch: Scratch, wanted: int) -> int:
    """Return the most bytes live over the steps of all ops of one status, run in the graph's order."""
    first, last, touched, change = scratch.first, scratch.last, scratch.touched, scratch.change
    steps = 0
    for place in range(len(ground.op_at)):
        if scratch.status[ground.op_at[place]] == wanted:
            for e in range(ground.tensor_offsets[place], ground.tensor_offsets[place + 1]):
                tensor = ground.tensors[e]
                if touched[tensor] == 0:
                    first[tensor] = steps
                last[tensor] = steps
                touched[tensor] += 1
            change[steps] = 0
            steps += 1
    change[steps] = 0
    for tensor in range(len(touched)):
        if touched[tensor] > 0:
            leaves = scratch.status[ground.maker_op[tensor]] == wanted and touched[tensor] < ground.pins[tensor]
            change[first[tensor]] += ground.size[tensor]
            change[steps if leaves else last[tensor] + 1] -= ground.size[tensor]
            touched[tensor] = 0
    live = 0
    peak = 0
    for step in range(steps):
        live += change[step]
        peak = max(peak, live)
    return peak
