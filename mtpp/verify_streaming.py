"""What parameters that a fast memory does not hold cost a stage at least: a sum over its ops, and a constant.

Part of the independent verifier (:mod:`mtpp.verify`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtpp.verify_graph import TICKS_PER_S
from mtpp.verify_merged import MergedGraph


@dataclass(frozen=True)
class Streaming:
    """Ticks s(u) of each group of ops and C, such that overflow(S) ≥ Σ_{u ∈ S} s(u) − C for any set S that has an op.

    With M bytes of fast memory, of which activations take r or more, and β ticks a byte, a real number, overflow(S) is
    at least β·(param_bytes(S) + r − M) rounded up. Let s(u) be β·param_bytes(u) and C be β·(M − r), both rounded down:
    ⌈x − y⌉ ≥ ⌊x⌋ − ⌊y⌋, and a sum rounded down is at least the sum of what is rounded down.
    """

    ticks: list[int]
    constant: int


def least_streaming(graph: MergedGraph, system: dict[str, Any]) -> Streaming | None:
    """Return what stages stream at least; None without a fast memory.

    Activations are counted as the reserve, or where they depend on the order of the ops as nothing.
    """
    fast, bandwidth = system["fast_memory_bytes"], system["bandwidth_bytes_per_s"]
    if fast is None:
        return None
    reserve = system["activation_reserve_bytes"] if system["peak"] == "reserve" else 0
    ticks = [size * TICKS_PER_S // bandwidth for size in graph.param_bytes]
    return Streaming(ticks, (fast - reserve) * TICKS_PER_S // bandwidth)
