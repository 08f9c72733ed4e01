"""Least cost of a stage besides what it cuts: a sum over its ops, and a constant."""

from __future__ import annotations

from typing import Any

from mtpp.checker.graph import TICKS_PER_S
from mtpp.checker.merged import MergedGraph

WITHOUT_MEMORY = "nothing is streamed without a fast memory"


def stage_weights(graph: MergedGraph, system: dict[str, Any], *, streamed: bool) -> tuple[list[int], int] | None:
    """Return w(u) of each group of ops and C, such that S costs Σ_{u ∈ S} w(u) − C or more besides what it cuts.

    For any set S that has an op. If nothing is *streamed*, w(u) is the work and C is 0.

    Else parameters that the fast memory does not hold count too; None if there is none. With M bytes of it, of which
    activations take r or more (the reserve, or where they depend on the order of the ops nothing), and β ticks a byte,
    a real number, overflow(S) is at least β·(param_bytes(S) + r − M) rounded up. What is added to the work of u is
    β·param_bytes(u), and C is β·(M − r), both rounded down: ⌈x − y⌉ ≥ ⌊x⌋ − ⌊y⌋, and a sum rounded down is at least the
    sum of what is rounded down.
    """
    if not streamed:
        return graph.work, 0
    fast, bandwidth = system["fast_memory_bytes"], system["bandwidth_bytes_per_s"]
    if fast is None:
        return None
    reserve = system["activation_reserve_bytes"] if system["peak"] == "reserve" else 0
    weight = [work + size * TICKS_PER_S // bandwidth for work, size in zip(graph.work, graph.param_bytes, strict=True)]
    return weight, (fast - reserve) * TICKS_PER_S // bandwidth
